"""`ToolCalls`: what it takes, what it refuses, and where a message may begin."""

from __future__ import annotations

import re
from typing import Any

import pytest

import constrain
from constrain.errors import ConstrainError
from constrain.tools.errors import (
    FormatInferenceError,
    ToolChoiceError,
    ToolError,
    ToolFormatError,
)
from constrain.tools.formats import JsonArguments, Section, TaggedArguments, ToolFormat
from constrain.tools.language import Chain, Text
from constrain.tools.named_formats import FORMATS
from constrain.tools.trees import without_start
from tests.reference.tool_vocabularies import encode, family_vocabulary

ADD = {
    "name": "add",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}
NOW = {"name": "now", "parameters": {"type": "object", "properties": {}}}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "add", "arguments": {"b": 1, "a": 2}}\n</tool_call>'


def accepts(text: str, *, special: tuple[str, ...] = (), **options: Any) -> bool:
    options.setdefault("format", "hermes")
    options.setdefault("tools", [ADD, NOW])
    options.setdefault("whitespace", "bounded")
    tools = options.pop("tools")
    vocabulary = family_vocabulary(special)
    matcher = constrain.compile(constrain.ToolCalls(tools, **options), vocabulary).matcher()
    ids = encode(vocabulary, text)
    return (
        matcher.validate(ids) == len(ids)
        and all(map(matcher.try_advance, ids))
        and (matcher.is_accepting)
    )


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        ("Hello.", {}, True),
        ("", {}, True),
        (CALL, {}, True),
        (f"Hello.\n{CALL}", {}, True),
        (f"{CALL}\n{CALL}", {}, True),
        (f"{CALL}\n{CALL}", {"parallel": False}, False),
        (f"{CALL}Hello.", {}, False),
        ("Use <tool_call> to call.", {}, False),
        ("Use <tool_cal", {}, True),
        ("Hello.", {"tool_choice": "required"}, False),
        (CALL, {"tool_choice": "required"}, True),
        (f" {CALL}", {"tool_choice": "required"}, True),
        (f"Hello. {CALL}", {"tool_choice": "required"}, False),
        (CALL, {"tool_choice": "add"}, True),
        (CALL, {"tool_choice": "now"}, False),
        (CALL, {"tool_choice": ["now"]}, False),
        (CALL, {"tool_choice": ["now", "add"]}, True),
        (CALL, {"tool_choice": "none"}, False),
        ("Hello.", {"tool_choice": "none"}, True),
        ("Hello.", {"tools": []}, True),
        (OTHER, {}, True),
        (OTHER, {"arguments_order": "declared"}, False),
        (CALL, {"arguments_order": "declared"}, True),
        ("<think>Hm.</think>Hello.", {}, False),
        ("<think>Hm.</think>Hello.", {"reasoning": "optional"}, True),
        ("Hello.", {"reasoning": "optional"}, True),
        ("Hello.", {"reasoning": "required"}, False),
        (f"<think>Hm.</think>\n{CALL}", {"reasoning": "required"}, True),
        (f"<think>{CALL}</think>\n{CALL}", {"reasoning": "required"}, False),
        ("<think>Hm.", {"reasoning": "optional"}, False),
        (f"{CALL}\n<think>Hm.</think>\n{CALL}", {"reasoning": "optional"}, True),
        (f"{CALL}\n<think>Hm.</think>", {"reasoning": "optional"}, False),
        ("Hm.</think>Hello.", {"reasoning": "optional", "prompt": "assistant\n<think>\n"}, True),
        ("Hello.", {"reasoning": "optional", "prompt": "assistant\n<think>\n"}, False),
        ("Hm.</think>Hello.", {"prompt": "assistant\n<think>\n"}, False),
        ("</think>Hello.", {"prompt": "assistant\n<think>\n"}, True),
        ("Hello.", {"reasoning": "required", "prompt": "<think></think>"}, True),
        ('{"no": 1}', {"answer": {"properties": {"no": {"type": "integer"}}}}, True),
        ('{"no": "x"}', {"answer": {"properties": {"no": {"type": "integer"}}}}, False),
        ('{"yes": 1}', {"answer": {"properties": {"no": {"type": "integer"}}}}, False),
        ("Hello.", {"answer": {"type": "object"}}, False),
        (CALL, {"answer": {"type": "object"}}, True),
        (f"{{}}\n{CALL}", {"answer": {"type": "object"}}, False),
        ("yes", {"answer": constrain.Choice(["yes", "no"])}, True),
        ("maybe", {"answer": constrain.Choice(["yes", "no"])}, False),
        ("12 + 3", {"answer": constrain.Regex(r"\d+ \+ \d+")}, True),
        (CALL, {"answer": constrain.Regex(r"\d+ \+ \d+")}, True),
        ("Hi", {"answer": constrain.Text(max_chars=2)}, True),
        ("Hi.", {"answer": constrain.Text(max_chars=2)}, False),
        ("", {"answer": constrain.Regex("a?")}, True),
    ],
)
def test_messages(text: str, options: dict[str, Any], wanted: bool) -> None:
    assert accepts(text, **options) is wanted
    special = ("<tool_call>", "</tool_call>", "<think>", "</think>")
    assert accepts(text, special=special, **options) is wanted


def test_special_tokens_are_insisted_on() -> None:
    special = ("<tool_call>", "</tool_call>")
    vocabulary = family_vocabulary(special)
    compiled = constrain.compile(constrain.ToolCalls([NOW], format="hermes"), vocabulary)
    ids = list(CALL.replace("add", "now").encode())
    assert compiled.matcher().validate(ids) < len("<tool_call>")
    # and prose has none of them, nor any other one
    other = constrain.Vocabulary(
        [bytes([one]) for one in range(256)] + [None] * 2,
        eos_token_ids=[257],
        special_tokens={"<x>": 256},
    )
    compiled = constrain.compile(constrain.ToolCalls([NOW], format="hermes"), other)
    assert compiled.matcher().validate([72, 105]) == 2
    assert compiled.matcher().validate([72, 256]) == 1


def test_what_the_prompt_has_written_is_not_written_again() -> None:
    options = {"format": "functionary-v3.2", "tools": [ADD]}
    assert accepts('add\n{"a": 1, "b": 2}', **options)
    assert accepts("all\nHello.", **options)
    assert not accepts('>>>add\n{"a": 1, "b": 2}', **options)
    assert accepts('all\nHi.>>>add\n{"a": 1, "b": 2}>>>add\n{"a": 3, "b": 4}', **options)
    with pytest.raises(ToolFormatError, match="begins with"):
        without_start(Chain((Text("abc"),)), "x")


def test_calls_without_a_mark_are_told_from_prose_by_their_first_character() -> None:
    call = '{"name": "now", "parameters": {}}'
    for text, wanted in ((call, True), ("{x", False), (" {", False), ("x {", True), ("[1]", True)):
        assert accepts(text, format="llama3-json") is wanted
    assert accepts('[{"name": "now", "arguments": {}}]', format="json")
    assert not accepts("[now]", format="json")
    assert accepts("{now}", format="json")
    # an answer that reads as a call is none
    answer = {"answer": {"type": "object", "additionalProperties": {}}, "format": "llama3-json"}
    assert accepts('{"name": "now"}', **answer)
    assert accepts('{"name": "then", "parameters": {}}', **answer)
    assert accepts(call, **answer)
    assert not accepts('{"name": "now", "parameters": {"x": 1}}', **answer)


def test_harmony() -> None:
    options: dict[str, Any] = {"format": "harmony", "reasoning": "optional"}
    call = "to=functions.now<|channel|>commentary json<|message|>{}"
    for text, wanted in (
        (f" {call}", True),
        ("<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}", True),
        ("<|channel|>final<|message|>Hi.", True),
        ("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + f" {call}", True),
        ("<|channel|>final<|message|>Hi.<|end|><|start|>assistant" + f" {call}", True),
        ("<|channel|>analysis<|message|>Hm.", False),
        ("Hi.", False),
        ("<|channel|>commentary to=functions.then <|constrain|>json<|message|>{}", False),
    ):
        assert accepts(text, **options) is wanted, text
        special = FORMATS["harmony"].special_tokens
        assert accepts(text, special=special, **options) is wanted, text
    assert not accepts("<|channel|>final<|message|>Hi.<|channel|>", special=special, **options)
    asked = "<|end|><|start|>assistant"
    assert accepts(
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant" + f" {call}",
        prompt=asked,
        **options,
    )


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "options", "error", "message"),
    [
        ([{"description": "x"}], {}, ToolError, r"tools\[0\]: a tool needs a name"),
        ([{"name": "x", "parameters": [1]}], {}, ToolError, "x: its parameters are not"),
        ([{"name": "x", "parameters": {"type": "string"}}], {}, ToolError, "of type object"),
        ([NOW, NOW], {}, ToolError, "duplicate tool name 'now'"),
        ("now", {}, ToolError, "expected a list of tools"),
        ([NOW], {"tool_choice": "then"}, ToolChoiceError, "unknown function 'then'"),
        ([NOW], {"tool_choice": ["now", "then"]}, ToolChoiceError, "'then'"),
        ([NOW], {"tool_choice": 3}, ToolChoiceError, "not a choice: 3"),
        ([], {"tool_choice": "required"}, ToolChoiceError, "there is no tool"),
        ([NOW], {"format": "morse"}, ToolFormatError, "there is no format 'morse'"),
        ([NOW], {"format": "auto"}, ToolFormatError, "pass tokenizer="),
        ([NOW], {"format": 3}, ToolFormatError, "found int"),
        ([NOW], {"format": {"begin": "x"}}, ToolFormatError, "call: is missing"),
        ([NOW], {"format": "auto", "tokenizer": 3}, ToolFormatError, "int has no chat template"),
        (
            [NOW],
            {"format": "auto", "tokenizer": "{{ messages[0].content }}"},
            FormatInferenceError,
            "does not write the name",
        ),
        ([NOW], {"format": "auto", "tokenizer": "{{ oops("}, ConstrainError, "malformed"),
        ([NOW], {"reasoning": "always"}, ToolFormatError, "optional or required, found 'always'"),
        ([NOW], {"format": "json", "reasoning": "optional"}, ToolFormatError, "thinking section"),
        ([NOW], {"arguments_order": "random"}, ConstrainError, "any or declared"),
        ([NOW], {"parallel": 1}, ConstrainError, "parallel is True or False"),
        ([NOW], {"prompt": b"x"}, ConstrainError, "prompt is a text"),
        ([NOW], {"answer": 3}, ConstrainError, "a schema is"),
        (
            [{**NOW, "name": "to do"}],
            {"format": "mistral"},
            ToolFormatError,
            "'to do' cannot be written",
        ),
        (
            [{**NOW, "name": "a[ARGS]b"}],
            {"format": "mistral"},
            ToolFormatError,
            "cannot be written",
        ),
    ],
)
def test_bad_input(
    tools: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    options = {"format": "hermes", **options}
    with pytest.raises(error, match=message):
        constrain.ToolCalls(tools, **options)


def test_schemas_are_judged_when_they_are_compiled() -> None:
    broken = {"name": "x", "parameters": {"type": "object", "properties": {"a": {"type": "text"}}}}
    with pytest.raises(ToolError, match=r"x: its parameters: .*text") as caught:
        constrain.ToolCalls([NOW, broken], format="hermes").program()
    assert caught.value.tool == "x"


def test_a_delimiter_that_no_token_writes_is_named() -> None:
    letters = b'abcdefghijklmnopqrstuvwxyz_ {}":,\n'
    tokens: list[bytes | None] = [bytes([one]) for one in letters] + [None]
    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=[len(letters)])
    spec = constrain.ToolCalls([NOW], format="hermes")
    with pytest.raises(ToolFormatError, match=r"'</?tool_call>' cannot be written"):
        constrain.compile(spec, vocabulary)
    for more in ([b"<tool", b"_call", b"call>", b"</"], [b"x<tool_call>y", b"</tool_call>"]):
        wider = constrain.Vocabulary([*tokens, *more], eos_token_ids=[len(letters)])
        constrain.compile(spec, wider)
    special = constrain.Vocabulary(
        [*tokens, None, None],
        eos_token_ids=[len(letters)],
        special_tokens={"<tool_call>": len(letters) + 1, "</tool_call>": len(letters) + 2},
    )
    matcher = constrain.compile(spec, special).matcher()
    assert matcher.try_advance(len(letters) + 1)


def test_a_delimiter_of_arguments_that_no_token_writes_is_named() -> None:
    written = b"abcdefghijklmnopqrstuvwxyz_<>/=\n"
    tokens: list[bytes | None] = [bytes([one]) for one in written] + [None]
    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=[len(written)])
    constrain.compile(constrain.ToolCalls([NOW], format="qwen3-coder"), vocabulary)
    with pytest.raises(ToolFormatError, match=r"cannot be written: no tokens .* spell"):
        constrain.compile(constrain.ToolCalls([NOW], format="minimax-m2"), vocabulary)
    with pytest.raises(ToolFormatError, match=r"cannot be written: no tokens .* spell"):
        constrain.compile(constrain.ToolCalls([NOW], format="gemma4"), vocabulary)


@pytest.mark.parametrize(
    ("parameter", "options", "message"),
    [
        ("<p=$key>$value}", {}, "'}' may stand inside of a value"),
        ("<p=$key>$value</p>", {"values": "xml"}, "values: must be one of json, python, nested"),
        ("<p=$key>é$value</p>", {}, None),
        ("<p=${key}é>$value</p>", {}, "an ASCII character must follow the key"),
        ("<p t=$type k=$key>$value</p>", {}, "the type of a value stands behind its key"),
        ("<p=$key>$value</p=$type>", {}, "the type of a value stands before the value"),
        (" <p=$key>$value</p>", {}, "a parameter begins with its text"),
        ("<p=$key>$value\n", {}, "a parameter ends with a text"),
        (
            "<p=$key t=$type>$value</p>",
            {"values": "nested"},
            "nested values have neither types nor separators",
        ),
        ("<p>$value</p>", {}, "needs $key before $value"),
        ("<p=$key>$value", {}, "needs a text after $value"),
    ],
)
def test_parameters_that_leave_open_where_something_ends(
    parameter: str, options: dict[str, Any], message: str | None
) -> None:
    def make() -> Any:
        style = TaggedArguments(parameter, **options)
        form = ToolFormat("<c=$name>$arguments</c>", style)
        return constrain.ToolCalls([ADD], format=form).program()

    if message is None:
        assert make().parts
        return
    with pytest.raises(ToolFormatError, match=re.escape(message)):
        make()


def test_calls_are_counted() -> None:
    def compiled(**options: Any) -> Any:
        spec = constrain.ToolCalls([NOW], format="kimi-k2", **options)
        return constrain.compile(spec, family_vocabulary(()))

    def text(*numbers: int) -> str:
        calls = "".join(
            f"<|tool_call_begin|>functions.now:{one}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
            for one in numbers
        )
        return f"<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>"

    def accepts(constraint: Any, *numbers: int) -> bool:
        matcher = constraint.matcher()
        return all(map(matcher.try_advance, text(*numbers).encode())) and matcher.is_accepting

    many, one = compiled(), compiled(parallel=False, tool_choice="required")
    assert accepts(many, *range(9))
    assert accepts(one, 0)
    for wrong in ((1,), (0, 0), (0, 2), (0, 1, 2, 3, 3), (0, 1, 2, 3, 4, 5, 1)):
        assert not accepts(many, *wrong), wrong
    assert not accepts(one, 1)
    assert not accepts(one, 0, 1)


# -- the specification as a value ----------------------------------------------------------------


def test_formats_by_description() -> None:
    form = ToolFormat("<c>$name:$arguments</c>", JsonArguments(), reasoning=Section("<t>", "</t>"))
    for given in (form, form.to_dict()):
        spec = constrain.ToolCalls([NOW], format=given)
        assert spec.format == form
        assert accepts("<c>now:{}</c>", tools=[NOW], format=given)
    template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}"
        "({{ c.function.arguments | tojson }})</call>{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    pytest.importorskip("jinja2")
    spec = constrain.ToolCalls([NOW], tokenizer=template)
    assert spec.format.call == "<call>${name}(${arguments})</call>"
    assert spec.parse("Hi.<call>now({})</call>").calls[0].name == "now"


def test_it_is_a_value() -> None:
    spec = constrain.ToolCalls([ADD, NOW], format="hermes", tool_choice="add")
    assert repr(spec) == "ToolCalls([add, now], format='hermes', tool_choice='add')"
    with pytest.raises(AttributeError, match="cannot be changed"):
        spec.parallel = False
    with pytest.raises(AttributeError, match="cannot be changed"):
        del spec.parallel
    assert spec.program() == spec.program()


def test_it_is_a_part_of_other_constraints() -> None:
    calls = constrain.ToolCalls([NOW], format="hermes", tool_choice="required")
    spec = constrain.Sequence("Plan: ", constrain.Text(until="\n"), calls)
    compiled = constrain.compile(spec, family_vocabulary(()))
    text = 'Plan: look.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    matcher = compiled.matcher()
    assert all(matcher.try_advance(byte) for byte in text.encode())
    assert matcher.is_accepting


def test_arguments_that_are_not_declared_need_the_schema() -> None:
    loose = {"name": "now", "parameters": {"type": "object", "additionalProperties": True}}
    text = '<tool_call>{"name": "now", "arguments": {"x": 1}}</tool_call>'
    assert not accepts(text, tools=[NOW])
    assert accepts(text, tools=[loose])
