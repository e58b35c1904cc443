"""Strings of JSON Schemas that belong to a grammar."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import constrain
from constrain import ConstrainError, JsonSchema, Lark
from constrain.errors import GrammarError, RegexError, SchemaError, UnsupportedError
from constrain.grammar import StringGrammarBuilder, read_lark, string_program
from tests.reference.grammar import SlowMachine, mutate
from tests.reference.lark_grammars import GRAMMARS
from tests.reference.program_semantics import holds, regex_matches
from tests.reference.vocabularies import byte_vocabulary

pytest.importorskip("lark")


def _accepts(compiled: Any, text: str) -> bool:
    matcher = compiled.matcher()
    return all(matcher.try_advance(byte) for byte in text.encode()) and matcher.is_accepting


@pytest.mark.parametrize(
    ("grammar", "valid", "invalid"),
    [
        (
            {"gbnf": 'root ::= root "a" | "b" [é-ü€😀]*'},
            ["b", "baa", "bé€😀aa"],
            ["", "a", "bax", "bz", "b\ud7ff"],
        ),
        ({"gbnf": 'x ::= "a" | ["\\n]+', "root": "x"}, ["a", '"\n"'], ["", "aa", "\\n"]),
        (
            {"lark": 'start: item ("," item)*\nitem: /\\w+/\n%ignore " "'},
            ["a", "a, b", " ab ,é "],
            ["", "a,,b", "a b"],
        ),
        ({"lark": 'go: "x" go | "y"', "start": "go"}, ["y", "xxy"], ["x", ""]),
        ({"lark": 'start: "a" /b(?=c)/ "c" | "a" /b/ "d"'}, ["abc", "abd"], ["ab", "abb"]),
        ({"regex": "a*|(?i:b)"}, ["", "aa", "B"], ["ab", "aab"]),
        ({"gbnf": 'root ::= root "a"'}, [], ["", "a"]),
    ],
)
def test_decoded_strings_belong_to_it(
    grammar: dict[str, str], valid: list[str], invalid: list[str]
) -> None:
    schema = JsonSchema({"anyOf": [{"x-grammar": grammar}, {"const": "-"}]})
    program = schema.program()
    compiled = constrain.compile(schema, byte_vocabulary().vocabulary)
    for text in (*valid, "-"):
        assert holds(program, text)
        assert _accepts(compiled, json.dumps(text)), text
        assert _accepts(compiled, json.dumps(text, ensure_ascii=False)), text
        escaped = "".join(
            f"\\u{unit:04x}"
            for unit in memoryview(text.encode("utf-16-le")).cast("H")  # surrogate pairs
        )
        assert _accepts(compiled, f'"{escaped}"'), text
    for text in invalid:
        assert not holds(program, text)
        assert not _accepts(compiled, json.dumps(text)), text
    # Like every keyword about strings it says nothing of other values.
    assert _accepts(compiled, "12")


def test_it_combines_with_other_keywords() -> None:
    schema = JsonSchema(
        {
            "type": "object",
            "patternProperties": {"^k": {"x-grammar": {"gbnf": 'root ::= "a"+'}, "maxLength": 3}},
            "propertyNames": {"x-grammar": {"regex": "k[0-9]"}},
            "not": {"required": ["k9"]},
        },
        whitespace="compact",
    )
    compiled = constrain.compile(schema, byte_vocabulary().vocabulary)
    assert _accepts(compiled, '{"k1":"aaa","k2":"a"}')
    for text in ('{"k1":"aaaa"}', '{"k1":"b"}', '{"kk":"a"}', '{"k9":"a"}'):
        assert not _accepts(compiled, text), text
    entries = schema.report()
    assert "x-grammar" in {entry.keyword for entry in entries.of_status("enforced")}


@pytest.mark.parametrize("sample", GRAMMARS, ids=lambda sample: sample.name)
def test_automata_are_those_of_the_nets(sample: Any) -> None:
    rnd = random.Random(sample.name)
    builder = StringGrammarBuilder()
    try:
        program = string_program(builder.grammar(read_lark(builder, sample.grammar)))
    except UnsupportedError as error:
        if error.feature != "recursion":
            raise
        return
    slow = SlowMachine(Lark(sample.grammar).program())
    alphabet = list(sample.alphabet)
    words = {mutate(text, alphabet, rnd) for text in sample.texts for _ in range(5)}
    words |= {"".join(rnd.choices(alphabet, k=rnd.randrange(6))) for _ in range(25)}
    for word in words:
        if len(word) < 10:
            assert regex_matches(program, word) == slow.accepts(word.encode()), word


@pytest.mark.parametrize(
    ("grammar", "error", "words"),
    [
        ({"gbnf": 'root ::= "(" root ")" | ""'}, UnsupportedError, "needs a stack"),
        ({"gbnf": "root ::= ("}, GrammarError, "/properties/a/x-grammar"),
        ({"regex": "("}, RegexError, "/properties/a/x-grammar/regex"),
        ({"lark": "start: %json {}"}, UnsupportedError, "%json {} in the grammar of a string"),
        ({"lark": "start: <|x|>"}, UnsupportedError, "has no tokens"),
        ({"peg": "x"}, SchemaError, "found 'peg'"),
        ({"gbnf": "x", "start": "y"}, SchemaError, "'start'"),
        ({"gbnf": "x", "lark": "y"}, SchemaError, "must be an object such as"),
        ({"gbnf": 3}, SchemaError, "/properties/a/x-grammar/gbnf"),
        ("x", SchemaError, "found a string"),
    ],
)
def test_errors_name_keyword_and_pointer(
    grammar: Any, error: type[ConstrainError], words: str
) -> None:
    with pytest.raises(error) as caught:
        JsonSchema({"properties": {"a": {"x-grammar": grammar}}}).program()
    assert words in str(caught.value)
    pointer = getattr(caught.value, "pointer", "/properties/a/x-grammar")
    assert pointer.startswith("/properties/a/x-grammar")
