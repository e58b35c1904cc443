"""The bitmasks of one step: a row for each position whose next token is asked for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from constrain.errors import ConstrainError, LimitExceededError, UnsatisfiableError

__all__ = ["Masks"]


class Masks:
    """Bitmask rows for any number of matchers, filled in one call.

    Args:
        vocabulary: of the matchers.
    """

    def __init__(self, vocabulary: Any) -> None:
        import constrain

        self._size = vocabulary.size
        self._bitmask = constrain.allocate_bitmask(1, vocabulary.size)
        self._ends = constrain.allocate_bitmask(1, vocabulary.size)[0]
        view = self._ends.view(np.uint32)
        for token_id in vocabulary.eos_token_ids:
            view[token_id // 32] |= np.uint32(1 << token_id % 32)

    def fill(
        self,
        matchers: Sequence[Any],
        remaining: Sequence[int | None],
        *,
        first_row: int = 0,
        tolerant: bool = False,
    ) -> float:
        """Fill row ``first_row + i`` for matcher i (None: all is allowed) and its token budget.

        Rows without any allowed token have the ends of sequence open.

        Args:
            tolerant: a budget that cannot be kept is such a row (a draft may be anything); else it
                is a LimitExceededError.

        Returns:
            The seconds it took.
        """
        import constrain

        if first_row + len(matchers) > len(self._bitmask):
            grown = constrain.allocate_bitmask(first_row + len(matchers), self._size)
            grown[:first_row] = self._bitmask[:first_row]
            self._bitmask = grown
        if all(matcher is None for matcher in matchers):
            return 0.0
        begin = time.perf_counter()
        expected = [UnsatisfiableError, *([LimitExceededError] if tolerant else [])]
        with contextlib.suppress(*expected):  # all rows are filled before it is raised
            constrain.fill_bitmasks(
                matchers, self._bitmask, first_row=first_row, remaining=remaining
            )
        return time.perf_counter() - begin

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Row i is what row ``rows[i]`` was."""
        self._bitmask[: len(rows)] = self._bitmask[list(rows)]

    def only_ends(self, row: int) -> bool:
        """Whether row `row` allows nothing but ends of sequence."""
        return not np.any(self._bitmask[row] & ~self._ends)

    def only_token(self, row: int) -> int | None:
        """The one token that row `row` allows, which does not end the sequence; None if not so."""
        words = self._bitmask[row].nonzero()[0]
        if len(words) != 1 or self.only_ends(row):
            return None
        word = int(self._bitmask[row, words[0]]) & 0xFFFFFFFF
        return None if word & (word - 1) else int(words[0]) * 32 + word.bit_length() - 1

    def apply(self, logits: Any, rows: Sequence[int | None]) -> float:
        """Mask logits ``[n, width]`` in place, row i by mask ``rows[i]``; None leaves it alone.

        Returns:
            The seconds it took.

        Raises:
            ConstrainError: the logits are narrower than the vocabulary.
        """
        import constrain

        chosen = [i for i, row in enumerate(rows) if row is not None]
        if not chosen:
            return 0.0
        if logits.shape[1] < self._size:
            raise ConstrainError(
                f"the model has {logits.shape[1]} logits, the vocabulary {self._size} tokens: give"
                " Vocabulary the model's size"
            )
        begin = time.perf_counter()
        if all(row in (None, i) for i, row in enumerate(rows)):
            bitmask = self._bitmask[: len(rows)]
        else:
            bitmask = self._bitmask[[row or 0 for row in rows]]
        every = len(chosen) == len(rows)
        constrain.apply_bitmask(logits, bitmask, rows=None if every else chosen)
        return time.perf_counter() - begin
