"""Random walks under the masks of grammars that end.

A walk wanders for some tokens drawn from the mask, then goes home by the matcher's own completion,
written with tokens drawn at random. Long tokens are many, and letters too, so that a token drawn
evenly would hardly ever close anything: a walk first draws a class of bytes (letters, digits, each
mark) among those that a token can begin with, then a token of it, short ones more often.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.reference.drive import allowed_ids, new_row, tokens_by_bytes
from tests.reference.vocabularies import TestVocabulary

__all__ = ["GrammarWalker", "Walk"]

_COMPLETION_BYTES = 20_000


@dataclass(frozen=True)
class Walk:
    """A text and how it ended: "finished", "dead" (no token, or a completion that is refused) or
    "lost" (no completion known)."""

    status: str
    text: bytes
    steps: int
    note: str = ""


class GrammarWalker:
    """Walks over the tokens of one vocabulary."""

    def __init__(self, vocabulary: TestVocabulary) -> None:
        self.vocabulary = vocabulary
        size = vocabulary.vocabulary.size
        tokens = list(vocabulary.tokens) + [None] * (size - len(vocabulary.tokens))
        self.tokens = tokens
        self.by_bytes = tokens_by_bytes(tokens)
        self.length = np.array([len(text or b"") for text in tokens], dtype=np.float64)
        self.classes = np.array([_class(text) for text in tokens])
        self.row = new_row(vocabulary.vocabulary)

    def walk(self, compiled: Any, rng: random.Random, wander: int) -> Walk:
        """One walk of up to `wander` tokens and a way home."""
        matcher = compiled.matcher()
        text = bytearray()
        eos = self.vocabulary.eos_ids
        for step in range(wander):
            matcher.fill_bitmask(self.row, 0)
            ids = allowed_ids(np.asarray(self.row)[0], len(self.tokens))
            if not len(ids):
                return Walk("dead", bytes(text), step, "no token is allowed")
            if np.isin(ids, eos).any():
                if rng.random() < 0.03 or len(ids) <= len(eos):
                    break
                ids = ids[~np.isin(ids, eos)]
            token = self.draw(ids, rng)
            if not matcher.try_advance(token):
                return Walk("dead", bytes(text), step, f"token {token} is allowed but refused")
            text += self.tokens[token] or b""
        return self.home(matcher, bytes(text), rng)

    def draw(self, ids: np.ndarray, rng: random.Random) -> int:
        """A token: a class evenly, then within it by length."""
        classes = self.classes[ids]
        chosen = rng.choice(np.unique(classes).tolist())
        ids = ids[classes == chosen]
        weights = np.cumsum(1.0 / (1.0 + self.length[ids]) ** 2)
        return int(ids[np.searchsorted(weights, rng.random() * weights[-1], side="right")])

    def home(self, matcher: Any, text: bytes, rng: random.Random) -> Walk:
        """The walk ended by the completion."""
        completion = matcher.completion(_COMPLETION_BYTES)
        steps = len(matcher.tokens)
        if completion is None:
            return Walk("lost", text, steps, "no completion")
        at = 0
        while at < len(completion):
            fitting = [
                n
                for n in range(1, min(8, len(completion) - at) + 1)
                if completion[at : at + n] in self.by_bytes
            ]
            length = rng.choice(fitting)
            token = rng.choice(self.by_bytes[completion[at : at + length]])
            matcher.fill_bitmask(self.row, 0)
            if not (int(np.asarray(self.row)[0][token >> 5]) >> (token & 31)) & 1:
                return Walk("dead", text, steps, f"its completion {completion!r} is masked at {at}")
            if not matcher.try_advance(token):
                return Walk("dead", text, steps, f"its completion {completion!r} fails at {at}")
            at += length
        if not matcher.is_accepting:
            return Walk("dead", text, steps, f"its completion {completion!r} is no end")
        return Walk("finished", text + completion, len(matcher.tokens))


def _class(text: bytes | None) -> int:
    """0 letters, 1 digits, 2 blanks, 3 beyond ASCII, else the first byte."""
    if not text:
        return 0
    first = text[0]
    if first >= 0x80:
        return 3
    if chr(first).isalpha():
        return 0
    if chr(first).isdigit():
        return 1
    if len(text) > 1 and first == 0x20:
        return 2 if not text.strip() else 5
    return first
