"""Tool lists and streams distilled from bug reports of other engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.errors import ConstrainError
from constrain.tools.errors import ToolChoiceError, ToolError
from constrain.tools.parser import ToolCallParser, parse_message
from constrain.tools.partial import JsonReader, partial_json
from tests.reference import data
from tests.reference.grammar import SlowMachine
from tests.reference.vocabularies import TestVocabulary

ECHO = [{"name": "echo", "input_schema": {"type": "object", "additionalProperties": {}}}]


def _accepts(compiled: Any, text: str) -> bool:
    matcher = compiled.matcher()
    return all(matcher.try_advance(byte) for byte in text.encode()) and matcher.is_accepting


def test_tool_lists(shared_root: Path, byte_vocabulary: TestVocabulary) -> None:
    found = data.cases(shared_root, "tools")
    assert len(found) >= 6
    for case in found:
        given = case["input"]

        def make(given: Any = given) -> constrain.ToolCalls:
            return constrain.ToolCalls(
                given["tools"],
                format="json",
                tool_choice=given["tool_choice"],
                parallel=given["parallel_tool_calls"],
                whitespace="bounded",
                escapes="any",
            )

        if case["expect_error"]:
            with pytest.raises((ToolError, ToolChoiceError), match=case["expect_error"]):
                make()
            continue
        spec = make()
        compiled = constrain.compile(spec, byte_vocabulary.vocabulary)
        slow = SlowMachine(spec.program())
        for text in case["valid"]:
            assert _accepts(compiled, text), (case["id"], text)
            assert slow.accepts(text.encode()), (case["id"], text)
            calls = [
                {"name": one.name, "arguments": one.arguments} for one in spec.parse(text).calls
            ]
            assert calls == json.loads(text), case["id"]
        for text in case["invalid"]:
            assert not _accepts(compiled, text), (case["id"], text)
            assert not slow.accepts(text.encode()), (case["id"], text)


def _case(root: Path, name: str) -> dict[str, Any]:
    return next(one for one in data.cases(root, "streaming") if one["id"] == name)


def test_every_stream_is_judged(shared_root: Path) -> None:
    names = {one["id"] for one in data.cases(shared_root, "streaming")}
    assert names == {
        "st-tag-mentioned-in-prose",
        "st-ordinary-token-delimiters",
        "st-cut-at-every-byte",
        "st-partial-number-and-literal",
    }


def test_a_tag_that_is_mentioned(shared_root: Path) -> None:
    case = _case(shared_root, "st-tag-mentioned-in-prose")
    parser = ToolCallParser("hermes", ECHO)
    for byte in case["input"]["text"].encode():
        parser.feed(bytes([byte]))
    parser.finish()
    expected = case["input"]["expect"]
    assert [parser.message.text] == expected["text"]
    assert list(parser.message.calls) == expected["calls"]


def test_delimiters_of_ordinary_and_of_special_tokens(shared_root: Path) -> None:
    case = _case(shared_root, "st-ordinary-token-delimiters")
    given = case["input"]["tokens"]
    special = {"<think>": 301, "</think>": 302, "<tool_call>": 303, "</tool_call>": 304}
    tokens: list[bytes | None] = [bytes([one]) for one in range(256)] + [None] * 50
    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=[305], special_tokens=special)
    spec = constrain.ToolCalls(
        ECHO, format="hermes", reasoning="optional", whitespace="bounded", escapes="any"
    )
    wanted = case["input"]["expect"]["calls"]
    for written in (given, [special.get(one, one) for one in given]):
        ids: list[int] = []
        for one in written:
            ids += [one] if isinstance(one, int) else list(one.encode())
        text = vocabulary.decode(ids, special_tokens=True)
        message = parse_message("hermes", ECHO, text)
        assert message.reasoning == "hm"
        found = [{"name": one.name, "arguments": one.arguments} for one in message.calls]
        assert found == wanted
    # where the vocabulary has the tokens, the constraint insists on them
    compiled = constrain.compile(spec, vocabulary)
    assert compiled.matcher().validate(ids) == len(ids)
    assert compiled.matcher().validate([301, *b"hm", *b"</think>"]) == 10


def test_chunks_that_end_anywhere(shared_root: Path) -> None:
    case = _case(shared_root, "st-cut-at-every-byte")
    text, expected = case["input"]["text"], case["input"]["expect"]
    call = '<tool_call>{"name": "echo", "arguments": ' + text + "}</tool_call>"
    parser = ToolCallParser("hermes", ECHO)
    events = [event for byte in call.encode() for event in parser.feed(bytes([byte]))]
    events += parser.finish()
    assert parser.message.calls[0].arguments == expected["final"]
    for event in events:
        shown = getattr(event, "text", "")
        assert "\ufffd" not in shown
        shown.encode("utf-8")


def test_partial_values(shared_root: Path) -> None:
    case = _case(shared_root, "st-partial-number-and-literal")
    for text in (case["input"]["text"], *case["input"]["more"]):
        found = partial_json(text)
        assert not found.complete, text
        assert found.unfinished is not None, text
    assert partial_json(case["input"]["text"]).value == {}
    reader = JsonReader()
    reader.feed("-")
    with pytest.raises(ConstrainError):
        reader.finish()
