"""XGrammar's EBNF where it differs from GBNF.  (What it accepts was compared with XGrammar 0.2.)"""

from __future__ import annotations

import pytest

import constrain
from constrain.errors import ConstrainError, GrammarError, UnsupportedError
from constrain.specs import Gbnf
from tests.reference.grammar import SlowMachine

_VOCABULARY = constrain.Vocabulary([b"a", b"b", None, None], [3], special_tokens={"<x>": 2})


@pytest.mark.parametrize(
    ("grammar", "valid", "invalid"),
    [
        ('root ::= "a"\n "b"', ["ab"], ["a"]),
        ('root ::= a.b [x]\na.b ::= "q"\n', ["qx"], ["q"]),
        ('root ::= ("a" | "b")+ "c"? ()', ["ab", "bc"], ["", "cc"]),
        ('root ::= "a" {1, 2} ("b"?)?', ["a", "aab"], ["aaa", "abb"]),
        ('root ::= "\\x1F600" "\\/\\0\\e"', ["\U0001f600/\0\x1b"], ["\x1f"]),
        ("root ::= [^] [a\\-z] [-+] [+-]", ["\na++", "x-+-"], ["ab++"]),
        ('root ::= "a" (= "b" [c]+)\nx ::= root "b"', ["a"], ["ab"]),
        ('root ::= r [bc]\nr ::= "a" (= "b")', ["ab", "ac"], ["a"]),
        ('root ::= "x" Token(0)', ["xa"], ["xb"]),
    ],
)
@pytest.mark.filterwarnings("ignore::constrain.errors.GrammarWarning")
def test_accepts_exactly(grammar: str, valid: list[str], invalid: list[str]) -> None:
    machine = SlowMachine(Gbnf(grammar, dialect="xgrammar").program_for(_VOCABULARY))
    for text in valid:
        assert machine.accepts(text.encode()), text
    for text in invalid:
        assert not machine.accepts(text.encode()), text


@pytest.mark.parametrize(
    ("grammar", "column", "words"),
    [
        ("root ::= .", 10, "something to match"),
        ('root ::= "a" |', 15, "something to match"),
        ('root ::= "a"**', 14, "repeats a repetition"),
        ('root ::= "a" (="b") "c"', 21, "found '\"'"),
        ("root ::= [\\d]", 11, "unknown escape"),
        ('root ::= "a" r ::= "b"', 14, "first thing on its line"),
        ("root ::= <x>", 10, "something to match"),
        ("root ::= true", 10, "something to match"),
        ("root ::= Token(x)", 10, "ids of tokens"),
        ('root ::= "a', 10, "not closed"),
    ],
)
def test_errors_name_the_place(grammar: str, column: int, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Gbnf(grammar, dialect="xgrammar").program()
    assert words in str(caught.value)
    assert caught.value.column == column


def test_what_is_refused_by_name() -> None:
    for grammar, feature in (
        ('root ::= Regex("a+")', "macro Regex"),
        ('root ::= TagDispatch(("a", r))\nr ::= "b"', "macro TagDispatch"),
        ('root ::= r\nr[max_tokens=3] ::= "b"', "rule options"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            Gbnf(grammar, dialect="xgrammar").program()
        assert caught.value.feature == feature
    with pytest.raises(ConstrainError, match="dialect"):
        Gbnf('root ::= "a"', dialect="ebnf")
    with pytest.raises(GrammarError):
        Gbnf('root ::= "a"\n "b"').program()


def test_tokens() -> None:
    machine = SlowMachine(
        Gbnf("root ::= Token(0, 2) ExcludeToken(2)", dialect="xgrammar").program_for(_VOCABULARY)
    )
    assert machine.accepts(b"ab")
    assert machine.accepts("\xffé".encode("latin-1")[:1] + b"\0\0\x02" + "é".encode())
    assert not machine.accepts(b"a\xff\0\0\x02")
