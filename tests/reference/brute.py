"""Masks the slow way: by trying every token.

`tried_mask` asks the matcher itself to take each token; `spelled_mask` asks a matcher of the same
constraint over single bytes to take each token's bytes, which shares neither trie nor tables with
the mask under test. Costs: about half a microsecond a token for the first, bytes of all tokens for
the second (pass a sample).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tests.reference.vocabularies import TestVocabulary


def tried_mask(matcher: Any, size: int) -> np.ndarray:
    """bool [size]: which ids a fork of `matcher` takes."""
    trial = matcher.fork()
    taken = np.zeros(size, dtype=bool)
    for token_id in range(size):
        if trial.try_advance(token_id):
            taken[token_id] = True
            trial.rollback(1)
    return taken


def spelled_mask(
    byte_matcher: Any, tokens: Sequence[bytes | None], ids: Iterable[int]
) -> dict[int, bool]:
    """Id to whether `byte_matcher` (over single bytes, at the same text) takes all its bytes."""
    verdicts: dict[int, bool] = {}
    for token_id in ids:
        text = tokens[token_id]
        if not text:
            continue
        trial = byte_matcher.fork()
        verdicts[token_id] = all(trial.try_advance(byte) for byte in text)
    return verdicts


def mask_bits(matcher: Any, row: np.ndarray, size: int) -> np.ndarray:
    """bool [size]: the mask that `matcher` fills; `row` is scratch, int32 [1, words]."""
    matcher.fill_bitmask(row, 0)
    words = np.ascontiguousarray(np.asarray(row)[0]).view(np.uint8)
    bits = np.unpackbits(words, bitorder="little")
    if bits[size:].any():
        raise AssertionError(f"bits beyond the {size} ids of the vocabulary are set")
    return bits[:size].astype(bool)


def describe_difference(
    mask: np.ndarray, truth: np.ndarray, vocabulary: TestVocabulary, limit: int = 5
) -> str:
    """Which tokens a mask has too many or too few, for a message."""
    too_many = [vocabulary.tokens[i] for i in np.flatnonzero(mask & ~truth)[:limit]]
    too_few = [vocabulary.tokens[i] for i in np.flatnonzero(truth & ~mask)[:limit]]
    return (
        f"{int((mask & ~truth).sum())} too many {too_many}, "
        f"{int((truth & ~mask).sum())} too few {too_few}"
    )
