"""The parser on texts that models write, and on those that they should not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.errors import ConstrainError
from constrain.tools.errors import ToolFormatError
from constrain.tools.events import (
    ArgumentsDelta,
    CallFailed,
    CallFinished,
    CallStarted,
    TextDelta,
    openai_delta,
)
from constrain.tools.formats import PythonArguments, TaggedArguments, ToolFormat
from constrain.tools.named_formats import FORMATS, get_format
from constrain.tools.parser import ToolCallParser, parse_message
from constrain.tools.partial import JsonReader, JsonReadError, partial_json

TOOLS = [
    {"name": "echo", "input_schema": {"type": "object", "additionalProperties": {}}},
    {
        "name": "add",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
    {
        "name": "add_text",
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "note": {"type": ["string", "null"]}},
        },
    },
]


def test_prose_that_mentions_a_tag_stays_prose() -> None:
    text = "Use `<tool_call>` to call a tool. 1 < 2."
    parser = ToolCallParser("hermes", TOOLS)
    events = [event for byte in text.encode() for event in parser.feed(bytes([byte]))]
    events += parser.finish()
    assert all(isinstance(event, TextDelta) for event in events)
    assert parser.message.text == text
    assert parser.message.calls == ()


def test_what_is_held_back_is_released_at_the_end() -> None:
    parser = ToolCallParser("hermes", TOOLS)
    assert parser.feed("see <tool_c") == [TextDelta("see")]
    assert parser.finish() == [TextDelta(" <tool_c")]


def test_reasoning_that_ends_in_ordinary_text() -> None:
    parser = ToolCallParser("hermes", TOOLS)
    call = '{"name":"echo","arguments":{}}'
    for chunk in (b"<think>", b"hm", b"</think>", b"<tool_call>", call.encode(), b"</tool_call>"):
        parser.feed(chunk)
    parser.finish()
    assert parser.message.reasoning == "hm"
    assert [(one.name, one.arguments) for one in parser.message.calls] == [("echo", {})]


def test_a_prompt_that_opens_the_thinking_section() -> None:
    message = parse_message("hermes", TOOLS, "hm <tool_call></think>\n\nHi.", prompt="<think>\n")
    assert (message.reasoning, message.text) == ("hm <tool_call>", "Hi.")


def test_calls_inside_thinking_are_none() -> None:
    call = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    message = parse_message("hermes", TOOLS, f"<think>{call}</think>{call}")
    assert message.reasoning == call
    assert len(message.calls) == 1


def test_events_of_a_call() -> None:
    parser = ToolCallParser("hermes", TOOLS)
    events = parser.feed('Hi.\n<tool_call>{"name": "add", "arguments": {"a": 1,')
    assert events == [
        TextDelta("Hi."),
        CallStarted(0, "call_0", "add"),
        ArgumentsDelta(0, '{"a": 1,'),
    ]
    events = parser.feed(' "b": 2}}</tool_call>')
    assert events == [
        ArgumentsDelta(0, ' "b": 2}'),
        CallFinished(0, "call_0", "add", {"a": 1, "b": 2}, '{"a": 1, "b": 2}'),
    ]
    assert parser.finish() == []
    with pytest.raises(ConstrainError, match="finished"):
        parser.feed("x")


def test_openai_shapes() -> None:
    text = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    parser = ToolCallParser("hermes", TOOLS)
    deltas = [openai_delta(event) for event in parser.feed(text) + parser.finish()]
    assert deltas[0]["tool_calls"][0]["function"] == {"name": "add", "arguments": ""}  # type: ignore[index]
    assert deltas[-1] is None
    message = parser.message.to_openai()
    assert message["content"] is None
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": 1, "b": 2}
    assert parser.message.finish_reason == "tool_calls"


def test_arguments_are_validated() -> None:
    text = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    (call,) = parse_message("hermes", TOOLS, text).calls
    assert call.arguments == {"a": 1}
    assert call.error is not None
    (call,) = parse_message("hermes", TOOLS, text, validate=False).calls
    assert call.error is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1', "ends inside"),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}}', "the end of the call"),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1}, "x": 2}', "the end of the call"),
        ('<tool_call>\n{"name": "add", "arguments": [1]}', "an object"),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 01}}', "number"),
        ('<tool_call>\n{"name": "add", "arguments": {"a": 1, "a": 2}}', "twice"),
    ],
)
def test_calls_that_fail_are_reported_with_their_text(text: str, reason: str) -> None:
    for chunks in ([text], list(text)):
        message = parse_message("hermes", TOOLS, chunks)
        (failure,) = message.failures
        assert isinstance(failure, CallFailed)
        assert reason in failure.reason
        assert failure.name == "add"
        assert failure.text + message.text == text
        assert message.calls == ()


def test_unknown_tools_are_prose() -> None:
    text = '<tool_call>\n{"name": "sub", "arguments": {}}\n</tool_call>'
    message = parse_message("hermes", TOOLS, text)
    assert (message.text, message.calls) == (text, ())


def test_names_that_begin_with_each_other() -> None:
    text = "<tool_call>add_text<arg_key>text</arg_key><arg_value>x</arg_value></tool_call>"
    (call,) = parse_message("glm-4.7", TOOLS, list(text)).calls
    assert (call.name, call.arguments) == ("add_text", {"text": "x"})


def test_names_inside_json() -> None:
    tools = [{"name": 'say "hi"'}, {"name": "查天气"}]
    text = (
        '[{"name":"say \\"hi\\"","arguments":{}}, {"name":"\\u67e5\\u5929\\u6c14","arguments":{}}]'
    )
    found = parse_message("json", tools, list(text)).calls
    assert [one.name for one in found] == ['say "hi"', "查天气"]


def test_tagged_types_follow_the_schema() -> None:
    head = "<tool_call>\n<function=add_text>\n"
    for raw, value in (("null", None), ("45", "45"), ("a\nb", "a\nb"), ("", "")):
        text = f"{head}<parameter=note>\n{raw}\n</parameter>\n</function>\n</tool_call>"
        (call,) = parse_message("qwen3-coder", TOOLS, list(text)).calls
        assert call.arguments == {"note": value}
        assert call.error is None


def test_closing_tags_inside_tagged_strings() -> None:
    value = "x\n</parameter>\n y </function>\n</tool_call> z"
    text = (
        f"<tool_call>\n<function=add_text>\n<parameter=text>\n{value}\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    (call,) = parse_message("qwen3-coder", TOOLS, list(text)).calls
    assert call.arguments == {"text": value}


def test_python_strings() -> None:
    text = "[add_text(text='it\\'s, x=1) \"q\"', note=None), add(a=1, b=-2)]"
    found = parse_message("llama-pythonic", TOOLS, list(text)).calls
    assert [one.arguments for one in found] == [
        {"text": 'it\'s, x=1) "q"', "note": None},
        {"a": 1, "b": -2},
    ]


def test_invalid_bytes_become_replacement_characters() -> None:
    assert parse_message("hermes", TOOLS, [b"a\xff", b"b\xc3"]).text == "a\ufffdb\ufffd"


def test_harmony_variants() -> None:
    call = "<|channel|>commentary to=functions.add <|constrain|>json<|message|>"
    text = f'<|channel|>analysis<|message|>hm<|end|><|start|>assistant{call}{{"a":1,"b":2}}<|call|>'
    message = parse_message("harmony", TOOLS, list(text))
    assert message.reasoning == "hm"
    assert [(one.name, one.arguments) for one in message.calls] == [("add", {"a": 1, "b": 2})]


# -- formats as data -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats_are_data(name: str) -> None:
    form = FORMATS[name]
    again = ToolFormat.from_dict(json.loads(json.dumps(form.to_dict())))
    assert again == form
    assert hash(again) == hash(form)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"call": "$arguments"}, "call"),
        ({"call": "<$name>"}, "call"),
        ({"call": "<$arguments $name>"}, "call"),
        ({"call": "<$name $what $arguments>"}, "call"),
        ({"call": "$name($arguments)", "arguments": {"style": "python"}}, "begin"),
        ({"call": "<$name>$arguments", "arguments": {"style": "yaml"}}, "arguments.style"),
        ({"call": "<$name>$arguments", "arguments": {"style": "json", "x": 1}}, "arguments"),
        ({"call": "<$name>$arguments", "colour": 1}, "colour"),
        ({}, "call"),
        ({"call": "<$name>$arguments", "stop": [""]}, "stop"),
    ],
)
def test_malformed_descriptions(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ToolFormatError) as caught:
        ToolFormat.from_dict(given)
    assert caught.value.field == field


@pytest.mark.parametrize("parameter", ["$key", "<$key>$value", "$key=$value;", "<$value>$key</>"])
def test_malformed_parameters(parameter: str) -> None:
    with pytest.raises(ToolFormatError, match=r"arguments\.parameter"):
        ToolFormat("<$name>$arguments</>", TaggedArguments(parameter))


def test_unknown_names_and_styles() -> None:
    with pytest.raises(ToolFormatError, match="hermes"):
        get_format("hermez")
    with pytest.raises(ToolFormatError, match="strings"):
        ToolFormat("<$name($arguments)>", PythonArguments("odd"))


# -- JSON that is still being written ------------------------------------------------------------


def test_every_cut_of_a_text_with_escapes() -> None:
    text = '{"t":"é \\u00e9 \\ud83d\\ude80 🚀 \\\\ \\"q\\""}'
    whole = 'é é 🚀 🚀 \\ "q"'
    for at in range(len(text) + 1):
        found = partial_json(text[:at])
        if isinstance(found.value, dict) and "t" in found.value:
            assert whole.startswith(found.value["t"])
        assert found.complete == (at == len(text))
    assert partial_json(text).value == {"t": whole}


@pytest.mark.parametrize(
    ("text", "value", "unfinished"),
    [
        ('{"n":12.5e', {}, ("n",)),
        ('{"b":tru', {}, ("b",)),
        ('{"a":[1,2,', {"a": [1, 2]}, ("a",)),
        ('{"k', {}, ()),
        ('{"k":', {}, ("k",)),
        ('{"a":{"b":["x","y', {"a": {"b": ["x", "y"]}}, ("a", "b", 1)),
        ('"abc\\', "abc", ()),
    ],
)
def test_partial_values(text: str, value: Any, unfinished: tuple[str | int, ...]) -> None:
    found = partial_json(text)
    assert (found.value, found.complete, found.unfinished) == (value, False, unfinished)


@pytest.mark.parametrize(
    "text", ["[1,]", "01", "nul ", '"\\ud83d"', "{,}", "1 2", '{"a":1,"a":2}', "'x'", "[" * 600]
)
def test_what_is_no_json(text: str) -> None:
    reader = JsonReader()
    with pytest.raises(JsonReadError):  # noqa: PT012  (either call may be the one)
        end = reader.feed(text)
        reader.finish()
        if text[end:].strip():
            raise JsonReadError("rest")
