"""The decode loop: one prefill, then passes over the KV cache until all sequences are over.

Each step, for all sequences that are still running::

    forced tokens are appended -> masks are filled -> (drafts are made) -> one forward pass over what
    the model has not read -> penalties -> masks -> temperature -> top-k -> top-p -> draw

A sequence is over when its end of sequence token is chosen, or already when nothing but that is
allowed, which saves the forward pass that would choose it.  Sequences that are over leave the batch
and its cache.

Invariants: a token is chosen from a masked row only, or forced, and advances its matcher; each
sequence draws from its own stream, so that what else is in the batch changes nothing but rounding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from constrain.decoding.batch import Batch, Chunk, context_limit
from constrain.decoding.drafts import Draft
from constrain.decoding.masks import Masks
from constrain.decoding.sequence import Running
from constrain.decoding.speculation import Speculation
from constrain.decoding.verify import choose
from constrain.errors import ConstrainError
from constrain.forced import check_mode, spelled_run

__all__ = ["decode"]


def decode(
    model: Any,
    vocabulary: Any,
    sequences: Sequence[Running],
    *,
    forced: str = "text",
    speculation: Speculation | None = None,
    measure: bool = False,
) -> None:
    """Decode `sequences` to their ends.

    Args:
        model: a causal language model of transformers.
        vocabulary: of the model; that of the constraints.
        sequences: at least one, fresh.
        forced: how forced text is appended, see `constrain.forced`.
        speculation: a source of drafts, or None.
        measure: record the share of probability that each mask removes; a pass over the logits more.

    Raises:
        ConstrainError: a prompt does not fit the model, or the model cannot do what is asked.
        LimitExceededError: a token budget below the shortest text, before the first token.
    """
    import torch

    check_mode(forced)
    limit = context_limit(model)
    for index, sequence in enumerate(sequences):
        sequence.fit(limit, "" if len(sequences) == 1 else f"prompt {index}: ")
    with torch.inference_mode():
        _Loop(model, vocabulary, sequences, forced, speculation, measure).run()


class _Loop:
    """The state of one run; `_running`, `_pending`, the batch and the masks share their rows."""

    def __init__(
        self,
        model: Any,
        vocabulary: Any,
        sequences: Sequence[Running],
        forced: str,
        speculation: Speculation | None,
        measure: bool,
    ) -> None:
        self._start = time.perf_counter()
        self._running = list(sequences)
        # What the model has not read of each sequence.
        self._pending = [sequence.prompt + sequence.prefix for sequence in sequences]
        self._batch = Batch(model, len(sequences))
        self._masks = Masks(vocabulary)
        self._forced = forced
        self._measure = measure
        self._drafter = None
        if speculation is not None:
            if not self._batch.can_take_back:
                raise ConstrainError(
                    f"{type(model).__name__} cannot check drafts: its cache cannot take tokens back"
                )
            if speculation.branches > 1 and not self._batch.can_branch:
                raise ConstrainError(
                    f"{type(model).__name__} cannot read drafts that branch: it needs full"
                    " attention, by sdpa or eager"
                )
            self._drafter = speculation.start(vocabulary, len(sequences))

    def run(self) -> None:
        """Decode to the ends."""
        started = self._running
        self._settle()
        # What was forced ahead of the prefill counts as coming with it, unless that was all.
        for sequence in started:
            if sequence.finish_reason is not None:
                sequence.timings.tick(self._start, time.perf_counter(), sequence.chosen)
        while self._running:
            running = self._running
            self._step()
            self._settle()
            now = time.perf_counter()
            for sequence in running:
                sequence.timings.tick(self._start, now, sequence.chosen)

    def _settle(self) -> None:
        """Append what is forced, fill the masks, and let the finished leave."""
        for row in range(len(self._running)):
            self._append_spelled(row)
        self._drop_finished()
        spent = self._masks.fill(
            [sequence.matcher for sequence in self._running],
            [sequence.remaining for sequence in self._running],
        )
        _share(spent, [sequence for sequence in self._running if sequence.matcher is not None])
        for row, sequence in enumerate(self._running):
            while not sequence.end_if_over(self._masks, row) and self._append_only(row):
                self._append_spelled(row)
                if sequence.finish_reason is None:
                    sequence.timings.mask += self._masks.fill(
                        [sequence.matcher], [sequence.remaining], first_row=row
                    )
        self._drop_finished()

    def _append_spelled(self, row: int) -> None:
        """Append text without an alternative, as the tokenizer writes it."""
        sequence = self._running[row]
        if self._forced != "text" or sequence.matcher is None:
            return
        begin = time.perf_counter()
        while sequence.finish_reason is None and sequence.left > 0:
            run = spelled_run(sequence.matcher, remaining=sequence.remaining)
            if not run:
                break
            self._append(row, run[: sequence.left])
        sequence.timings.mask += time.perf_counter() - begin

    def _append_only(self, row: int) -> bool:
        """Append the token that is the only one in the mask; whether there was one."""
        if self._forced == "off" or self._running[row].matcher is None:
            return False
        token_id = self._masks.only_token(row)
        if token_id is None:
            return False
        self._append(row, [token_id])
        return True

    def _append(self, row: int, token_ids: Sequence[int]) -> None:
        """Append forced tokens."""
        sequence = self._running[row]
        for token_id in token_ids:
            if sequence.finish_reason is None:  # a stop string may come
                sequence.append(token_id)
                sequence.timings.forced += 1
                self._pending[row].append(token_id)

    def _step(self) -> None:
        """One forward pass, and the tokens that it yields."""
        drafts = [Draft(sequence, self._forced) for sequence in self._running]
        if self._drafter is not None:
            self._drafter.propose(self._running, drafts)
        prefill = self._batch.passes == 0
        # A model with a state reads one token of each sequence at a time.
        width = None if prefill or self._batch.can_take_back else 1
        begin = time.perf_counter()
        logits = self._batch.read(
            [_chunk(tokens[:width], draft) for tokens, draft in zip(self._pending, drafts)],
            wanted=1 + max(map(len, drafts)),
        )
        for sequence in self._running:
            sequence.timings.passes += 1
            if prefill:
                sequence.timings.prefill = time.perf_counter() - begin
        rows = self._fill_nodes(drafts)
        removed = self._mask(logits, drafts, rows)
        kept: list[list[int] | None] = []
        for row, (sequence, draft) in enumerate(zip(self._running, drafts)):
            unread = [] if width is None else self._pending[row][width:]
            if unread:
                self._pending[row] = unread
                kept.append(None)
                continue
            sequence.timings.drafted += draft.forced.count(False)
            count = len(sequence.token_ids)
            first = logits.shape[1] - 1 - len(draft)
            taken = choose(
                sequence,
                draft,
                logits[row, first:],
                self._masks,
                rows[row],
                removed[row][first:] if removed else [],
            )
            read = len(self._pending[row])
            kept.append([*range(read), *(read + node for node in taken)] if len(draft) else None)
            self._pending[row] = sequence.token_ids[count + len(taken) :]
        if any(indices is not None for indices in kept):
            self._batch.keep_tokens(kept)

    def _fill_nodes(self, drafts: Sequence[Draft]) -> list[list[int]]:
        """Fill the masks behind the nodes; gives the rows of each sequence: its own, its nodes'."""
        first = len(drafts)
        matchers: list[Any] = []
        remaining: list[int | None] = []
        rows: list[list[int]] = []
        for row, draft in enumerate(drafts):
            rows.append([row, *range(first + len(matchers), first + len(matchers) + len(draft))])
            for node in range(len(draft)):
                # Where the text goes on by force no mask is asked for.
                matchers.append(None if draft.is_forced_on(node) else draft.matchers[node])
                remaining.append(draft.remaining(node))
        if matchers:
            spent = self._masks.fill(matchers, remaining, first_row=first, tolerant=True)
            drafted = zip(self._running, drafts)
            _share(spent, [s for s, draft in drafted if len(draft) and s.matcher is not None])
        return rows

    def _mask(
        self, logits: Any, drafts: Sequence[Draft], rows: Sequence[list[int]]
    ) -> list[list[float]]:
        """Penalties and masks, in place, for logits ``[rows, w, width]``.

        Returns:
            The share of probability that each mask removed, ``[rows][w]``, where it is measured.
        """
        height, width, _ = logits.shape
        flat: list[int | None] = []
        for row, (sequence, draft) in enumerate(zip(self._running, drafts)):
            first = width - 1 - len(draft)
            flat += [None] * first
            flat += [None] * len(rows[row]) if sequence.matcher is None else rows[row]
            if sequence.sampler.adjusts:
                history = sequence.history
                for node in range(-1, len(draft)):
                    path = draft.path(node)
                    sequence.sampler.adjust(logits[row, first + 1 + node], history + path)
        before = logits.logsumexp(dim=2) if self._measure else None
        spent = self._masks.apply(logits.view(height * width, -1), flat)
        _share(spent, [sequence for sequence in self._running if sequence.matcher is not None])
        if before is None:
            return []
        left = (logits.logsumexp(dim=2) - before).clamp(max=0.0)
        removed: list[list[float]] = (-left.expm1()).tolist()
        return removed

    def _drop_finished(self) -> None:
        """Let the sequences that are over leave the batch, its cache and the masks."""
        kept = [row for row, s in enumerate(self._running) if s.finish_reason is None]
        if len(kept) == len(self._running):
            return
        self._batch.keep_rows(kept)
        self._masks.keep_rows(kept)
        if self._drafter is not None:
            self._drafter.keep_rows(kept)
        self._running = [self._running[row] for row in kept]
        self._pending = [self._pending[row] for row in kept]


def _share(spent: float, sequences: Sequence[Running]) -> None:
    """Charge the sequences with the time of a call that served all of them."""
    for sequence in sequences:
        sequence.timings.mask += spent / len(sequences)


def _chunk(pending: Sequence[int], draft: Draft) -> Chunk:
    """What is pending, with the draft behind it."""
    if not len(draft):
        return Chunk(pending)
    last = len(pending) - 1
    parents = [*range(-1, last), *(last + 1 + parent for parent in draft.parents)]
    return Chunk([*pending, *draft.tokens], parents)
