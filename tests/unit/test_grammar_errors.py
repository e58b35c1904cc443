"""Bad grammars: one kind of error, with its place and what was expected."""

from __future__ import annotations

import pytest

import constrain
from constrain.errors import (
    GrammarError,
    GrammarWarning,
    LimitExceededError,
    UnsatisfiableError,
    UnsupportedError,
)
from constrain.specs import Gbnf, Lark
from tests.reference.vocabularies import byte_vocabulary

pytest.importorskip("lark")

_DEEP = 60_000


def _compile(spec: Gbnf | Lark) -> constrain.CompiledConstraint:
    return constrain.compile(spec, byte_vocabulary().vocabulary)


@pytest.mark.parametrize(
    ("spec", "line", "column", "words"),
    [
        (Lark('start: "a"\n  | item\n'), 2, 5, "'item' used but not defined"),
        (Lark('start: "a"\n  | ITEM\n'), 2, 5, "'ITEM' used but not defined"),
        (Gbnf('root ::= "a"\n\nb ::= "x" | item\n'), 3, 13, "'item' is used but not defined"),
        (Lark('x: "a"\nstart: "b" start\n'), 2, 1, "derives no text: expected an alternative"),
        (Gbnf('x ::= "a"\nroot ::= x root\n'), 2, 1, "derives no text: expected an alternative"),
        (Lark("start: A\nA: /a(b/\n"), 2, 5, "malformed terminal A: missing )"),
        (Lark('start: "x" /[b-a]/\n'), 1, 13, "bad character range"),
        (Lark('start: "a"\n%skip " "\n'), 2, 1, "unknown directive %skip: expected one of %ign"),
        (Lark('start: A "a"\n%declare A\n'), 2, 10, "%declare A is not supported"),
        (Lark("start: " + "(" * _DEEP + '"a"' + ")" * _DEEP), 1, 208, "nested more than 200"),
        (Lark("start: " + "[" * _DEEP), 1, 208, "nested more than 200"),
        (Gbnf("root ::= " + "(" * _DEEP + '"a"' + ")" * _DEEP), 1, 110, "nested more than 100"),
        (Lark("start: /" + "(" * _DEEP + "a" + ")" * _DEEP + "/"), 1, 9, "malformed terminal"),
        (Lark("start: /(a|b)*a[ab]{60}/\n"), 1, 9, "more than 20000 states"),
        (Lark('start: "x"\n | /[a-z]{1,1000000}/\n'), 2, 5, "too long with its repeats"),
        (Gbnf('root ::= "a"{1,1000000}'), 1, 13, "a repetition of more than"),
    ],
)
def test_errors_have_a_place(spec: Gbnf | Lark, line: int, column: int, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        _compile(spec)
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line}, column {column}" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "kind", "field", "value"),
    [
        (Lark('start: "b" start'), UnsatisfiableError, "pointer", None),
        (Gbnf("root ::= " + "(" * 300), LimitExceededError, "limit", "nesting"),
        (Lark("start: " + "(" * 300), LimitExceededError, "limit", "nesting"),
        (Lark("start: /[a-z]{1,1000000}/"), LimitExceededError, "limit", "repeat"),
        (Lark("start: A\n%declare A"), UnsupportedError, "feature", "%declare"),
    ],
)
def test_errors_are_of_their_other_kind_too(
    spec: Gbnf | Lark, kind: type[Exception], field: str, value: object
) -> None:
    with pytest.raises(kind) as caught:
        _compile(spec)
    assert isinstance(caught.value, GrammarError)
    assert getattr(caught.value, field) == value


def test_files_are_named(tmp_path) -> None:
    (tmp_path / "bad.lark").write_text('a: "x"\nb: "y" (\n', encoding="utf-8")
    with pytest.raises(GrammarError) as caught:
        _compile(Lark("%import bad.a\nstart: a", import_paths=[tmp_path]))
    assert caught.value.file == str(tmp_path / "bad.lark")
    assert caught.value.line == 2


@pytest.mark.parametrize("spec", [Lark('start: "a"\nx: "b"'), Gbnf('root ::= "a"\nx ::= "b"')])
def test_unused_rules_are_warned_of(spec: Gbnf | Lark) -> None:
    with pytest.warns(GrammarWarning, match=r"'x' is never used \(line 2, column 1\)"):
        _compile(spec)


@pytest.mark.parametrize(
    "pattern",
    ["[a-z]{1,10000}", r"\w{1,10000}", "[a-z]{1,2000}@[a-z]{1,2000}", r"(?:[a-z]\d?){0,3000}"],
)
def test_counted_repeats_are_bounded(pattern: str) -> None:
    """They are automata of that length, or refused by the name of the limit; both at once."""
    try:
        compiled = _compile(constrain.Sequence("<", constrain.Regex(pattern), ">"))
    except LimitExceededError:
        return
    matcher = compiled.matcher()
    assert all(matcher.try_advance(byte) for byte in b"<a")
    assert matcher.fill_bitmask(constrain.allocate_bitmask(1, 257)) is None
    assert compiled.matcher().completion(50) is not None


@pytest.mark.parametrize("pattern", ["([a-z]{1,1000}){1,1000}", "(a{1,1000}){1000}", "a{1000000}"])
def test_repeats_of_repeats_are_refused(pattern: str) -> None:
    with pytest.raises(LimitExceededError):
        _compile(constrain.Sequence("<", constrain.Regex(pattern), ">"))
