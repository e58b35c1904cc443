"""GBNF: what is read, and what is refused where."""

from __future__ import annotations

import pytest

import constrain
from constrain.errors import (
    GrammarError,
    GrammarWarning,
    LimitExceededError,
    TokenizerError,
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


def _special(token_id: int) -> bytes:
    return b"\xff" + token_id.to_bytes(3, "big")


_VOCABULARY = constrain.Vocabulary(
    [b"a", b"<t>", b"\xc3", None, None, None],
    [5],
    special_tokens={"<think>": 3, "</think>": 4, "<end>": 5},
)


@pytest.mark.parametrize(
    ("grammar", "valid", "invalid"),
    [
        ("root ::= <[3]> [a-z] <[1]>", [_special(3) + b"x<t>"], [_special(4) + b"x<t>", b"x<t>"]),
        (
            "root ::= <think> thinking </think> .*\nthinking ::= !</think>*",
            [
                _special(3) + "é<t>".encode() + _special(3) + _special(4) + b"x",
                _special(3) + _special(4),
            ],
            [_special(3) + b"x", _special(3) + _special(4) + _special(4), _special(5)],
        ),
        ("root ::= !<think>{2} <t>", [b"ab<t>", b"a" + _special(4) + b"<t>"], [b"a<t>", b"<t>"]),
        # A token that writes text: its text does not occur.
        ("root ::= !<t>* <t>", [b"<t>", b"ab<<t>"], [b"<t><t>", b"a"]),
        ("root ::= (!<[1]>+ | [0-9]) <t>", [b"ab<t>"], [b"<t>", b"<t><t>"]),
        ("root ::= !<t>{0,2}", [b"", b"ab"], [b"abc", b"<t>"]),
    ],
)
def test_token_references(grammar: str, valid: list[bytes], invalid: list[bytes]) -> None:
    machine = SlowMachine(Gbnf(grammar).program_for(_VOCABULARY))
    for text in valid:
        assert machine.accepts(text), text
    for text in invalid:
        assert not machine.accepts(text), text


@pytest.mark.parametrize(
    ("grammar", "error", "words"),
    [
        ("root ::= <nothing>", TokenizerError, "<nothing> (line 1, column 10)"),
        ("root ::= <[77]>", TokenizerError, "its ids are 0 to 5"),
        ("root ::= !<t>", UnsupportedError, "!<t> (line 1, column 10)"),
        ("root ::= !<t>{2}", UnsupportedError, "a whole repetition such as !<t>*"),
        ("root ::= (!<t> | [0-9])*", UnsupportedError, "!<t>"),
        ("root ::= !<[2]>*", GrammarError, "piece of a character"),
        ("root ::= <a", GrammarError, "unexpected character '<'"),
    ],
)
def test_token_references_that_mean_nothing(
    grammar: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        Gbnf(grammar).program_for(_VOCABULARY)
    assert words in str(caught.value)


def test_token_references_need_a_vocabulary() -> None:
    with pytest.raises(GrammarError, match="vocabulary") as caught:
        Gbnf('root ::= "a"\n  | <think>').program()
    assert (caught.value.line, caught.value.column) == (2, 5)


def test_unused_rules_are_warned_of() -> None:
    with pytest.warns(GrammarWarning, match=r"'b' is never used \(line 2, column 1\)"):
        program = Gbnf('root ::= "a"\nb ::= c\nc ::= "c"').program()
    assert program.notes["warnings"] == (
        "the rule 'b' is never used (line 2, column 1)",
        "the rule 'c' is never used (line 3, column 1)",
    )


def test_a_grammar_without_texts_is_unsatisfiable() -> None:
    with pytest.raises(UnsatisfiableError, match="root"):
        Gbnf('root ::= "a" root').program()


def test_limits_are_named() -> None:
    with pytest.raises(LimitExceededError) as caught:
        Gbnf("root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000).program()
    assert caught.value.limit == "nesting"
    with pytest.raises(LimitExceededError) as caught:
        Gbnf('root ::= "a"' + "+" * 60_000).program()
    assert caught.value.limit == "nesting"
    with pytest.raises(LimitExceededError) as caught:
        Gbnf('root ::= ("a"{1000}){1000}').program()
    assert caught.value.limit == "max_states"
    with pytest.raises(LimitExceededError) as caught:
        Gbnf('root ::= "a"{1,1000000}').program()
    assert caught.value.limit == "repeat"


def test_specs_are_values() -> None:
    assert Gbnf('root ::= "a"') == Gbnf('root ::= "a"')
    assert hash(Gbnf('root ::= "a"')) == hash(Gbnf('root ::= "a"'))
    assert Gbnf('root ::= "a"') != Gbnf('root ::= "b"')
    with pytest.raises(constrain.ConstrainError):
        Gbnf(3)  # type: ignore[arg-type]
