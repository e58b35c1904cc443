"""Messages written by published chat templates are read back exactly, by name and by inference.

The renderings are those of the shared data; the templates themselves, which inference needs, lie in
the folder that the environment variable CONSTRAIN_TEMPLATES names.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from constrain.tools.chat_templates import template_renderer
from constrain.tools.errors import FormatInferenceError
from constrain.tools.events import merge
from constrain.tools.formats import ToolFormat
from constrain.tools.inference import infer_format
from constrain.tools.named_formats import get_format
from constrain.tools.parser import ToolCallParser, parse_message
from constrain.tools.templates import Hole
from tests.reference import data

FORMAT_OF = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "hermes",
    "ByteDance-Seed-OSS": "seed-oss",
    "Cohere2MoE": "cohere-moe",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
    "GLM-4.6": "glm-4.5",
    "GLM-4.7-Flash": "glm-4.7",
    "GigaChat3-10B-A1.8B": "gigachat-3",
    "GigaChat3.1-10B-A1.8B": "gigachat-3.1",
    "Kimi-K3": "kimi-k3",
    "LFM2.5-8B-A1B": "lfm2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1",
    "MiniMax-M2": "minimax-m2",
    "MiniMax-M3": "minimax-m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-call-id",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3-coder",
    "NVIDIA-Nemotron-Nano-v2": "nemotron-nano-v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "Reka-Edge": "hermes",
    "Spark2.5": "glm-4.7",
    "StepFun3.5-Flash": "step-3.5",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
    "ibm-granite-granite-4.0": "granite-4",
    "ibm-granite-granite-4.1": "granite-4",
    "inclusionai-ling-3.0-flash": "ling-3",
    "meetkai-functionary-medium-v3.1": "functionary-v3.1",
    "meetkai-functionary-medium-v3.2": "functionary-v3.2",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3-json",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral-list",
    "moonshotai-Kimi-K2": "kimi-k2",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "openbmb-MiniCPM5-1B": "minicpm5",
    "poolside-Laguna-S-2.1": "glm-4.7",
    "poolside-Laguna-XS-2.1": "glm-4.5",
    "poolside-Laguna-XS.2": "glm-4.5",
    "tencent-Hy3": "hunyuan-3",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "upstage-Solar-Open-100B": "solar-open",
}

# Their templates write only the first of several calls, so there is only that one to read.
WRITES_ONE_CALL = {"GigaChat3-10B-A1.8B", "GigaChat3.1-10B-A1.8B", "openai-gpt-oss-120b"}


@lru_cache(maxsize=1)
def _renderings() -> dict[str, list[dict[str, Any]]]:
    root = data.shared_root()
    result: dict[str, list[dict[str, Any]]] = {}
    if root is not None:
        with (root / "data" / "tool-renderings.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                result.setdefault(one["template"], []).append(one)
    return result


def _tools(root: Path) -> list[dict[str, Any]]:
    return json.loads((root / "data" / "tool-renderings-tools.json").read_text(encoding="utf-8"))


def _wanted(rendering: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = []
    for call in rendering["message"].get("tool_calls", []):
        arguments = call["function"]["arguments"]
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        calls.append((call["function"]["name"], arguments))
    if rendering["template"] in WRITES_ONE_CALL:
        return calls[:1]
    return calls


def _as_written(rendering: dict[str, Any], form: ToolFormat) -> tuple[str, str]:
    """The answer and the prompt that it follows.

    An answer that is not exact begins where prompt and history part, which may be inside the first
    tag of a call, or behind the beginning of a thinking section: what is missing is put back.
    """
    answer, asked = rendering["answer"].replace("<eos>", ""), rendering["prompt_end"]
    end = form.reasoning.end.strip() if form.reasoning else ""
    if rendering["exact"]:
        return answer, asked if not end or end in asked + answer else ""
    calls = _wanted(rendering)
    if calls:
        parts = form.opening(True)
        opening = "".join(
            one.text if not isinstance(one, Hole) else calls[0][0] if one.kind == "name" else "0"
            for one in parts
        )
        for at in range(1, len(opening)):
            if answer.startswith(opening[at:]) and opening[:at] in asked:
                return opening[:at] + answer, ""
    return answer, form.reasoning.begin if form.reasoning and end in answer else ""


def _check(rendering: dict[str, Any], form: ToolFormat, tools: list[dict[str, Any]]) -> None:
    text, prompt = _as_written(rendering, form)
    message = parse_message(form, tools, text, prompt=prompt)
    assert message.failures == ()
    assert [(one.name, one.arguments) for one in message.calls] == _wanted(rendering)
    for call in message.calls:
        assert call.error is None
        assert json.loads(call.arguments_text) == call.arguments


def test_every_template_that_writes_calls_has_a_format(shared_root: Path) -> None:
    writing = {name for name, found in _renderings().items() if len(found) > 1}
    assert len(writing) == 57
    assert writing == set(FORMAT_OF)


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_named_format_reads_the_calls_back(template: str, shared_root: Path) -> None:
    form, tools = get_format(FORMAT_OF[template]), _tools(shared_root)
    for rendering in _renderings()[template]:
        _check(rendering, form, tools)


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_chunks_make_no_difference(template: str, shared_root: Path) -> None:
    form, tools = get_format(FORMAT_OF[template]), _tools(shared_root)
    for rendering in _renderings()[template]:
        text, prompt = _as_written(rendering, form)
        seen = []
        for chunks in (
            [text],
            list(text),
            [text[at : at + 5] for at in range(0, len(text), 5)],
            [bytes([byte]) for byte in text.encode("utf-8")],
        ):
            parser = ToolCallParser(form, tools, prompt=prompt, validate=False)
            events = [event for chunk in chunks for event in parser.feed(chunk)]
            seen.append(merge([*events, *parser.finish()]))
        assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_plain_text_has_no_calls(template: str, shared_root: Path) -> None:
    form, tools = get_format(FORMAT_OF[template]), _tools(shared_root)
    for rendering in _renderings()[template]:
        if rendering["scenario"] == "text_only" and rendering["exact"]:
            text, prompt = _as_written(rendering, form)
            message = parse_message(form, tools, text, prompt=prompt)
            assert message.calls == ()
            assert message.failures == ()
            assert "It is cold in Oslo." in message.text + message.reasoning


# -- inference -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def templates() -> Path:
    folder = os.environ.get("CONSTRAIN_TEMPLATES")
    if not folder:
        pytest.skip("CONSTRAIN_TEMPLATES does not name a folder of chat templates")
    pytest.importorskip("jinja2")
    return Path(folder)


def _renderer(templates: Path, name: str) -> Any:
    path = templates / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"there is no template {path}")
    return template_renderer(path.read_text(encoding="utf-8"), bos_token="<bos>", eos_token="<eos>")


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_inferred_format_reads_the_calls_back(
    template: str, shared_root: Path, templates: Path
) -> None:
    form = infer_format(_renderer(templates, template))
    assert ToolFormat.from_dict(json.loads(json.dumps(form.to_dict()))) == form
    tools = _tools(shared_root)
    for rendering in _renderings()[template]:
        _check(rendering, form, tools)


def test_templates_without_calls_are_refused(shared_root: Path, templates: Path) -> None:
    silent = sorted(name for name, found in _renderings().items() if len(found) == 1)
    assert silent
    for name in silent:
        with pytest.raises(FormatInferenceError) as caught:
            infer_format(_renderer(templates, name))
        assert caught.value.unclear
