"""Messages as the official client's types, and arguments as a function's own."""

from __future__ import annotations

import datetime
import enum
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from constrain.tools.definitions import make_tools
from constrain.tools.errors import ToolArgumentsError
from constrain.tools.events import openai_delta
from constrain.tools.named_formats import FORMATS
from constrain.tools.parser import ToolCallParser, parse_message
from constrain.tools.render import render_message

pydantic = pytest.importorskip("pydantic")
chat = pytest.importorskip("openai.types.chat")

TOOLS = [
    {
        "name": "look",
        "parameters": {"properties": {"at": {"type": "string"}, "times": {"type": "integer"}}},
    }
]
CALLS = [("look", {"at": 'the "sea"', "times": 2}), ("look", {"times": 1})]


@pytest.mark.parametrize("name", sorted({form.name for form in FORMATS.values()}))
def test_messages_are_those_of_the_client(name: str) -> None:
    form = FORMATS[name]
    calls = CALLS if form.parallel else CALLS[:1]
    text = "Let me see." if form.prose else ""
    message = parse_message(form, TOOLS, render_message(form, calls, text=text))
    read = chat.ChatCompletionMessage.model_validate(message.to_openai())
    assert (read.content or "") == text
    assert [
        (one.function.name, json.loads(one.function.arguments)) for one in read.tool_calls
    ] == calls
    assert len({one.id for one in read.tool_calls}) == len(calls)
    completion = chat.ChatCompletion.model_validate(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": message.finish_reason,
                    "logprobs": None,
                    "message": message.to_openai(),
                }
            ],
        }
    )
    assert completion.choices[0].finish_reason == "tool_calls"


def test_a_stream_is_that_of_the_client() -> None:
    parser = ToolCallParser("hermes", TOOLS)
    text = render_message(FORMATS["hermes"], CALLS, text="So.")
    events = [event for byte in text.encode() for event in parser.feed(bytes([byte]))]
    events += parser.finish()
    calls: dict[int, dict[str, str]] = {}
    content = ""
    for event in events:
        delta = openai_delta(event)
        if delta is None:
            continue
        chunk = chat.ChatCompletionChunk.model_validate(
            {
                "id": "x",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
            }
        )
        change = chunk.choices[0].delta
        content += change.content or ""
        for part in change.tool_calls or ():
            call = calls.setdefault(
                part.index, {"id": part.id, "name": part.function.name, "arguments": ""}
            )
            call["arguments"] += part.function.arguments or ""
    assert content == "So."
    assert [(one["name"], json.loads(one["arguments"])) for one in calls.values()] == CALLS


# -- arguments as a function's own types ---------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Box(pydantic.BaseModel):
    corner: Point
    colours: list[Colour]


def paint(
    box: Box,
    when: datetime.date,
    weight: Annotated[float, pydantic.Field(gt=0)] = 1.0,
    mode: Literal["fill", "line"] = "fill",
) -> tuple[Any, ...]:
    """Paint a box."""
    return box, when, weight, mode


def test_arguments_become_the_types_of_the_function() -> None:
    (tool,) = make_tools([paint])
    arguments = {
        "box": {"corner": {"x": 3}, "colours": ["red", "blue"]},
        "when": "2027-02-01",
        "weight": 2,
    }
    text = render_message(FORMATS["hermes"], [("paint", arguments)])
    call = parse_message("hermes", [tool], text).calls[0]
    assert call.error is None
    box, when, weight, mode = tool.call(call.arguments)
    assert box == Box(corner=Point(3), colours=[Colour.RED, Colour.BLUE])
    assert when == datetime.date(2027, 2, 1)
    assert (weight, mode) == (2.0, "fill")
    assert tool.convert is not None
    assert tool.convert(call.arguments)["box"] == box
    with pytest.raises(ToolArgumentsError, match="paint"):
        tool.call({**arguments, "weight": 0})


def test_models_become_themselves() -> None:
    (tool,) = make_tools([Box])
    assert tool.call({"corner": {"x": 1, "y": 2}, "colours": []}) == Box(
        corner=Point(1, 2), colours=[]
    )
