"""Speculative decoding: cheap drafts, checked by the model in one pass.

Three sources of drafts: a smaller model (`DraftModel`), the text so far (`PromptLookup`), and the
constraint itself (`ConstraintDrafts`).  All draft under the constraint; the model's own masks are applied to every position that it checks.

How drafts are checked, and why the texts are distributed as without them, is in `verify`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from constrain.decoding.batch import Batch, Chunk
from constrain.decoding.drafts import Draft
from constrain.decoding.masks import Masks
from constrain.decoding.sequence import Running
from constrain.errors import ConstrainError

__all__ = [
    "ConstraintDrafts",
    "DraftModel",
    "Drafter",
    "FirstOf",
    "PromptLookup",
    "Speculation",
]


_MOST_OCCURRENCES = 16  # that are looked at in one step
# Where to see which blanks a text has behind a mark, and what to expect before it shows.
_BLANKS = {
    b":": (re.compile(rb'":(\s*)'), b" "),
    b",": (re.compile(rb',(\s*)"'), b" "),
    b"{": (re.compile(rb'\{(\s*)"'), b""),
}
_LONGEST_COMPLETION = 4096  # bytes
_DRAFTED_BYTES = 160  # of a completion that are spelled in tokens


class Drafter(Protocol):
    """Drafts for the sequences of one run."""

    def propose(self, sequences: Sequence[Running], drafts: Sequence[Draft]) -> None:
        """Fill the drafts, one for each running sequence; those that hold a draft stay."""
        ...

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Go on with these of the sequences only."""
        ...


class Speculation(Protocol):
    """A source of drafts, as `generate` takes it."""

    @property
    def branches(self) -> int:
        """How many tokens may follow one; more than one makes trees."""
        ...

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
            if len(draft):
                continue
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
class ConstraintDrafts:
    """Drafts from the constraint: the short way to a valid text from here.

    Keys, enumerations and brackets are often the only sensible text without being the only allowed
    one (JSON may be spelled with escapes and blanks), so that they are not forced; a model mostly
    takes them.  Inside of strings with any content nothing is drafted.

    Attributes:
        tokens: how many tokens are drafted, forced ones besides.
    """

    tokens: int = 8
    branches: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        _check(tokens=self.tokens)

    def start(self, vocabulary: Any, rows: int) -> Drafter:
        return _Completed(self, vocabulary)


class _Completed:
    def __init__(self, settings: ConstraintDrafts, vocabulary: Any) -> None:
        self._settings = settings
        self._vocabulary = vocabulary

    def propose(self, sequences: Sequence[Running], drafts: Sequence[Draft]) -> None:
        for sequence, draft in zip(sequences, drafts):
            if sequence.matcher is None or len(draft):
                continue
            way = sequence.matcher.completion(_LONGEST_COMPLETION)
            if not way:
                continue
            written = self._vocabulary.decode(sequence.prefix + sequence.token_ids)
            inside = _inside_string(written)
            if inside and way.startswith(b'"'):
                continue
            text = _with_blanks(way[:_DRAFTED_BYTES], inside, written)
            tokens = self._vocabulary.encode(
                text[:_DRAFTED_BYTES].decode("utf-8", "ignore").encode()
            )
            if tokens:
                draft.add_path(-1, tokens[: self._settings.tokens])

    def keep_rows(self, rows: Sequence[int]) -> None:
        pass


def _inside_string(text: bytes) -> bool:
    """Whether JSON text ends inside of a string."""
    inside = escaped = False
    for byte in text:
        if escaped:
            escaped = False
        elif byte == 0x22:
            inside = not inside
        elif byte == 0x5C and inside:
            escaped = True
    return inside


def _with_blanks(way: bytes, inside: bool, written: bytes) -> bytes:
    """JSON text `way` with the blanks that `written` has behind colons, commas and braces."""
    blanks = {}
    for mark, (pattern, default) in _BLANKS.items():
        seen = pattern.findall(written)
        blanks[mark] = seen[-1] if seen else default
    parts: list[bytes] = []
    escaped = False
    for i in range(len(way)):
        byte = way[i : i + 1]
        parts.append(byte)
        if escaped:
            escaped = False
        elif byte == b'"':
            inside = not inside
        elif byte == b"\\" and inside:
            escaped = True
        elif not inside and byte in blanks:
            parts.append(blanks[byte])
    return b"".join(parts)


@dataclass(frozen=True)
class FirstOf:
    """Drafts of the first source that has one.

    Attributes:
        sources: any of the others, in the order in which they are asked; at least one.
    """

    sources: tuple[Speculation, ...]
    branches: int = field(init=False)

    def __init__(self, *sources: Speculation) -> None:
        if not sources:
            raise ConstrainError("FirstOf needs at least one source of drafts")
        object.__setattr__(self, "sources", sources)
        object.__setattr__(self, "branches", max(source.branches for source in sources))

    def start(self, vocabulary: Any, rows: int) -> Drafter:
        return _First([source.start(vocabulary, rows) for source in self.sources])


class _First:
    def __init__(self, drafters: Sequence[Drafter]) -> None:
        self._drafters = drafters

    def propose(self, sequences: Sequence[Running], drafts: Sequence[Draft]) -> None:
        for drafter in self._drafters:
            if any(not len(draft) for draft in drafts):
                drafter.propose(sequences, drafts)

    def keep_rows(self, rows: Sequence[int]) -> None:
        for drafter in self._drafters:
            drafter.keep_rows(rows)


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
        tips: list[int | None] = [None if len(draft) else -1 for draft in drafts]
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
            self._mask(logits, sequences, drafts, tips)
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

    def _mask(
        self,
        logits: Any,
        sequences: Sequence[Running],
        drafts: Sequence[Draft],
        tips: Sequence[int | None],
    ) -> None:
        """Penalties and masks of the tips, in place, for logits ``[rows, width]``."""
        rows: list[int | None] = []
        for row, (sequence, draft, tip) in enumerate(zip(sequences, drafts, tips)):
            rows.append(None if tip is None or sequence.matcher is None else row)
            if tip is not None and sequence.sampler.adjusts:
                sequence.sampler.adjust(logits[row], sequence.history + draft.path(tip))
        self._masks.apply(logits, rows)

    def _draw(self, sequence: Running, draft: Draft, tip: int, row: int, logits: Any) -> int | None:
        """Draft behind `tip`, from masked logits ``[width]``; gives the new tip."""
        if sequence.matcher is not None and self._masks.only_ends(row):
            return None
        sampler = sequence.sampler
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
