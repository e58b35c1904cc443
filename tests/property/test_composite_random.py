"""Random constraints made of constraints, with JSON and special tokens inside, in small worlds.

Masks are compared with trying every token.  What they allow is completed, and the whole text is
judged by `tests.reference.composite.Judge`, which splits it in all ways; random valid texts, cut
into tokens at random, must be allowed.  So nothing invalid is allowed, nothing is a dead end, and
nothing valid is refused.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import JsonSchema, OneOf, Regex, Repeat, Sequence, Text, Token, TokenRange
from tests.reference.brute import mask_bits, tried_mask
from tests.reference.composite import Judge, Known, sample
from tests.reference.grammar import SlowMachine

_ARRAYS: Any = {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}
_SCHEMAS: list[tuple[Any, list[Any]]] = [
    ({"type": "integer"}, [0, 1, 12, -2]),
    ({"const": 1}, [1]),
    ({"enum": ["a", 1, 12, True]}, ["a", 1, 12, True]),
    ({"type": "string", "maxLength": 2}, ["", "a", "ab", '"']),
    ({"type": "string"}, ["", "a", "ab}", "a\\", "é"]),
    (
        {
            "properties": {"a": {"type": "integer"}, "ab": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
            "type": "object",
        },
        [{"a": 1}, {"a": 2, "ab": ""}, {"ab": "a", "a": 0}],
    ),
    ({"type": "object", "additionalProperties": {"type": "string"}}, [{}, {"a": ""}, {"": "b"}]),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, [[], ["a"], ["a", "b"]]),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [[], [1], [1, 2]]),
    (_ARRAYS, [[], [[]], [[], []], [[[]]]]),
    ({"oneOf": [{"type": "string"}, {"enum": [1, "a"]}]}, ["", "b", 1]),
    ({"type": "object", "minProperties": 1, "not": {"required": ["a"]}}, [{"b": 1}, {"ab": []}]),
    ({}, [None, 1.5, [1], {"a": {}}]),
    (False, []),
]
_TEXTS = ["a", "ab", "<", "</", "1", "12", "0", " ", "\n", '"', "{", "}", "[", "]", ",", ":", "e1"]
_TEXTS += ["null", '{"a":', '"a"', ".5", "}}"]
_REGEXES = [
    ("[0-9]+", ["0", "12"]),
    ("[a-c]*", ["", "ab"]),
    ("[ \n]*", ["", " ", "\n"]),
    ('"[^"]*"', ['""', '"a"']),
    ("[^<]*", ["", "a}", "é", "12"]),
]
_PIECES = [*_TEXTS, '"}', '"]', '":', "é", "b", "2", "-", "\\", 'a"', "true"]


class World:
    """A random constraint and a random small vocabulary with special tokens."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        texts = {piece.encode() for piece in _PIECES if len(piece.encode()) == 1}
        texts |= {bytes((byte,)) for byte in range(32, 127)}
        texts |= {b"\xc3", b"\xa9"}
        for _ in range(60):
            texts.add("".join(rng.choices(_PIECES, k=rng.randint(1, 4))).encode())
        tokens: list[bytes | None] = [*sorted(texts)]
        self.special = range(len(tokens), len(tokens) + 4)
        tokens += [None, None, None, None, b"\xff"]
        self.eos = rng.choice([self.special[-1], len(tokens) + 1])
        self.vocabulary = constrain.Vocabulary(tokens, [self.eos], size=len(tokens) + 2)
        self.known: Known = {}
        self.keep: list[Any] = []  # so that no id is used twice
        self.spec = Sequence(self.part(rng.randint(2, 4)))
        self.judge = Judge(self.spec, self.vocabulary, self.known)

    def json(self) -> Any:
        schema, values = self.rng.choice(_SCHEMAS)
        whitespace = self.rng.choice(["compact", "any", "bounded"])
        part = JsonSchema(schema, whitespace=whitespace, numbers="any")
        self.known[id(part)] = schema, values
        return part

    def leaf(self) -> Any:
        kind = self.rng.random()
        if kind < 0.45:
            return self.json()
        if kind < 0.75:
            return self.rng.choice(_TEXTS)
        if kind < 0.85:
            pattern, texts = self.rng.choice(_REGEXES)
            part = Regex(pattern)
            self.known[id(part)] = pattern, texts
            return part
        if kind < 0.90:
            return self.text()
        if kind < 0.95:
            return Token(self.rng.choice(self.special))
        first = self.rng.choice(self.special)
        return TokenRange(first, self.rng.randint(first, self.special[-1]))

    def text(self) -> Any:
        """Free text; those that are tried have no stop and nothing excluded in them."""
        rng = self.rng
        stop = rng.choice([None, "</", ["}}", Token(self.special[0])], Token(self.special[1])])
        part = Text(
            until=stop,
            max_chars=rng.choice([None, None, 2]),
            excluding="ab" if rng.random() < 0.3 else (),
        )
        self.known[id(part)] = None, ["", "é", "a ", '{"']
        return part

    def part(self, depth: int) -> Any:
        kind = self.rng.random() if depth else 0.0
        if kind < 0.15:
            part = self.leaf()
        elif kind < 0.6:
            part = Sequence(*(self.part(depth - 1) for _ in range(self.rng.randint(1, 3))))
        elif kind < 0.85:
            part = OneOf(*(self.part(depth - 1) for _ in range(self.rng.randint(1, 3))))
        else:
            low = self.rng.randint(0, 1)
            high = self.rng.choice([None, low, low + 1])
            separator = self.rng.choice([None, None, ",", " ", Token(self.special[0])])
            part = Repeat(self.part(depth - 1), low, high, separator)
        self.keep.append(part)
        return part

    def written(self, tokens: list[int]) -> bytes:
        return b"".join(self.vocabulary.token_bytes(token) for token in tokens)

    def cut(self, text: bytes) -> list[int] | None:
        """The text as random tokens; None where there are none."""
        table: dict[bytes, list[int]] = {}
        for token, data in enumerate(self.vocabulary.tokens):
            if data is None or 0xFF not in data:
                table.setdefault(self.vocabulary.token_bytes(token), []).append(token)
        longest = max(map(len, table))
        ways = [False] * len(text) + [True]
        for at in range(len(text) - 1, -1, -1):
            ends = range(at + 1, min(at + longest, len(text)) + 1)
            ways[at] = any(ways[end] and text[at:end] in table for end in ends)
        if not ways[0]:
            return None
        tokens, at = [], 0
        while at < len(text):
            ends = [
                end
                for end in range(at + 1, min(at + longest, len(text)) + 1)
                if ways[end] and text[at:end] in table
            ]
            end = self.rng.choice(ends)
            tokens.append(self.rng.choice(table[text[at:end]]))
            at = end
        return tokens


def _compile(world: World) -> constrain.CompiledConstraint | None:
    try:
        return constrain.compile(world.spec, world.vocabulary)
    except constrain.UnsatisfiableError:
        return None


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**9))
def test_what_is_allowed_is_valid(seed: int) -> None:
    world = World(seed)
    compiled = _compile(world)
    if compiled is None:
        return
    size = world.vocabulary.size
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, size)
    for _ in range(14):
        tried = tried_mask(matcher, size)
        masked = mask_bits(matcher, bitmask, size)
        assert tried.tolist() == masked.tolist(), (world.spec, matcher.tokens)
        written = world.written(matcher.tokens)
        assert matcher.is_accepting == world.judge.accepts(written), (world.spec, written)
        allowed = [int(token) for token in np.flatnonzero(tried)]
        for token in world.rng.sample(allowed, min(3, len(allowed))):
            fork = matcher.fork()
            fork.advance(token)
            if fork.is_finished:
                continue
            rest = fork.completion(500)
            assert rest is not None, (world.spec, fork.tokens)
            text = world.written(fork.tokens) + rest
            assert world.judge.accepts(text), (world.spec, text)
        allowed = [token for token in allowed if token != world.eos]
        if not allowed:
            break
        longest = max(
            world.rng.sample(allowed, min(3, len(allowed))), key=lambda t: len(world.written([t]))
        )
        matcher.advance(world.rng.choice([longest, world.rng.choice(allowed)]))


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**9))
def test_what_is_valid_is_allowed(seed: int) -> None:
    world = World(seed)
    compiled = _compile(world)
    bitmask = constrain.allocate_bitmask(1, world.vocabulary.size)
    for _ in range(6):
        try:
            text = sample(world.spec, world.vocabulary, world.known, world.rng)
        except IndexError:
            continue
        assert world.judge.accepts(text), (world.spec, text)
        assert compiled is not None, (world.spec, text)
        tokens = world.cut(text)
        if tokens is None or len(tokens) > 60:
            continue
        matcher = compiled.matcher()
        for token in tokens:
            assert mask_bits(matcher, bitmask, world.vocabulary.size)[token], (world.spec, text)
            matcher.advance(token)
        assert matcher.is_accepting, (world.spec, text)
        matcher.rollback(len(tokens))
        assert matcher.validate(tokens) == len(tokens)


_OBJECT = '{"type": "object", "additionalProperties": {"type": "string", "maxLength": 2}}'
_GRAMMARS = [
    # Lookahead before a document, into it, and through all of it.
    'start: WORD %json {"type": "integer"} ";"?\nWORD: /a+(?!1)/',
    'start: (WORD doc)+\ndoc: %json {"enum": ["a", "b", 12, 1]}\nWORD: /a+(?![^;]*b)/',
    'start: WORD %json {"type": "string"} "1"*\nWORD: /[ab](?!"[^"]*"1)/',
    # Recursion around documents, and documents that overlap with what the grammar reads itself.
    'start: "[" start "]" | start "," start | %json {"type": "array", "items": {"type": "integer"}}',
    f'start: "{{" (start ":")* "}}" | %json {_OBJECT} | /[0-9]+/ start?',
    # Ambiguity of white space, ignored terminals around documents.
    'start: (%json {"type": "integer"} | WORD)+\nWORD: /[a ]+/\n%ignore /[ \\n]/',
    'start: ("a" %json {} | "ab" %json {"type": "string"} | "a" /[^1]+/) "<"\n%ignore " "',
]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(_GRAMMARS), st.integers(0, 10**9))
def test_grammars_with_documents(grammar: str, seed: int) -> None:
    world = World(seed)
    spec = constrain.Lark(grammar)
    compiled = constrain.compile(spec, world.vocabulary)
    judge = SlowMachine(spec.program())
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, world.vocabulary.size)
    for _ in range(8):
        tried = tried_mask(matcher, world.vocabulary.size)
        masked = mask_bits(matcher, bitmask, world.vocabulary.size)
        assert tried.tolist() == masked.tolist(), matcher.tokens
        allowed = [int(t) for t in np.flatnonzero(tried) if t != world.eos]
        for token in world.rng.sample(allowed, min(3, len(allowed))):
            fork = matcher.fork()
            fork.advance(token)
            rest = fork.completion(500)
            assert rest is not None, fork.tokens
            written = world.written(fork.tokens)
            assert fork.is_accepting == judge.accepts(written), written
            assert judge.accepts(written + rest), written + rest
        refused = [
            t for t in world.rng.sample(range(world.vocabulary.size - 10), 8) if not tried[t]
        ]
        for token in refused:
            written = world.written([*matcher.tokens, token])
            if re.search(rb"\d[.eE]|-0", written):
                continue  # an integer, but not spelled as the policy wants it
            assert not judge.accepts(written), written
        if not allowed:
            break
        matcher.advance(world.rng.choice(allowed))
