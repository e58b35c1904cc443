"""Sets of tokens: how grammars refer to what only a vocabulary knows.

A token that writes text stands for its text, any other for its spelling (`Vocabulary.token_bytes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from constrain.errors import TokenizerError

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["check_id", "shown_ids", "special_ranges"]


def shown_ids(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges of ids as they are written."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def special_ranges(
    vocabulary: Vocabulary, excluded: Iterable[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """The ids of special tokens that do not end the sequence, but for some."""
    ids = set(vocabulary.special_tokens.values()).difference(vocabulary.eos_token_ids)
    for first, last in excluded:
        ids.difference_update(range(first, last + 1))
    found: list[tuple[int, int]] = []
    for token_id in sorted(ids):
        if found and found[-1][1] == token_id - 1:
            found[-1] = (found[-1][0], token_id)
        else:
            found.append((token_id, token_id))
    return tuple(found)


def check_id(vocabulary: Vocabulary, token_id: int) -> None:
    """Raises TokenizerError if the vocabulary has no such id."""
    if not 0 <= token_id < vocabulary.size:
        raise TokenizerError(
            f"the vocabulary has no token {token_id}: its ids are 0 to {vocabulary.size - 1}"
        )
