"""An agent: a model that calls tools until it answers.

`run_agent` asks a `ChatModel` for a message, executes the calls in it with validated arguments,
gives the results back as messages, and asks again, until a message has no call, the turns are used
up, or a message was cut off.  What a tool raises goes back to the model as text; nothing a model
writes can raise.  `constrain.tools.chat.TransformersChat` is a model whose calls are constrained,
so that they are valid in the first place; any object with its two members will do.

Messages are OpenAI-shaped dicts throughout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from constrain.errors import ConstrainError
from constrain.tools.definitions import Tool, make_tools
from constrain.tools.errors import ToolError
from constrain.tools.events import CallFinished, Message
from constrain.tools.formats import ToolFormat
from constrain.tools.parser import parse_message
from constrain.tools.templates import Hole

__all__ = ["AgentResult", "ChatModel", "Execution", "Reply", "bind_tools", "run_agent"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote.

    Attributes:
        text: the message, with the texts of its special tokens.
        prompt: the end of the prompt that it follows (see `ToolCallParser`).
        complete: whether the model ended the message itself.
    """

    text: str
    prompt: str = ""
    complete: bool = True


class ChatModel(Protocol):
    """A model that can call tools."""

    format: ToolFormat

    def reply(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Tool],
        tool_choice: object,
        parallel: bool,
    ) -> Reply:
        """The next message of the assistant."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """A call that was executed: what the model was told, and what the tool returned or raised."""

    call: CallFinished
    content: str
    value: Any = field(default=None, compare=False)
    error: Exception | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AgentResult:
    """A finished run.

    Attributes:
        finish_reason: "answer": the last message has no call.  "turns": all turns were used.
            "incomplete": the last message was cut off, or a call in it could not be read.
        answer: the text of the last message.
        messages: the conversation, the given messages first.
        executions: all calls in order.
    """

    finish_reason: str
    answer: str
    messages: list[dict[str, Any]]
    executions: list[Execution]


def run_agent(
    model: ChatModel,
    tools: object,
    messages: str | Sequence[Mapping[str, Any]],
    *,
    tool_choice: object | Callable[[int], object] = "auto",
    parallel: bool = True,
    max_turns: int = 8,
    on_message: Callable[[Message], None] | None = None,
    on_execution: Callable[[Execution], None] | None = None,
) -> AgentResult:
    """Let a model call tools until it answers.

    Args:
        model: see `ChatModel`.
        tools: in any form that `make_tools` takes; all must have something to call (`bind_tools`).
        messages: the user's text, or a conversation.
        tool_choice: as for `constrain.ToolCalls`, or a function from the number of a turn (from 0)
            to the choice of that turn.
        parallel: several calls in one message.
        max_turns: how many messages the model may write at most.
        on_message, on_execution: told of everything as it happens.

    Raises:
        ToolError: a tool cannot be called, or two have one name.
        ConstrainError: an argument is out of range.
    """
    made = make_tools(tools)
    for tool in made:
        if tool.target is None:
            raise ToolError("there is nothing to call: see bind_tools", tool=tool.name)
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        raise ConstrainError(f"max_turns is {max_turns!r}, expected 1 or more")
    talk: list[dict[str, Any]] = (
        [{"role": "user", "content": messages}]
        if isinstance(messages, str)
        else [dict(one) for one in messages]
    )
    by_name = {tool.name: tool for tool in made}
    writes_ids = any(isinstance(one, Hole) and one.kind == "id" for one in _atoms(model.format))
    used: set[str] = set()
    executions: list[Execution] = []
    answer = ""
    for turn in range(max_turns):
        choice = tool_choice(turn) if callable(tool_choice) else tool_choice
        reply = model.reply(talk, made, choice, parallel)
        message = parse_message(model.format, made, reply.text, prompt=reply.prompt)
        message = _with_ids(message, used, writes_ids)
        answer = message.text
        talk.append(message.to_openai())
        if on_message is not None:
            on_message(message)
        for call in message.calls:
            execution = _execute(by_name[call.name], call)
            executions.append(execution)
            if on_execution is not None:
                on_execution(execution)
            talk.append(
                {
                    "role": "tool",
                    "tool_call_id": call.id,
                    "name": call.name,
                    "content": execution.content,
                }
            )
        if not reply.complete or message.failures:
            return AgentResult("incomplete", answer, talk, executions)
        if not message.calls:
            return AgentResult("answer", answer, talk, executions)
    return AgentResult("turns", answer, talk, executions)


def bind_tools(tools: object, call: Callable[[str, dict[str, Any]], Any]) -> tuple[Tool, ...]:
    """Tools that were only described (MCP, OpenAI dicts), all called through one function.

    Args:
        tools: in any form that `make_tools` takes.
        call: ``call(name, arguments)`` gives the result.
    """

    def target(name: str) -> Callable[[dict[str, Any]], Any]:
        return lambda arguments: call(name, arguments)

    return tuple(replace(tool, target=target(tool.name), _cache={}) for tool in make_tools(tools))


def result_text(value: object) -> str:
    """A tool's result as text for a model: texts as they are, values as JSON.

    The results of MCP tools are their texts; where they report an error, it is raised.
    """
    if isinstance(value, str):
        return value
    parts = getattr(value, "content", None)
    if isinstance(parts, list) and all(hasattr(one, "type") for one in parts):
        text = "\n".join(str(getattr(one, "text", f"[{one.type}]")) for one in parts)
        if getattr(value, "is_error", False) or getattr(value, "isError", False):
            raise ConstrainError(text or "the tool failed")
        return text
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        value = dump(mode="json")
    return json.dumps(value, ensure_ascii=False, default=str)


def _execute(tool: Tool, call: CallFinished) -> Execution:
    try:
        if call.error is not None:
            raise call.error
        value = tool.call(call.arguments)
        return Execution(call, result_text(value), value)
    except Exception as error:  # whatever a tool raises is for the model to read
        return Execution(call, f"Error: {type(error).__name__}: {error}", error=error)


def _with_ids(message: Message, used: set[str], keep: bool) -> Message:
    """Ids that are unique in the conversation, of nine letters and digits where they are ours."""
    calls: list[CallFinished] = []
    for call in message.calls:
        identity = call.id
        if not keep or identity in used:
            identity = f"call{len(used):05d}"
        used.add(identity)
        calls.append(replace(call, id=identity))
    return replace(message, calls=tuple(calls))


def _atoms(form: ToolFormat) -> Iterable[Any]:
    return (*form.opening(True), *form.closing())
