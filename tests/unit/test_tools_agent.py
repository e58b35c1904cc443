"""The agent loop with a model that follows a script, and the examples with it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from constrain.errors import ConstrainError
from constrain.tools.agent import Execution, Reply, bind_tools, run_agent
from constrain.tools.definitions import Tool
from constrain.tools.errors import ToolError
from constrain.tools.events import Message
from constrain.tools.formats import ToolFormat
from constrain.tools.named_formats import get_format
from constrain.tools.render import render_message

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Scripted:
    """Writes given messages, one after the other, and keeps what it was asked."""

    def __init__(self, *replies: str | Reply, format: str = "hermes") -> None:
        self.format: ToolFormat = get_format(format)
        self.asked: list[list[dict[str, Any]]] = []
        self.choices: list[object] = []
        self._replies = list(replies)

    def reply(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Tool],
        tool_choice: object,
        parallel: bool,
    ) -> Reply:
        self.asked.append([dict(one) for one in messages])
        self.choices.append(tool_choice)
        found = self._replies.pop(0)
        return found if isinstance(found, Reply) else Reply(found)


def calls(*given: tuple[str, dict[str, Any]], text: str = "", format: str = "hermes") -> str:
    return render_message(get_format(format), given, text=text)


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def fail(why: str) -> None:
    """Fail."""
    raise RuntimeError(why)


def test_two_calls_then_an_answer() -> None:
    model = Scripted(
        calls(("add", {"a": 2, "b": 3}), text="First."), calls(("add", {"a": 5})), "It is 6."
    )
    seen: list[Message] = []
    result = run_agent(model, [add], "Add.", on_message=seen.append)
    assert result.finish_reason == "answer"
    assert result.answer == "It is 6."
    assert [one.value for one in result.executions] == [5, 6]
    assert [one["role"] for one in result.messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert result.messages[1]["content"] == "First."
    assert result.messages[2] == {
        "role": "tool", "tool_call_id": "call00000", "name": "add", "content": "5",
    }  # fmt: skip
    assert len(seen) == 3
    assert model.asked[2] == result.messages[:5]
    ids = [call["id"] for one in result.messages for call in one.get("tool_calls", ())]
    assert ids == ["call00000", "call00001"]


def test_calls_of_one_message_are_executed_in_order() -> None:
    model = Scripted(calls(("add", {"a": 1}), ("fail", {"why": "x"}), ("add", {"a": 9})), "Done.")
    result = run_agent(model, [add, fail], "Go.")
    assert [one.content for one in result.executions] == ["2", "Error: RuntimeError: x", "10"]


def test_what_a_tool_raises_goes_back_as_text() -> None:
    model = Scripted(calls(("fail", {"why": "no luck"})), "Sorry.")
    seen: list[Execution] = []
    result = run_agent(model, [fail], "Go.", on_execution=seen.append)
    assert isinstance(seen[0].error, RuntimeError)
    assert model.asked[1][-1]["content"] == "Error: RuntimeError: no luck"
    assert result.finish_reason == "answer"


def test_invalid_arguments_go_back_as_text() -> None:
    model = Scripted(calls(("add", {"a": "two"})), "Sorry.")
    result = run_agent(model, [add], "Go.")
    assert result.executions[0].content.startswith("Error: ToolArgumentsError: arguments of tool")


def test_turns_are_limited() -> None:
    model = Scripted(*[calls(("add", {"a": 1}))] * 3)
    result = run_agent(model, [add], "Go.", max_turns=2)
    assert result.finish_reason == "turns"
    assert len(result.executions) == 2


def test_a_message_that_is_cut_off() -> None:
    model = Scripted(Reply(calls(("add", {"a": 1}))[:-20], complete=False))
    result = run_agent(model, [add], "Go.")
    assert result.finish_reason == "incomplete"
    assert result.executions == []


def test_the_choice_of_each_turn() -> None:
    model = Scripted(calls(("add", {"a": 1})), "2")
    run_agent(model, [add], "Go.", tool_choice=lambda turn: ["required", "none"][turn])
    assert model.choices == ["required", "none"]


def test_ids_that_the_model_writes_are_kept_while_they_are_unique() -> None:
    name = "mistral-call-id"
    form = get_format(name)
    one = render_message(form, [("add", {"a": 1}, "abcdefghi"), ("add", {"a": 2}, "abcdefghi")])
    model = Scripted(one, "Done.", format=name)
    result = run_agent(model, [add], "Go.")
    assert [execution.call.id for execution in result.executions] == ["abcdefghi", "call00001"]


def test_results_as_text() -> None:
    def both() -> dict[str, Any]:
        """Both."""
        return {"a": [1, "é"]}

    model = Scripted(calls(("both", {})), "Done.")
    assert run_agent(model, [both], "Go.").executions[0].content == '{"a": [1, "é"]}'


def test_tools_that_were_only_described() -> None:
    described = [{"name": "look", "parameters": {"properties": {"at": {"type": "string"}}}}]
    with pytest.raises(ToolError, match="look: there is nothing to call"):
        run_agent(Scripted(), described, "Go.")
    tools = bind_tools(described, lambda name, values: f"{name} {json.dumps(values)}")
    model = Scripted(calls(("look", {"at": "it"})), "Done.")
    assert run_agent(model, tools, "Go.").executions[0].content == 'look {"at": "it"}'
    with pytest.raises(ConstrainError, match="max_turns"):
        run_agent(Scripted(), tools, "Go.", max_turns=0)


# -- the examples --------------------------------------------------------------------------------


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_example_agent_with_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    model = Scripted(
        calls(("read_thermometer", {"city": "Oslo"})),
        calls(("convert_last_reading", {"unit": "fahrenheit"})),
        "It is 26.6 F.",
    )
    result = example("agent").run(model, "How warm is it?")
    assert result.answer == "It is 26.6 F."
    assert model.choices == ["read_thermometer", "convert_last_reading", "none"]
    assert "-> 26.6 F" in capsys.readouterr().out


def test_example_agent_with_an_mcp_server() -> None:
    pytest.importorskip("mcp")
    model = Scripted(
        calls(("add_note", {"topic": "groceries", "text": "bread"})),
        calls(("read_notes", {"topic": "nothing"})),
        "I cannot.",
    )
    result = asyncio.run(example("agent_mcp").run(model, "Remember bread."))
    assert next(one.content for one in result.executions) == "groceries has 2 notes"
    assert "there is no topic nothing" in result.executions[1].content
    assert result.executions[1].error is not None
