"""Slow, obvious references for masks: every token tried, every logit looked at."""

from __future__ import annotations

import numpy as np


def allowed_by_trying(matcher, size: int) -> list[int]:
    """Ids that the matcher would accept next, found by asking for each of them."""
    return [token for token in range(size) if matcher.validate([token]) == 1]


def allowed_bits(row: np.ndarray) -> list[int]:
    """Ids whose bit is set in a row of a bitmask."""
    return [
        32 * word + bit
        for word, bits in enumerate(row.tolist())
        for bit in range(32)
        if bits >> bit & 1
    ]


def masked(logits: np.ndarray, bitmask: np.ndarray, rows: list[int] | None = None) -> np.ndarray:
    """What `constrain.apply_bitmask` must make of two-dimensional logits."""
    result = logits.copy()
    for row in range(len(logits)) if rows is None else rows:
        allowed = set(allowed_bits(bitmask[row]))
        for token in range(logits.shape[1]):
            if token not in allowed:
                result[row, token] = -np.inf
    return result
