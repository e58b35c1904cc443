"""Special tokens in grammars, and schemas inside grammars: what matchers and masks make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import constrain
from constrain import (
    Choice,
    JsonSchema,
    Lark,
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
from constrain.vocabulary import spelled
from tests.reference.brute import mask_bits, tried_mask

_TEXTS = ['"a"', '"', '"}', "{", "}", '"x":', ":", "1", "2", "a", "b", "<", ">", " ", "[", "]", ","]
CALL, END, THINK, PAD = 20, 21, 300, 700
EOS, STOP = 22, 23


def _vocabulary() -> Vocabulary:
    tokens: list[bytes | None] = [text.encode() for text in _TEXTS]
    tokens += [b"\xff", b"x\xffy", b"end"]
    tokens += [None] * (PAD - len(tokens))
    names = {"<call>": CALL, "<end>": END, "<think>": THINK, "<eos>": EOS, "<stop>": STOP}
    return Vocabulary(tokens, [EOS, STOP], size=PAD + 5, special_tokens=names)


VOCABULARY = _vocabulary()
INTEGER = JsonSchema({"type": "integer"}, whitespace="compact")


def _ids(text: str) -> list[int]:
    return [_TEXTS.index(one) for one in text.split("|")]


def _allowed(matcher: Any) -> list[int]:
    bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
    found = mask_bits(matcher, bitmask, VOCABULARY.size)
    tried = tried_mask(matcher, VOCABULARY.size)
    assert found.tolist() == tried.tolist()
    return [int(token) for token in np.flatnonzero(found)]


@pytest.mark.parametrize("token", [CALL, END, THINK, EOS, STOP, PAD - 1, PAD + 4, 24, 256, 255])
def test_the_core_spells_tokens_as_python_does(token: int) -> None:
    assert VOCABULARY.token_bytes(token) == spelled(token)
    matcher = constrain.compile(Sequence(Token(token), "a"), VOCABULARY).matcher()
    assert _allowed(matcher) == [token]
    matcher.advance(token)
    assert _allowed(matcher) == _ids("a")


def test_references_to_tokens() -> None:
    assert VOCABULARY.token_bytes("<think>") == spelled(THINK) == b"\xff\x00\x01\x2c"
    assert VOCABULARY.token_bytes('"x":') == b'"x":'
    assert VOCABULARY.token_bytes(0) == b'"a"'
    for wrong in ("<thunk>", PAD + 5, -1, 17, 18):
        with pytest.raises(TokenizerError, match=str(wrong)):
            VOCABULARY.token_bytes(wrong)


def test_ranges_of_tokens() -> None:
    matcher = constrain.compile(Sequence("a", TokenRange(250, 520)), VOCABULARY).matcher()
    assert _allowed(matcher) == _ids("a")
    matcher.advance(_ids("a")[0])
    assert _allowed(matcher) == list(range(250, 521))
    everything = constrain.compile(TokenRange(0, PAD + 4), VOCABULARY).matcher()
    # Not those with a byte that no text has.
    assert _allowed(everything) == [t for t in range(PAD + 5) if t not in (17, 18)]


@pytest.mark.parametrize(
    "spec", [JsonSchema({}), Regex(".*"), Choice(["a", "b"]), Lark("start: /[^a]+/"), Text()]
)
def test_what_asks_for_no_token_allows_none(spec: Any) -> None:
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    for _ in range(4):
        allowed = _allowed(matcher)
        special = [t for t in allowed if VOCABULARY.tokens[t] is None]
        assert special == ([EOS, STOP] if matcher.is_accepting else [])
        assert not {17, 18} & set(allowed)
        text = [t for t in allowed if t not in special]
        if not text:
            break
        matcher.advance(text[0])


def test_an_end_of_sequence_inside_a_grammar() -> None:
    spec = Sequence("a", Repeat(Sequence(Token("<eos>"), "b"), 0, 2), Repeat(Token(STOP), 0, 1))
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    a, b = _ids("a|b")
    matcher.advance(a)
    assert _allowed(matcher) == [EOS, STOP]
    assert matcher.is_accepting
    matcher.advance(EOS)  # belongs to the grammar, which it could also end
    assert not matcher.is_finished
    assert not matcher.is_accepting
    assert _allowed(matcher) == [b]
    fork = matcher.fork()
    matcher.advance(b)
    matcher.advance(EOS)
    matcher.advance(b)
    assert matcher.validate([EOS, EOS, STOP, b]) == 3
    matcher.advance(STOP)  # the last part
    assert not matcher.is_finished
    matcher.advance(EOS)  # nothing else it could be
    matcher.advance(STOP)
    assert matcher.is_finished
    assert _allowed(matcher) == [EOS, STOP]
    matcher.rollback(1)
    assert matcher.is_finished
    matcher.rollback(2)
    assert not matcher.is_finished
    assert list(matcher.tokens) == [a, EOS, b, EOS, b]
    assert _allowed(matcher) == [EOS, STOP]
    assert list(fork.tokens) == [a, EOS]
    assert _allowed(fork) == [b]
    with pytest.raises(constrain.TokenRejectedError, match=f"token {CALL} is not allowed"):
        fork.advance(CALL)


def test_tokens_survive_dropped_states() -> None:
    spec = Repeat(Sequence(Token(CALL), OneOf(INTEGER, "a"), OneOf(Token(END), Token(EOS))), 0)
    compiled = constrain.compile(spec, VOCABULARY, max_memory=400_000)
    other = compiled.matcher()
    walk = [CALL, *_ids("1|2"), EOS, CALL, *_ids("a"), END]
    for token in walk:
        other.advance(token)
    other.advance(STOP)
    before = compiled._native.generation
    one, two = _ids("1|2")
    matcher = compiled.matcher()
    for number in range(4000):
        matcher.advance(CALL)
        for bit in range(12):
            matcher.advance(one if number >> bit & 1 else two)
        matcher.advance(END)
        if compiled._native.generation > before + 1:
            break
        matcher.rollback(14)
        _allowed(matcher) if number % 500 == 0 else None
    assert other.is_finished
    other.rollback(1)
    assert not other.is_finished
    assert _allowed(other) == [CALL, EOS, STOP]
    other.advance(EOS)
    assert other.is_finished


def test_parts_without_values() -> None:
    never = JsonSchema({"type": "integer", "minimum": 2, "maximum": 1})
    with pytest.raises(UnsatisfiableError, match="minimum 2 and maximum 1"):
        constrain.compile(Sequence("a", never), VOCABULARY)
    with pytest.raises(UnsatisfiableError):
        constrain.compile(OneOf(Sequence(never, Token(CALL)), never), VOCABULARY)
    # What leads to such a part and nowhere else is refused at its first byte.
    spec = OneOf(Sequence("ab", never), Sequence("a1", Repeat(Sequence(Token(CALL), never), 0, 1)))
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    matcher.advance(_ids("a")[0])
    assert _allowed(matcher) == _ids("1")
    matcher.advance(_ids("1")[0])
    assert _allowed(matcher) == [EOS, STOP]
    recursive = Lark(
        'start: "a" start "b" | "[" inner "]" | "1"\ninner: %json false | "<" inner ">"'
    )
    matcher = constrain.compile(recursive, VOCABULARY).matcher()
    assert _allowed(matcher) == _ids("1|a")


def test_completions_and_messages() -> None:
    schema = JsonSchema(
        {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    )
    spec = Sequence(Token(CALL), schema, Token(END))
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    assert matcher.expected() == f"the special token {CALL}"
    assert matcher.completion(100) == spelled(CALL) + b'{"x":0}' + spelled(END)
    assert matcher.forced_bytes(10) == b""  # not bytes of a text
    assert matcher.only_token() == CALL
    matcher.advance(CALL)
    assert "object" in matcher.expected() or "'{'" in matcher.expected()
    for token in _ids('{|"x":'):
        matcher.advance(token)
    assert matcher.completion(100) == b"0}" + spelled(END)
    matcher.advance(_ids("1")[0])
    matcher.advance(_ids("}")[0])
    assert f"the special token {END}" in matcher.expected()
    with pytest.raises(constrain.TokenRejectedError) as caught:
        matcher.advance(CALL)
    assert f"the special token {END}" in str(caught.value)
    many = constrain.compile(TokenRange(CALL, END), VOCABULARY).matcher()
    assert many.expected() == "a special token"


def test_two_documents_with_a_common_beginning() -> None:
    first = JsonSchema({"const": [1, 2]}, whitespace="compact")
    second = JsonSchema({"type": "array", "items": {"type": "integer"}}, whitespace="compact")
    spec = OneOf(Sequence(first, "a"), Sequence(second, "b"), Sequence("[1", Token(CALL)))
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    for token in _ids("[|1"):
        matcher.advance(token)
    assert _allowed(matcher) == sorted([*_ids("1|2|]|,"), CALL])
    for token in _ids(",|2"):
        matcher.advance(token)
    assert _allowed(matcher) == sorted(_ids("1|2|]|,"))
    matcher.advance(_ids("]")[0])
    assert _allowed(matcher) == sorted(_ids("a|b"))
    matcher.rollback(1)
    for token in _ids("1|]"):
        matcher.advance(token)
    assert _allowed(matcher) == _ids("b")


def test_numbers_followed_by_digits() -> None:
    # 12 is 12, or 1 followed by 2.
    spec = Sequence(INTEGER, Repeat(Choice(["2", "2a"]), 0, 1), Token(END))
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    matcher.advance(_ids("1")[0])
    assert _allowed(matcher) == sorted([*_ids("1|2"), END])
    matcher.advance(_ids("2")[0])
    assert _allowed(matcher) == sorted([*_ids("1|2|a"), END])
    matcher.advance(_ids("a")[0])
    assert _allowed(matcher) == [END]


def test_special_tokens_cost_other_constraints_nothing() -> None:
    pieces = sorted({bytes((byte,)) for byte in range(32, 127)} | {b'{"', b'":', b"ab", b'",'})
    specs = [
        (JsonSchema({"type": "object", "minProperties": 1}), b'{"a": "x", "b": [1, null]}'),
        (Regex("[a-z]+ [0-9]{2,4}"), b"abc 123"),
        (Lark('start: WORD ("," WORD)*\nWORD: /[a-z]+/\n%ignore " "'), b"ab, cd"),
    ]
    for spec, text in specs:
        counts = []
        for silent in (1, 3000):
            vocabulary = Vocabulary([*pieces, *[None] * silent], [len(pieces)])
            matcher = constrain.compile(spec, vocabulary).matcher()
            bitmask = constrain.allocate_bitmask(1, vocabulary.size)
            for byte in text:
                matcher.fill_bitmask(bitmask, 0)
                matcher.advance(pieces.index(bytes((byte,))))
            counts.append(vocabulary.native.counters)
        assert counts[0] == counts[1]
