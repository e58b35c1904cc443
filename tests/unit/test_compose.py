"""Constraints made of constraints: their languages, their values, and what is refused."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import constrain
from constrain import (
    Choice,
    ConstrainError,
    Gbnf,
    JsonSchema,
    Lark,
    LimitExceededError,
    OneOf,
    Regex,
    Repeat,
    Sequence,
    Text,
    Token,
    TokenizerError,
    TokenRange,
    UnsatisfiableError,
    Vocabulary,
)
from tests.reference.grammar import SlowMachine

INTEGER = JsonSchema({"type": "integer"})
CALL = Sequence("<c>", INTEGER, "</c>")
WORDS = Lark('start: "a" "b"\n%ignore " "')


@pytest.mark.parametrize(
    ("spec", "valid", "invalid"),
    [
        (Sequence(), [""], ["a"]),
        (
            Sequence("a", "é", Regex("b|bc"), Choice(["x", "", "xy"])),
            ["aéb", "aébcxy"],
            ["aé", "ab"],
        ),
        (OneOf("a", "ab", Regex("c*")), ["a", "ab", "", "cc"], ["b", "abc"]),
        (Repeat("a", 2, 3, separator=","), ["a,a", "a,a,a"], ["a", "a,a,a,a", "a,a,"]),
        (Repeat("a", 0, 2, separator=","), ["", "a", "a,a"], ["a,a,a", ","]),
        (Repeat("ab", 1), ["ab", "abab"], ["", "aba"]),
        (Repeat(Repeat("a"), 2, None, separator=Repeat("b")), ["", "ab", "bbaba"], ["c"]),
        (Repeat("a", 0, 0, separator=","), [""], ["a"]),
        (Repeat(OneOf("", "a"), 3, 3), ["", "aaa"], ["aaaa"]),
        # What one part ignores is not ignored elsewhere.
        (Sequence(WORDS, "c", WORDS), ["abcab", " a b c a b "], ["abc", "ab cc"]),
        (Sequence("(", WORDS, Gbnf('root ::= "x" "y"')), ["( a b xy"], ["( a b x y"]),
        # Anchors and lookaheads see the part alone.
        (Sequence("a", Regex("^b$"), "c"), ["abc"], ["ab"]),
        (Sequence(Regex(r"a\b"), Regex(r"\Bb|c(?!d)"), "d"), ["acd"], ["abd"]),
        # Too large for one automaton, not for the grammar machine.
        (Sequence("(", Regex("(?:a|b)*a[ab]{20}"), ")"), ["(a" + "b" * 20 + ")"], ["(b)"]),
        (CALL, ["<c>12</c>", "<c> 1\n</c>"], ["<c></c>", "<c>1.5</c>", "<c>1"]),
        (Repeat(CALL, 1, 2), ["<c>1</c><c>2</c>"], ["", "<c>1</c><c>2</c><c>3</c>"]),
        (OneOf(JsonSchema({"const": "a"}), Repeat(INTEGER, 2, 2, separator=",")), ["1,2"], ["1"]),
        (
            Sequence("<c>", JsonSchema({"type": "integer"}, whitespace="compact"), "</c>"),
            ["<c>1</c>"],
            ["<c> 1</c>"],
        ),
    ],
)
def test_languages(spec: Any, valid: list[str], invalid: list[str]) -> None:
    machine = SlowMachine(spec.program())
    for text in valid:
        assert machine.accepts(text.encode()), text
    for text in invalid:
        assert not machine.accepts(text.encode()), text


@pytest.mark.parametrize(
    ("spec", "valid", "invalid"),
    [
        (Text(), ["", "é\n", "a" * 50], []),
        (Text(max_chars=3), ["", "é€😀"], ["abcd"]),
        (Text(max_chars=0), [""], ["a"]),
        (Text(excluding="<t>"), ["", "<t", "<<t", "t>"], ["<t>", "a<t>b", "<<t>"]),
        (Text(excluding=["ab", "é"]), ["ba", "aab"[:2]], ["ab", "aab", "xé"]),
        (Text(until="</a>"), ["</a>", "x</a>", "é<</a>", "</</a>"], ["", "x", "</a>x", "</a></a>"]),
        (Text(until="aab"), ["aab", "aaab", "abaab"], ["aabaab", "ab"]),
        (Text(until=["ab", "b"]), ["b", "ab"], ["bb", "abb", "a"]),
        (Text(until=["abab", "ba"]), ["aba", "bba", "ba"], ["abab", "b"]),
        (Text(until="ab", max_chars=2), ["ab", "aaab", "éaab"], ["xxxab", "aaaab", "éaaab"]),
        (Text(until=["ab", "é"], max_chars=1), ["aab", "bé", "é"], ["bbé", "aaab"]),
        (Text(until="!", excluding=["a!", "bb"]), ["!", "b!", "ab!"], ["a!", "abb!", "bb"]),
        (Text(until="€€"), ["€€", "€a€€", "\u20ad€€"], ["€a€", "€€€"]),
    ],
)
def test_free_text(spec: Text, valid: list[str], invalid: list[str]) -> None:
    machine = SlowMachine(spec.program())
    for text in valid:
        assert machine.accepts(text.encode()), text
    for text in invalid:
        assert not machine.accepts(text.encode()), text
    assert not machine.accepts(b"\xff\x00\x00\x01")
    assert not machine.accepts(b"\xc3")


def _vocabulary() -> Vocabulary:
    tokens: list[bytes | None] = [b"a", b"<t>", None, None, b"\xc3", None, b"b"]
    return Vocabulary([*tokens, *(None for _ in range(700))], eos_token_ids=[5])


def _special(token_id: int) -> bytes:
    return b"\xff" + token_id.to_bytes(3, "big")


def test_tokens() -> None:
    vocabulary = _vocabulary()

    def machine(spec: Any) -> SlowMachine:
        return SlowMachine(spec.program_for(vocabulary))

    assert machine(Token(1)).accepts(b"<t>")
    assert machine(Token("<t>")).accepts(b"<t>")
    assert machine(Token(2)).accepts(_special(2))
    assert not machine(Token(2)).accepts(_special(3))
    text = machine(Sequence("a", Text(until=[Token(2), "."]), "b"))
    assert text.accepts(b"ax" + _special(2) + b"b")
    assert text.accepts(b"ax.b")
    assert not text.accepts(b"ax" + _special(3) + b"b")
    assert not text.accepts(b"ax." + _special(2) + b"b")
    bounded = machine(Text(until=Token(2), max_chars=1))
    assert bounded.accepts("é".encode() + _special(2))
    assert not bounded.accepts(b"ab" + _special(2))
    ids = machine(TokenRange(1, 600))
    assert ids.accepts(b"<t>")
    assert ids.accepts(b"b")
    assert not ids.accepts(b"a")
    accepted = [i for i in range(707) if ids.accepts(_special(i))]
    assert accepted == [i for i in range(1, 601) if vocabulary.tokens[i] is None]
    across = machine(TokenRange(255, 257))
    assert [i for i in range(600) if across.accepts(_special(i))] == [255, 256, 257]


def test_tokens_that_are_none() -> None:
    vocabulary = _vocabulary()
    for spec in (Token("<nothing>"), Token(5000), TokenRange(3, 5000)):
        with pytest.raises(TokenizerError) as caught:
            spec.program_for(vocabulary)
        assert str(getattr(spec, "reference", 5000)) in str(caught.value)
    with pytest.raises(ConstrainError, match="piece of a character"):
        Text(until=Token(4)).program_for(vocabulary)
    with pytest.raises(ConstrainError, match="excluded"):
        Text(until=Token(1), excluding="t").program_for(vocabulary)
    with pytest.raises(constrain.GrammarError, match=r"use constrain\.compile"):
        Sequence("a", Token(2)).program()


def test_values() -> None:
    specs = [
        Sequence("a", INTEGER),
        OneOf("a", INTEGER),
        Repeat("a", 1, 2, separator=","),
        Repeat("a", 1, 2),
        Text(until=["a", Token(3)], max_chars=2),
        Text(excluding="a"),
        Token("x"),
        Token(3),
        TokenRange(1, 2),
    ]
    for spec in specs:
        copy = pickle.loads(pickle.dumps(spec))
        assert copy == spec
        assert hash(copy) == hash(spec)
        with pytest.raises(AttributeError):
            setattr(spec, next(iter(inspect.signature(type(spec)).parameters)), ())
    assert len(set(specs)) == len(specs)
    assert Sequence("a") != OneOf("a")
    assert repr(Repeat(Sequence("a", Token(3)), 1, separator=",")) == (
        "Repeat(Sequence('a', Token(3)), 1, separator=',')"
    )
    assert repr(Text(until=["a", Token(3)], max_chars=2)) == (
        "Text(until=('a', Token(3)), max_chars=2)"
    )
    assert len(repr(Sequence(*["x" * 1000] * 50))) < 1000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sequence("a", 3), "part 1 of Sequence must be a str or a constraint"),  # type: ignore[arg-type]
        (lambda: Sequence(JsonSchema), "part 0 of Sequence"),  # type: ignore[arg-type]
        (lambda: OneOf(), "at least one part"),
        (lambda: OneOf("\ud800"), "lone surrogate"),
        (lambda: Repeat("a", -1), "min must be a number"),
        (lambda: Repeat("a", 3, 2), "max 2 is smaller than min 3"),
        (lambda: Repeat("a", True), "min must be a number"),
        (lambda: Text(until=""), "empty text"),
        (lambda: Text(until=[]), "names no text"),
        (lambda: Text(until=3), "a str or a Token"),  # type: ignore[arg-type]
        (lambda: Text(excluding=[Token(3)]), "excluding is a str"),  # type: ignore[list-item]
        (lambda: Text(max_chars=-1), "max_chars must be a number"),
        (lambda: Text(until="abc", excluding="b"), "has 'b' in it, which is excluded"),
        (lambda: Token(""), "not empty"),
        (lambda: Token(True), "by its id or its name"),
        (lambda: TokenRange(3, 2), "2 is smaller than 3"),
    ],
)
def test_bad_arguments(make: Any, words: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        make()
    assert words in str(caught.value)


def test_errors_of_parts_keep_their_words() -> None:
    with pytest.raises(constrain.SchemaError) as schema:
        Sequence("a", JsonSchema({"properties": {"x": {"type": "strin"}}})).program()
    assert schema.value.pointer == "/properties/x/type"
    with pytest.raises(constrain.RegexError):
        Sequence("a", Regex("(")).program()
    with pytest.raises(constrain.GrammarError) as grammar:
        Sequence("a", Gbnf("root ::= b")).program()
    assert grammar.value.column == 10
    with pytest.raises(UnsatisfiableError, match="Sequence"):
        Sequence("a", Regex("[^\\s\\S]")).program()
    never = JsonSchema({"type": "object", "required": ["a"], "additionalProperties": False})
    for spec in (
        Sequence("a", never),
        Lark('start: "a" %json {"type": "integer", "minimum": 3, "maximum": 2}'),
    ):
        with pytest.raises(UnsatisfiableError, match="nothing can satisfy this schema"):
            constrain.compile(spec, _vocabulary())
    assert constrain.compile(OneOf("a", never), _vocabulary()).matcher().try_advance(0)


def test_limits() -> None:
    deep: Any = "a"
    for _ in range(100):
        deep = Sequence(deep)
    with pytest.raises(LimitExceededError) as caught:
        Sequence(deep)
    assert caught.value.limit == "nesting"
    double: Any = Sequence("a", "b")
    for _ in range(14):
        double = Sequence(double, double)
    with pytest.raises(LimitExceededError) as caught:
        Sequence(double, double)
    assert caught.value.limit == "parts"
    with pytest.raises(LimitExceededError) as caught:
        Sequence(Regex("(?:a?){50}" * 100 + "x")).program()
    assert caught.value.limit == "max_states"
    with pytest.raises(LimitExceededError) as caught:
        Repeat("a", 10**9)
    assert caught.value.limit == "repeat"
    with pytest.raises(LimitExceededError) as caught:
        Text(until="</think>", max_chars=10**7).program()
    assert caught.value.limit == "max_chars"


def test_long_bounds() -> None:
    spec = Sequence("<", Text(until="</think>", max_chars=1500))
    machine = SlowMachine(spec.program())
    assert machine.accepts(b"<" + b"a" * 1500 + b"</think>")
    assert not machine.accepts(b"<" + b"a" * 1501 + b"</think>")


def test_shared_parts_are_not_copied() -> None:
    part: Any = Sequence("a", OneOf("b", "c"))
    for _ in range(12):
        part = Sequence(part, part)
    program = part.program()
    machine = SlowMachine(program)
    assert machine.accepts(b"abac" * 2048)
    assert not machine.accepts(b"abac" * 2047)
