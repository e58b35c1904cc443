"""The default model calls tools: both agent examples, and many prompts at temperature 1."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.models import load_model
from constrain.tools.chat import TransformersChat
from constrain.tools.errors import FormatInferenceError
from tests.benchmarks.tool_calls import PROMPTS, TOOLS, measure

pytestmark = pytest.mark.model
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    return load_model(device="cpu")


@pytest.fixture(scope="module")
def chat(loaded: tuple[Any, Any]) -> TransformersChat:
    return TransformersChat(*loaded, format="hermes", max_tokens=48, temperature=0.0)


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_agent_completes_two_calls(chat: TransformersChat) -> None:
    result = example("agent").run(chat, "How warm is it in Oslo, in degrees Fahrenheit?")
    assert [one.error for one in result.executions] == [None, None]
    city, unit = (one.call.arguments for one in result.executions)
    assert city == {"city": "Oslo"}
    assert unit == {"unit": "fahrenheit"}
    assert result.executions[1].content == "26.6 F"
    assert result.finish_reason == "answer"
    assert result.answer.strip()


def test_agent_completes_two_calls_of_an_mcp_server(chat: TransformersChat) -> None:
    pytest.importorskip("mcp")
    question = "Remember to buy bread, then read me my groceries."
    result = asyncio.run(example("agent_mcp").run(chat, question))
    assert [one.call.name for one in result.executions] == ["add_note", "read_notes"]
    assert result.executions[0].error is None
    assert result.finish_reason == "answer"


def test_every_constrained_call_is_valid(loaded: tuple[Any, Any]) -> None:
    auto, required = measure(
        *loaded, PROMPTS[:4], listed=TOOLS[:2], modes=("auto", "required"), batch=4, max_tokens=48
    )
    assert auto.messages == required.messages == 4
    assert required.calls >= 4
    assert required.valid == required.calls
    assert auto.valid == auto.calls
    assert required.cut_off == 0


def test_its_template_writes_no_tools(loaded: tuple[Any, Any]) -> None:
    with pytest.raises(FormatInferenceError, match="does not write"):
        constrain.ToolCalls([{"name": "x", "parameters": {}}], tokenizer=loaded[1])
