"""What a parser of tool calls reports, and messages made of it.

Events come in the order of the text; joined, the deltas of one call are the JSON text of its
arguments, and every beginning of that text is the beginning of a JSON object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from constrain.errors import ConstrainError

__all__ = [
    "ArgumentsDelta",
    "CallFailed",
    "CallFinished",
    "CallStarted",
    "Event",
    "Message",
    "ReasoningDelta",
    "TextDelta",
    "collect",
    "merge",
    "openai_delta",
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Prose."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Text of a thinking section."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call of a known tool began; `index` counts the calls of the message from 0."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call is complete.

    ``arguments`` are the values, ``arguments_text`` their JSON text.  ``error`` is None if the
    tool's schema allows them, else says what it does not.
    """

    index: int
    id: str
    name: str
    arguments: dict[str, Any]
    arguments_text: str
    error: ConstrainError | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call that had begun is not one: ``reason``, and the ``text`` of it as the model wrote it."""

    index: int
    name: str
    reason: str
    text: str


Event: TypeAlias = (
    TextDelta | ReasoningDelta | CallStarted | ArgumentsDelta | CallFinished | CallFailed
)


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message: prose, reasoning, the calls, and calls that failed."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[CallFinished, ...] = ()
    failures: tuple[CallFailed, ...] = ()

    def to_openai(self) -> dict[str, Any]:
        """The message as in an OpenAI chat completion (``choices[i].message``)."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments_text},
                }
                for call in self.calls
            ]
        return message

    @property
    def finish_reason(self) -> str:
        """OpenAI's reason for the end: "tool_calls" where there are calls, else "stop"."""
        return "tool_calls" if self.calls else "stop"


def openai_delta(event: Event) -> dict[str, Any] | None:
    """An event as in an OpenAI stream (``choices[i].delta``); None where that has nothing for it."""
    if isinstance(event, TextDelta):
        return {"content": event.text}
    if isinstance(event, ReasoningDelta):
        return {"reasoning_content": event.text}
    if isinstance(event, CallStarted):
        function = {"name": event.name, "arguments": ""}
        call = {"index": event.index, "id": event.id, "type": "function", "function": function}
        return {"tool_calls": [call]}
    if isinstance(event, ArgumentsDelta):
        function = {"arguments": event.text}
        return {"tool_calls": [{"index": event.index, "function": function}]}
    return None


def merge(events: Iterable[Event]) -> list[Event]:
    """The events with adjacent deltas of the same kind joined: what all chunkings agree on."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            result[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            result[-1] = ReasoningDelta(last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta):
            result[-1] = ArgumentsDelta(last.index, last.text + event.text)
        else:
            result.append(event)
    return result


def collect(events: Iterable[Event]) -> Message:
    """The message that events tell."""
    events = list(events)
    return Message(
        "".join(one.text for one in events if isinstance(one, TextDelta)),
        "".join(one.text for one in events if isinstance(one, ReasoningDelta)),
        tuple(one for one in events if isinstance(one, CallFinished)),
        tuple(one for one in events if isinstance(one, CallFailed)),
    )
