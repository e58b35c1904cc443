"""Lark grammars with JSON Schemas, tokens and other constraints inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain import Gbnf, JsonSchema, Lark, Repeat, Text, Token
from constrain.errors import (
    ConstrainError,
    GrammarError,
    GrammarWarning,
    LimitExceededError,
    SchemaError,
    TokenizerError,
    UnsupportedError,
)
from tests.reference.grammar import SlowMachine

pytest.importorskip("lark")

_VOCABULARY = constrain.Vocabulary(
    [b"a", b"b", b"<t>", None, None, None],
    [5],
    special_tokens={"<|x|>": 3, "<|y|>": 4, "<|end|>": 5},
)
X, Y = (b"\xff" + token_id.to_bytes(3, "big") for token_id in (3, 4))


@pytest.mark.parametrize(
    ("spec", "valid", "invalid"),
    [
        (
            Lark('start: "a" %json {"type": "integer"} "b"\n%ignore " "'),
            [b"a1b", b" a 1  b ", b"a\n1b"],
            [b"ab", b"a1.5b", b"a\n1\nb\n"],
        ),
        (
            Lark('start: call+\ncall: "[" %json {\n  "const": 1 // 2\n}* "]"'.replace(" // 2", "")),
            [b"[1]", b"[]", b"[1][11]"],
            [b"[2]", b""],
        ),
        (
            Lark('start: "a" <|x|> x* <[3-4]>\nx: <t> | <[^3]>\n%ignore " "'),
            [b"a" + X + Y, b"a " + X + b" <t> q " + Y + b" "],
            [b"a" + X, b"a" + Y + X],
        ),
        (Lark("start: <[*]>+ <t>"), [X + Y + b"<t>", "é<t>".encode()], [b"<t>"]),
        (
            Lark(
                'start: @j @w JJ?\n%declare JJ\n%ignore " "',
                grammars={
                    "j": JsonSchema({"const": 1}, whitespace="compact"),
                    "w": "w",
                    "JJ": Token(3),
                },
            ),
            [b"1w" + X, b" 1 w  " + X + b" ", b"1w"],
            [b"1w1", X],
        ),
        (
            Lark(
                "start: foo | @gb foo\n%declare foo",
                grammars={
                    "foo": Lark('start: start "x" | "x"'),
                    "gb": Gbnf('root ::= "(" root? ")"'),
                },
            ),
            [b"xx", b"(())x"],
            [b"", b"(()x"],
        ),
        (
            Lark('start: t{<|x|>} t{@w}\nt{one}: "(" one ")"', grammars={"w": Repeat("w")}),
            [b"(" + X + b")(ww)", b"(" + X + b")()"],
            [b"(w)(w)"],
        ),
        # No forms: they stand in strings, patterns and comments.
        (
            Lark('start: "@w" /<a>%json/ // <|z|> @q\n  | "<|x|>" # %json'),
            [b"@w<a>%json", b"<|x|>"],
            [X],
        ),
        (Lark("start: /(.|\\n)+/ @end", grammars={"end": Text(until="!")}), [b"a!b!"], [b"a"]),
    ],
)
def test_accepts_exactly(spec: Lark, valid: list[bytes], invalid: list[bytes]) -> None:
    machine = SlowMachine(spec.program_for(_VOCABULARY))
    for text in valid:
        assert machine.accepts(text), text
    for text in invalid:
        assert not machine.accepts(text), text


def test_forms_in_imported_files(tmp_path: Path) -> None:
    (tmp_path / "calls.lark").write_text(
        'call: "(" %json {"type": "null"} ")" | inner\n%import .deep.inner\n', encoding="utf-8"
    )
    (tmp_path / "deep.lark").write_text("inner: <|x|> @w\n", encoding="utf-8")
    spec = Lark(
        "%import calls.call\nstart: call <|y|>", import_paths=[tmp_path], grammars={"w": "w"}
    )
    machine = SlowMachine(spec.program_for(_VOCABULARY))
    assert machine.accepts(b"(null)" + Y)
    assert machine.accepts(X + b"w" + Y)
    assert not machine.accepts(b"(1)" + Y)
    (tmp_path / "deep.lark").write_text("inner: <|x|>\n  <|q|>\n", encoding="utf-8")
    with pytest.raises(GrammarError) as caught:
        spec.program_for(_VOCABULARY)
    assert caught.value.file is not None
    assert caught.value.file.endswith("deep.lark")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("grammar", "line", "column", "words"),
    [
        # Places behind forms are places in the text as it was written.
        ('start: %json {"type": "integer"} item', 1, 34, "'item' used but not defined"),
        ('start: %json {\n"type": "integer"\n}  ) x', 3, 4, "unexpected ')'"),
        ('start: <|x|> <|x|> "a" )', 1, 24, "unexpected ')'"),
        ('start: @w "a"\nb: (', 2, 5, "Expecting a value"),
        ('start: %json {"a": }', 1, 20, "malformed JSON"),
        ('start: "a"\n  | %json 3', 2, 11, "an object, true or false"),
        ("start: %json", 1, 13, "expected a JSON Schema"),
        ("start: <[a]>", 1, 8, "malformed token reference"),
        ("start: <[3-2]>", 1, 8, "ends before its start"),
        ('start: X\nX: "a" <|x|>', 2, 8, "cannot be part of the terminal X"),
        ("start: X\nX: %json {}", 2, 4, "cannot be part of the terminal X"),
        ("start: @foo", 1, 8, "@foo is not bound"),
        ('start: "a"\n%ignore <|x|>', 2, 9, "only terminals can be ignored"),
        ('start: "a" < b', 1, 12, ""),
        ("start: <|x|> NOTHING\n%import common.NOTHING", 1, 14, "NOTHING"),
    ],
)
def test_errors_name_the_place(grammar: str, line: int, column: int, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Lark(grammar, grammars={"w": "w"}).program_for(_VOCABULARY)
    assert words in str(caught.value)
    assert caught.value.line == line
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("grammar", "error", "words"),
    [
        ("start: <|z|>", TokenizerError, "<|z|> at line 1, column 8"),
        ("start: <[99]>", TokenizerError, "ids are 0 to 5"),
        ("start: <[^0]>", UnsupportedError, "(line 1, column 8) excludes the token 0"),
        ('start: "a"\n | %json {"type": "in"}', SchemaError, "%json at line 2, column 4"),
        (
            "start: X\n%declare X",
            UnsupportedError,
            "%declare X is not supported: the name stands for no text",
        ),
        (
            "start: x\n%declare x",
            UnsupportedError,
            "%declare x is not supported: the name stands for no text",
        ),
        ("start: %json " + "[" * 100_000, LimitExceededError, "nested too deeply"),
        ("start: " + "(" * 60_000, LimitExceededError, "more than 200 deep (line 1, column 208)"),
    ],
)
def test_other_errors_name_the_place(grammar: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        Lark(grammar).program_for(_VOCABULARY)
    assert words in str(caught.value)


def test_what_nothing_uses_is_warned_of() -> None:
    spec = Lark(
        'start: A\nx: "b" Y\nY: Z\nZ: "z"\nA: B\nB: "b"\n%import common.WS\n', grammars={"w": "w"}
    )
    with pytest.warns(GrammarWarning):
        compiled = constrain.compile(spec, _VOCABULARY)
    assert sorted(compiled.report()["warnings"]) == [
        "the grammar never asks for 'w' of grammars",
        "the rule 'x' is never used (line 2, column 1)",
        "the terminal 'WS' is never used (line 7, column 16)",
        "the terminal 'Y' is never used (line 3, column 1)",
        "the terminal 'Z' is never used (line 4, column 1)",
    ]


def test_values() -> None:
    spec = Lark("start: @a", grammars={"a": "x", "b": JsonSchema({})})
    assert spec == Lark("start: @a", grammars={"b": JsonSchema({}), "a": "x"})
    assert hash(spec) == hash(Lark("start: @a", grammars={"b": JsonSchema({}), "a": "x"}))
    assert spec != Lark("start: @a", grammars={"a": "x"})
    bad: Any
    for bad in (["a"], {"a": 3}, {3: "a"}, {"a b": "x"}, 5):
        with pytest.raises(ConstrainError):
            Lark("start: @a", grammars=bad)
    nested: Any = "x"
    for _ in range(100):
        nested = Lark("start: @a", grammars={"a": nested})
    with pytest.raises(LimitExceededError):
        Lark("start: @a", grammars={"a": nested})
