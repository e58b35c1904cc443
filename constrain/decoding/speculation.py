"""Speculative decoding: cheap drafts, checked by the model in one pass.

Two sources of drafts: another, smaller model (`DraftModel`), and the text so far (`PromptLookup`).
Both draft under the constraint; the model's own masks are applied to every position that it checks.

How drafts are checked, and why the texts are distributed as without them, is in `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from constrain.decoding.batch import Batch, Chunk
from constrain.decoding.drafts import Draft
from constrain.decoding.masks import Masks
from constrain.decoding.sequence import Running
from constrain.errors import ConstrainError

__all__ = ["DraftModel", "Drafter", "PromptLookup", "Speculation"]


_MOST_OCCURRENCES = 16  # that are looked at in one step


class Drafter(Protocol):
    """Drafts for the sequences of one run."""

    def propose(self, sequences: Sequence[Running], drafts: Sequence[Draft]) -> None:
        """Fill the drafts, one for each running sequence."""
        ...

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Go on with these of the sequences only."""
        ...


class Speculation(Protocol):
    """A source of drafts, as `generate` takes it."""

    branches: int

    def start(self, vocabulary: Any, rows: int) -> Drafter:
        """A drafter for a run of `rows` sequences."""
        ...


def _check(**settings: int) -> None:
    for name, value in settings.items():
        if value < 1:
            raise ConstrainError(f"{name} is {value}, expected 1 or more")


@dataclass(frozen=True)
class PromptLookup:
    """Drafts from the text so far: what followed the last tokens where they stood before.

    Attributes:
        tokens: how many tokens are looked up, forced ones besides.
        ngram: how many of the last tokens are searched for at most; shorter ends are tried after.
        branches: how many different continuations are drafted; more than one makes a tree.
    """

    tokens: int = 8
    ngram: int = 3
    branches: int = 1

    def __post_init__(self) -> None:
        _check(tokens=self.tokens, ngram=self.ngram, branches=self.branches)

    def start(self, vocabulary: Any, rows: int) -> Drafter:
        return _Lookup(self)


class _Lookup:
    def __init__(self, settings: PromptLookup) -> None:
        self._settings = settings

    def propose(self, sequences: Sequence[Running], drafts: Sequence[Draft]) -> None:
        for sequence, draft in zip(sequences, drafts):
            history = sequence.history
            seen: set[int] = set()
            for continuation in self._continuations(history):
                if len(seen) == self._settings.branches:
                    break
                if continuation[0] not in seen and draft.add_path(-1, continuation) >= 0:
                    seen.add(continuation[0])

    def _continuations(self, history: Sequence[int]) -> Iterator[list[int]]:
        """What followed the longest known end of `history`, latest occurrence first."""
        data = np.asarray(history, dtype=np.int32).tobytes()
        tried = 0
        for length in range(min(self._settings.ngram, len(history) - 1), 0, -1):
            needle = data[-4 * length :]
            bound = len(data) - 1  # the occurrence at the end itself is none
            while tried < _MOST_OCCURRENCES and (at := data.rfind(needle, 0, bound)) >= 0:
                bound = at + len(needle) - 1
                if at % 4 == 0:
                    tried += 1
                    start = at // 4 + length
                    yield list(history[start : start + self._settings.tokens])

    def keep_rows(self, rows: Sequence[int]) -> None:
        pass


@dataclass(frozen=True)
class DraftModel:
    """Drafts from a smaller model with the same tokens.

    Attributes:
        model: a causal language model of transformers, whose cache can take tokens back.
        tokens: how many tokens it drafts, forced ones besides.
        branches: how many tokens are tried at each position, the drawn one first, then the
            likeliest others; more than one makes a tree.
    """

    model: Any
    tokens: int = 4
    branches: int = 1

    def __post_init__(self) -> None:
        _check(tokens=self.tokens, branches=self.branches)

    def start(self, vocabulary: Any, rows: int) -> Drafter:
        return _Modelled(self, vocabulary, rows)


class _Modelled:
    def __init__(self, settings: DraftModel, vocabulary: Any, rows: int) -> None:
        self._settings = settings
        self._batch = Batch(settings.model, rows)
        if not self._batch.can_take_back:
            raise ConstrainError(
                f"{type(settings.model).__name__} cannot draft: its cache cannot take tokens back"
            )
        self._masks = Masks(vocabulary)
        self._read: list[list[int]] = [[] for _ in range(rows)]

    def propose(self, sequences: Sequence[Running], drafts: Sequence[Draft]) -> None:
        chunks = self._catch_up(sequences)
        tips: list[int | None] = [-1] * len(drafts)
        for _ in range(self._settings.tokens):
            logits = self._batch.read([Chunk(tokens) for tokens in chunks])[:, -1]
            for read, tokens in zip(self._read, chunks):
                read += tokens
            for sequence, tokens in zip(sequences, chunks):
                sequence.timings.draft_passes += bool(tokens)
            self._masks.fill(
                [draft.matcher(-1 if tip is None else tip) for draft, tip in zip(drafts, tips)],
                [draft.remaining(-1 if tip is None else tip) for draft, tip in zip(drafts, tips)],
                tolerant=True,
            )
            chunks = [[] for _ in drafts]
            for row, (sequence, draft) in enumerate(zip(sequences, drafts)):
                tip = tips[row]
                if tip is None:
                    continue
                tips[row] = end = self._draw(sequence, draft, tip, row, logits[row])
                if end is not None:
                    chunks[row] = draft.path(end)[len(draft.path(tip)) :]
                    if draft.left(end) < 1:
                        tips[row] = None
            if not any(chunks):
                break

    def _draw(self, sequence: Running, draft: Draft, tip: int, row: int, logits: Any) -> int | None:
        """Draft behind `tip`; gives the new tip."""
        if self._masks.only_ends(row) and sequence.matcher is not None:
            return None
        sampler = sequence.sampler
        if sampler.adjusts:
            sampler.adjust(logits, sequence.history + draft.path(tip))
        if sequence.matcher is not None:
            self._masks.apply(logits, row)
        ids, probabilities = sampler.distribution(logits)
        drawn = sampler.draw(ids, probabilities)
        dense = logits.new_zeros(len(logits))
        dense[ids] = probabilities
        end = draft.add(tip, drawn, drawn_from=dense)
        if end is not None and self._settings.branches > 1:
            count = min(self._settings.branches, len(logits))
            for token_id in logits.topk(count).indices.tolist():
                others = len(draft.children(tip)) < self._settings.branches
                if others and logits[token_id] > -float("inf"):
                    draft.add(tip, token_id)
        return end

    def _catch_up(self, sequences: Sequence[Running]) -> list[list[int]]:
        """Take back what was drafted in vain; gives what each sequence has got since."""
        chunks: list[list[int]] = []
        kept: list[int] = []
        for read, sequence in zip(self._read, sequences):
            history = sequence.history
            same = next(
                (i for i, (a, b) in enumerate(zip(read, history)) if a != b),
                min(len(read), len(history)),
            )
            same = min(same, len(history) - 1)  # at least one token is read again, for its logits
            kept.append(same)
            chunks.append(history[same:])
            del read[same:]
        self._batch.truncate(kept)
        return chunks

    def keep_rows(self, rows: Sequence[int]) -> None:
        self._batch.keep_rows(rows)
        self._read = [self._read[row] for row in rows]
