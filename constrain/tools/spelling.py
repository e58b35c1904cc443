"""How the texts of a format are spelled in a vocabulary, and whether they can be at all."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from constrain.tools.errors import ToolFormatError
from constrain.vocabulary import spelled

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["Spelling"]

_KEPT = 256
_made_as_text: dict[Any, Any] = {}
# By identity: vocabularies that are equal may call their special tokens differently.
_known: dict[int, tuple[weakref.ref[Vocabulary], _Known]] = {}


class _Known:
    """What is asked of a vocabulary again and again."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        names = sorted(vocabulary.special_tokens, key=len, reverse=True)
        self.special = re.compile("(" + "|".join(map(re.escape, names)) + ")") if names else None
        self.made: dict[Any, Any] = {}
        self.single = frozenset(data[0] for data in vocabulary.tokens if data and len(data) == 1)

    @staticmethod
    def of(vocabulary: Vocabulary) -> _Known:
        """What is known of a vocabulary for as long as it lives."""
        key = id(vocabulary)
        found = _known.get(key)
        if found is not None and found[0]() is vocabulary:
            return found[1]
        known = _Known(vocabulary)
        _known[key] = (weakref.ref(vocabulary, lambda _: _known.pop(key, None)), known)
        return known


class Spelling:
    """How texts are spelled in one vocabulary: a special token that it has is its id.

    ``made`` is for what was made with this spelling, by what it was made of.
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self.vocabulary = vocabulary
        self.made = _made_as_text
        self._known: _Known | None = None
        if vocabulary is not None:
            self._known = _Known.of(vocabulary)
            self.made = self._known.made
        if len(self.made) >= _KEPT:
            self.made.clear()

    def pieces(self, text: str) -> list[tuple[str, int | None]]:
        """A text in pieces, with the token's id of those that are special tokens."""
        if self.vocabulary is None or self._known is None or self._known.special is None:
            return [(text, None)]
        ids = self.vocabulary.special_tokens
        return [(one, ids.get(one)) for one in self._known.special.split(text) if one]

    def of(self, text: str) -> bytes:
        """The bytes of a text in which special tokens are tokens."""
        return b"".join(
            piece.encode() if token_id is None else spelled(token_id)
            for piece, token_id in self.pieces(text)
        )

    def check(self, texts: Iterable[str]) -> None:
        """Raises ToolFormatError that names the first text which no tokens spell."""
        if self.vocabulary is None or self._known is None:
            return
        for text in texts:
            for piece, token_id in self.pieces(text):
                data = piece.encode()
                if token_id is not None or self._known.single.issuperset(data):
                    continue
                if not _covered(data, self.vocabulary):
                    raise ToolFormatError(
                        f"{text!r} cannot be written: no tokens of the vocabulary spell {piece!r}"
                    )


def _covered(data: bytes, vocabulary: Vocabulary) -> bool:
    """Whether tokens cover a text; the first may begin before it, the last may end behind it."""
    steps: list[set[int]] = [set() for _ in data]
    for token in set(vocabulary.tokens):
        if not token:
            continue
        if data in token:
            return True
        at = data.find(token)
        while at >= 0:
            steps[at].add(at + len(token))
            at = data.find(token, at + 1)
        for size in range(1, min(len(token), len(data))):
            if data.startswith(token[-size:]):
                steps[0].add(size)
            if data.endswith(token[:size]):
                steps[len(data) - size].add(len(data))
    reached = {0}
    for at in range(len(data)):
        if at in reached:
            reached |= steps[at]
    return len(data) in reached
