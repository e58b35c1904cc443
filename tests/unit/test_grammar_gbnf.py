"""GBNF: what is read, and what is refused where."""

from __future__ import annotations

import pytest

import constrain
from constrain.errors import (
    GrammarError,
    LimitExceededError,
    UnsatisfiableError,
    UnsupportedError,
)
from constrain.specs import Gbnf
from tests.reference.grammar import SlowMachine


def _accepts(grammar: str, text: str) -> bool:
    return SlowMachine(Gbnf(grammar).program()).accepts(text.encode())


@pytest.mark.parametrize(
    ("grammar", "valid", "invalid"),
    [
        ('root ::= "a" | "b" c\nc ::= "d"*', ["a", "b", "bdd"], ["", "ad", "c"]),
        ('root ::= ("a" | "b"\n  | "c") "d"? # comment', ["a", "cd"], ["d", "abd"]),
        ('root ::= "a"\n | "b"\n# end', ["a", "b"], ["ab"]),
        ("root ::= [^a-c\\n]{2}", ["xy", "é日"], ["x", "xa", "x\n", "xyz"]),
        ("root ::= [\\]^-]+", ["]^-"], ["[", "a"]),
        ('root ::= "\\x41\\u00e9\\U0001F600\\t\\\\\\""', ['Aé😀\t\\"'], ["A"]),
        ("root ::= .{1,2}", ["a", "😀\n"], ["", "abc"]),
        ('root ::= "a"{2,} "b"{0,1}', ["aa", "aaaab"], ["a", "aabb"]),
        ('root ::= "" | "x" root', ["", "xxx"], ["y"]),
        ('root ::= root "a" | "b"', ["b", "baa"], ["a", ""]),
        ('root ::= a_b "x" *\na_b ::= "q"', ["q", "qxx"], ["x"]),
    ],
)
def test_accepts_exactly(grammar: str, valid: list[str], invalid: list[str]) -> None:
    for text in valid:
        assert _accepts(grammar, text), text
    for text in invalid:
        assert not _accepts(grammar, text), text


@pytest.mark.parametrize(
    ("grammar", "line", "column", "words"),
    [
        ("", 1, 1, "no rules"),
        ('main ::= "a"', 1, 1, "root rule 'root'"),
        ("root ::= item", 1, 10, "'item' is used but not defined"),
        ('root ::= "a"\nb = "c"', 2, 3, "expected '::='"),
        ('root ::= "abc', 1, 10, "not closed"),
        ("root ::= [abc", 1, 10, "not closed"),
        ("root ::= []", 1, 10, "empty class"),
        ("root ::= [z-a]", 1, 11, "end is before its start"),
        ('root ::= ("a"', 1, 10, "not closed"),
        ('root ::= "a")', 1, 13, "found ')'"),
        ('root ::= "\\q"', 1, 11, "unknown escape"),
        ('root ::= "\\xZZ"', 1, 13, "2 hexadecimal digits"),
        ('root ::= "a"{3,2}', 1, 13, "maximum 2 is smaller than 3"),
        ('root ::= "a"{,2}', 1, 14, "a repetition such as"),
        ('root ::= "a"\nroot ::= "b"', 2, 1, "defined twice"),
        ("root ::= <<<", 1, 10, "unexpected character '<'"),
        ('root ::= "\\ud800"', 1, 10, "lone surrogate"),
    ],
)
def test_errors_name_the_place(grammar: str, line: int, column: int, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Gbnf(grammar).program()
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("reference", ["<[12]>", "<think>", "!<[7]>"])
def test_token_references_are_refused_by_name(reference: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        Gbnf(f'root ::= "a" {reference}').program()
    assert caught.value.feature == "token reference"
    assert reference in str(caught.value)


def test_a_grammar_without_texts_is_unsatisfiable() -> None:
    with pytest.raises(UnsatisfiableError, match="root"):
        Gbnf('root ::= "a" root').program()


def test_limits_are_named() -> None:
    with pytest.raises(LimitExceededError) as caught:
        Gbnf("root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000).program()
    assert caught.value.limit == "nesting"
    with pytest.raises(LimitExceededError) as caught:
        Gbnf('root ::= ("a"{1000}){1000}').program()
    assert caught.value.limit == "grammar_states"
    with pytest.raises(LimitExceededError) as caught:
        Gbnf('root ::= "a"{1,1000000}').program()
    assert caught.value.limit == "repeat"


def test_specs_are_values() -> None:
    assert Gbnf('root ::= "a"') == Gbnf('root ::= "a"')
    assert hash(Gbnf('root ::= "a"')) == hash(Gbnf('root ::= "a"'))
    assert Gbnf('root ::= "a"') != Gbnf('root ::= "b"')
    with pytest.raises(constrain.ConstrainError):
        Gbnf(3)  # type: ignore[arg-type]
