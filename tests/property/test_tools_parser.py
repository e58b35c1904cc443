"""Random calls in every named format, rendered, cut anywhere and read back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constrain.tools.events import ArgumentsDelta, merge
from constrain.tools.formats import JsonArguments, PythonArguments, ToolFormat
from constrain.tools.named_formats import FORMATS
from constrain.tools.parser import ToolCallParser
from constrain.tools.partial import JsonReader, partial_json
from constrain.tools.render import render_message

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "more": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "nested": {
            "type": "object",
            "properties": {"inner": {"type": "string"}, "n": {"type": "integer"}},
        },
        "items": {"type": "array", "items": {"type": "string"}},
    },
    "required": [],
}
TOOLS = [
    {"name": "look", "input_schema": SCHEMA},
    {"name": "look_up", "input_schema": SCHEMA},
    {"name": "nothing", "input_schema": {"type": "object", "properties": {}}},
]
NAMES = sorted({form.name for form in FORMATS.values()})
DELIMITERS = [
    "<tool_call>", "</tool_call>", "</parameter>", "<parameter=", "</function>", "}", "{", "]", "[",
    '"', "'", "\\", "\n", ", ", "</arg_value>", "<arg_key>", "[TOOL_CALLS]", "[ARGS]", ")", "(",
    '{"name": "look", "arguments": {', "<|tool_call>", "<think>", "</think>", "to=functions.look",
    ">>>", "é", "日", "🚀", "\\u00e9", "$name",
]  # fmt: skip
strings = st.lists(
    st.one_of(st.sampled_from(DELIMITERS), st.text("ab <>/=_", max_size=4)), max_size=6
).map("".join)


def _arguments(string: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "text": string,
            "more": string,
            "count": st.integers(-(10**6), 10**6),
            "ratio": st.floats(-1000, 1000).map(lambda one: round(one, 3)),
            "flag": st.booleans(),
            "nested": st.fixed_dictionaries({"n": st.integers(0, 9)}, optional={"inner": string}),
            "items": st.lists(string, min_size=1, max_size=3),
        },
    )


def _writable(form: ToolFormat, value: Any) -> bool:
    """Whether the format can write the strings of a value at all: raw ones can be ambiguous."""
    style = form.arguments
    if isinstance(style, JsonArguments):
        return style.is_plain or style.quote not in json.dumps(value, ensure_ascii=False).replace(
            '\\"', '"'
        )
    texts = [value] if isinstance(value, str) else []
    if isinstance(style, PythonArguments):
        return style.strings == "escaped" or not any("'" in one for one in texts)
    if style.values == "nested" and isinstance(value, dict):
        texts += [one for one in value.values() if isinstance(one, str)]
    if style.values == "nested" and isinstance(value, list):
        texts += value
    tail = form.parameter_atoms()[-1]
    words = [getattr(tail, "text", "").strip(), "]]>", "<![CDATA[", "]<]minimax[>["]
    words += ["</parameter>", "</arg_value>", "<|close|>", "</param>", "</atem:parameter>"]
    words += ["</｜DSML｜parameter>", "</arg_value:opensource>"]
    plain = style.values != "nested" or all(one == one.strip() for one in texts)
    return plain and not any(word and word in one for word in words for one in texts)


@st.composite
def messages(draw: st.DrawFn, form: ToolFormat) -> list[tuple[str, dict[str, Any]]]:
    count = draw(st.integers(1, 3 if form.parallel else 1))
    calls = []
    for _ in range(count):
        name = draw(st.sampled_from(["look", "look_up", "nothing"]))
        arguments = {} if name == "nothing" else draw(_arguments(strings))
        arguments = {key: one for key, one in arguments.items() if _writable(form, one)}
        calls.append((name, arguments))
    return calls


def _run(form: ToolFormat, chunks: list[Any]) -> tuple[list[Any], Any]:
    parser = ToolCallParser(form, TOOLS, validate=False)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return merge([*events, *parser.finish()]), parser.message


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(source=st.data())
def test_what_is_rendered_is_read_back(name: str, source: st.DataObject) -> None:
    form = FORMATS[name]
    calls = source.draw(messages(form))
    prose = source.draw(st.sampled_from(["", "Let me see <b>.", "1 < 2"])) if form.prose else ""
    text = render_message(form, calls, text=prose)
    whole, message = _run(form, [text])
    assert message.failures == ()
    assert [(one.name, one.arguments) for one in message.calls] == calls
    assert message.text.strip() == prose
    for call in message.calls:
        assert json.loads(call.arguments_text) == call.arguments
    data = text.encode("utf-8")
    cuts = sorted(source.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
    assert _run(form, pieces)[0] == whole
    assert _run(form, [bytes([byte]) for byte in data])[0] == whole


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(source=st.data())
def test_any_text_gives_the_same_events_in_any_chunks(name: str, source: st.DataObject) -> None:
    form = FORMATS[name]
    text = render_message(form, [("look", {"text": "x", "count": 1})])
    at = source.draw(st.integers(0, len(text)))
    text = text[:at] + source.draw(strings) + text[source.draw(st.integers(at, len(text))) :]
    whole = _run(form, [text])
    assert _run(form, list(text))[0] == whole[0]
    half = source.draw(st.integers(0, len(text)))
    assert _run(form, [text[:half], text[half:]])[0] == whole[0]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(source=st.data())
def test_argument_deltas_are_partial_json(name: str, source: st.DataObject) -> None:
    form = FORMATS[name]
    calls = source.draw(messages(form))
    parser = ToolCallParser(form, TOOLS, validate=False)
    texts: dict[int, str] = {}
    for char in render_message(form, calls):
        for event in parser.feed(char):
            if isinstance(event, ArgumentsDelta):
                texts[event.index] = texts.get(event.index, "") + event.text
                partial_json(texts[event.index])
    parser.finish()
    assert [json.loads(texts[number]) for number in range(len(calls))] == [one for _, one in calls]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(json_values, st.booleans(), st.integers(1, 5))
def test_reader_agrees_with_json(value: Any, escaped: bool, size: int) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    reader = JsonReader()
    for at in range(0, len(text), size):
        reader.feed(text[at : at + size])
        json.dumps(str(reader.value)).encode("utf-8")
    reader.finish()
    assert reader.value == value
