"""What every engine plugin is made of: the adapter contract.

An engine has requests, sequences, logits and a sampler.  Its plugin maps them to four things::

    adapter = Adapter(vocabulary)                        # one for each model
    sequence = adapter.open({"regex": "[0-9]+"}, ...)    # one for each sequence: a request
    sequence.follow(generated_ids)                       # or advance / rollback / fork
    adapter.mask(logits, [sequence, None, ...])          # in place, before temperature and top-k

The contract, which `constrain.integrations.testkit` checks:

1. The vocabulary is that of the logits: ids, width and the ids at which the engine stops.
2. The mask is applied before anything that chooses or drops tokens, and last of everything that
   changes scores and could undo it.
3. A sequence's state is a function of its accepted tokens.  What the engine takes back (drafts,
   preemption, beams) is taken back here: `follow` compares with what it has seen.
4. A finished sequence allows the ends of sequence only, so a row that is sampled again stays valid.
5. Where a request's constraint is wrong, that request fails, with the reason, and no other does.
6. Where the engine is set up in a way that would drop the constraint, the plugin raises
   `EngineConfigurationError`; it never generates without it.

Memory: compiled constraints are kept by content, the least recently used dropped first, under a
bound on their number and their bytes.  Everything here may be called from several threads, each
sequence from one at a time.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

import constrain
from constrain.errors import ConstrainError, LimitExceededError, UnsatisfiableError
from constrain.integrations.errors import EngineConfigurationError, RequestError
from constrain.integrations.requests import parse_constraint

__all__ = [
    "Adapter",
    "ConstrainedSequence",
    "ConstraintCache",
    "EngineConfigurationError",
    "RequestError",
    "parse_constraint",
]

_log = logging.getLogger("constrain")

_MAX_ENTRIES = 256
_MAX_BYTES = 1 << 30
_CHECK_EVERY = 64  # a compiled constraint grows while it is used


class ConstraintCache:
    """Compiled constraints of one vocabulary by content, least recently used dropped first.

    A constraint that several threads ask for at once is compiled once.  What is dropped lives on
    as long as a sequence uses it.

    Args:
        vocabulary: the model's vocabulary.
        max_entries: how many constraints are kept, at least 1.
        max_bytes: bytes that the kept constraints may hold together (`CompiledConstraint.memory`);
            the one that was used last is kept in any case.
        defaults: options for JSON Schemas that a request does not give.
        tokenizer: for tool calls that do not name their format.
    """

    def __init__(
        self,
        vocabulary: constrain.Vocabulary,
        *,
        max_entries: int = _MAX_ENTRIES,
        max_bytes: int = _MAX_BYTES,
        defaults: Mapping[str, Any] | None = None,
        tokenizer: Any = None,
    ) -> None:
        if max_entries < 1 or max_bytes < 0:
            raise ConstrainError(f"no cache has {max_entries} entries and {max_bytes} bytes")
        self.vocabulary = vocabulary
        self.compilations = 0
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._defaults = dict(defaults or {})
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._entries: OrderedDict[Any, constrain.CompiledConstraint] = OrderedDict()
        self._running: dict[Any, Future[constrain.CompiledConstraint]] = {}
        self._lookups = 0

    def get(self, data: Any) -> constrain.CompiledConstraint | None:
        """The compiled constraint of `data` (see `constrain.integrations.requests`).

        None for no constraint.  A compiled constraint is returned as it is.

        Raises:
            ConstrainError: `data` is no constraint, or its constraint cannot be compiled.
        """
        if isinstance(data, constrain.CompiledConstraint):
            if data.vocabulary != self.vocabulary:
                raise ConstrainError("the constraint was compiled for another vocabulary")
            return data
        spec = parse_constraint(data, defaults=self._defaults, tokenizer=self._tokenizer)
        if spec is None:
            return None
        key = _key(data, spec)
        if key is None:
            return constrain.compile(spec, self.vocabulary)
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                self._lookups += 1
                if self._lookups % _CHECK_EVERY == 0:
                    self._shrink()
                return found
            running = self._running.get(key)
            if running is None:
                mine: Future[constrain.CompiledConstraint] = Future()
                self._running[key] = mine
        if running is not None:
            return running.result()
        return self._compile(key, spec, mine)

    def _compile(
        self, key: Any, spec: Any, future: Future[constrain.CompiledConstraint]
    ) -> constrain.CompiledConstraint:
        try:
            compiled = constrain.compile(spec, self.vocabulary)
        except BaseException as error:
            with self._lock:
                del self._running[key]
            future.set_exception(error)
            raise
        with self._lock:
            del self._running[key]
            self.compilations += 1
            self._entries[key] = compiled
            self._shrink()
        future.set_result(compiled)
        return compiled

    def _shrink(self) -> None:
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        held = sum(entry.memory for entry in self._entries.values())
        while held > self._max_bytes and len(self._entries) > 1:
            held -= self._entries.popitem(last=False)[1].memory

    @property
    def memory(self) -> int:
        """Bytes that the kept constraints hold now."""
        with self._lock:
            return sum(entry.memory for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drop all."""
        with self._lock:
            self._entries.clear()


def _key(data: Any, spec: Any) -> Any:
    """What equal constraints have in common; None for one that is not kept."""
    if type(spec).__eq__ is not object.__eq__ and type(spec).__hash__ is not None:
        return spec
    if isinstance(data, (str, bytes)):
        return data
    try:
        return json.dumps(data) if isinstance(data, Mapping) else None
    except (TypeError, ValueError):
        return None  # tools that are functions, for instance


class ConstrainedSequence:
    """One sequence of an engine under a constraint; made by `Adapter.open`.

    Attributes:
        matcher: the matcher, at the longest legal part of what was followed.
        max_tokens: how many tokens the engine will generate at most, or None.
        request_id: the engine's name for it, for messages.
        problem: the error that made the sequence illegal or stuck, or None.
    """

    __slots__ = ("_ids", "_illegal", "matcher", "max_tokens", "problem", "request_id")

    def __init__(
        self, matcher: Any, *, max_tokens: int | None = None, request_id: object = None
    ) -> None:
        self.matcher = matcher
        self.max_tokens = max_tokens
        self.request_id = request_id
        self.problem: ConstrainError | None = None
        self._ids: list[int] = []
        self._illegal = False

    def follow(self, ids: Sequence[int]) -> bool:
        """Go to the state behind exactly these generated ids (without the prompt).

        Whatever was followed before is rolled back to the common part.  Ids behind an end of
        sequence are padding and change nothing.

        Returns:
            Whether the ids are legal.  If not, the state is the one before the first illegal id.
        """
        ids = ids if isinstance(ids, list) else list(ids)
        known = self._ids
        count = len(known)
        if ids[:count] != known:
            count = next(
                (i for i, (a, b) in enumerate(zip(known, ids)) if a != b),
                min(len(known), len(ids)),
            )
            self.rollback(len(known) - count)
        self._illegal = False
        for token_id in ids[count:]:
            if self.matcher.is_finished:
                break
            if not self.advance(token_id):
                return False
        return True

    def advance(self, token_id: int) -> bool:
        """Append one accepted token; False if it is illegal, and the state is then unchanged."""
        if self.matcher.try_advance(token_id):
            self._ids.append(token_id)
            return True
        self._illegal = True
        return False

    def rollback(self, n: int) -> None:
        """Take back the last n accepted tokens."""
        if n:
            self.matcher.rollback(n)
            del self._ids[len(self._ids) - n :]
        self._illegal = False

    def fork(self) -> ConstrainedSequence:
        """An independent copy at the same point: for beams and drafts."""
        other = ConstrainedSequence(
            self.matcher.fork(), max_tokens=self.max_tokens, request_id=self.request_id
        )
        other._ids = list(self._ids)
        other._illegal = self._illegal
        return other

    @property
    def token_ids(self) -> list[int]:
        """The accepted ids, a new list."""
        return list(self._ids)

    @property
    def remaining(self) -> int | None:
        """How many tokens may still come, or None."""
        return None if self.max_tokens is None else self.max_tokens - len(self._ids)

    @property
    def is_finished(self) -> bool:
        """An end of sequence was accepted."""
        return bool(self.matcher.is_finished)

    @property
    def is_illegal(self) -> bool:
        """The last id that was followed is not allowed; only an end of sequence is left."""
        return self._illegal

    @property
    def is_complete(self) -> bool:
        """The accepted tokens are a whole valid text."""
        return not self._illegal and bool(self.matcher.is_finished or self.matcher.is_accepting)


class Adapter:
    """The masks of one model: a vocabulary, a cache of constraints and a bitmask buffer.

    Args:
        vocabulary: the model's vocabulary, as wide as the logits.
        engine: the engine's name, for messages.
        cache: the compiled constraints; by default a new `ConstraintCache`, which takes the
            remaining arguments.
    """

    def __init__(
        self,
        vocabulary: constrain.Vocabulary,
        *,
        engine: str = "engine",
        cache: ConstraintCache | None = None,
        **cache_options: Any,
    ) -> None:
        if cache is not None and (cache_options or cache.vocabulary != vocabulary):
            raise ConstrainError("the cache has its own vocabulary and options")
        self.vocabulary = vocabulary
        self.engine = engine
        self.cache = ConstraintCache(vocabulary, **cache_options) if cache is None else cache
        self._local = threading.local()  # a bitmask for each thread
        ends = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
        for token_id in vocabulary.eos_token_ids:
            ends[token_id // 32] |= np.uint32(1 << token_id % 32)
        self.owner: object = None  # kept alive with the adapter, for plugins that share one
        #: The row of a bitmask that allows nothing but the ends of sequence, int32.
        self.ends = ends.view(np.int32)

    def open(
        self, constraint: Any, *, max_tokens: int | None = None, request_id: object = None
    ) -> ConstrainedSequence | None:
        """The sequence of a request, or None where it asks for no constraint.

        Args:
            constraint: see `constrain.integrations.requests`.
            max_tokens: how many tokens the engine will generate at most.
            request_id: the engine's name for the request, for messages.

        Raises:
            RequestError: the constraint cannot be used (its cause says why), or no valid text has
                as few tokens.
        """
        try:
            compiled = self.cache.get(constraint)
        except ConstrainError as error:
            raise RequestError(str(error), request_id=request_id) from error
        if compiled is None:
            return None
        matcher = compiled.matcher()
        if max_tokens is not None:
            needed = matcher.tokens_needed
            if needed is not None and needed > max_tokens:
                raise RequestError(
                    f"the shortest valid text has {needed} tokens, the limit is {max_tokens}",
                    request_id=request_id,
                )
        return ConstrainedSequence(matcher, max_tokens=max_tokens, request_id=request_id)

    def fill(self, sequences: Sequence[ConstrainedSequence | None], bitmask: Any) -> list[int]:
        """Write the masks of a batch: sequence i to row i of an int32 bitmask in CPU memory.

        A row without a sequence allows everything.  A sequence that is illegal or stuck allows the
        ends of sequence only, and its `problem` says why.

        Returns:
            The rows that have a sequence.
        """
        rows = [row for row, sequence in enumerate(sequences) if sequence is not None]
        matchers = [None if sequence is None else sequence.matcher for sequence in sequences]
        limits = [None if sequence is None else sequence.remaining for sequence in sequences]
        # behind the limit of a request there are only drafts, which are dropped
        remaining = [None if limit is None else max(1, limit) for limit in limits]
        try:
            constrain.fill_bitmasks(
                matchers, bitmask, remaining=remaining if any(remaining) else None
            )
        except (LimitExceededError, UnsatisfiableError) as error:
            for row in getattr(error, "rows", rows):
                self._report(sequences[row], error)
        for row in rows:
            sequence = sequences[row]
            if sequence is not None and sequence.is_illegal:
                self._report(sequence, ConstrainError("a token was generated that is not allowed"))
                self.fill_ends(bitmask, row)
        return rows

    def fill_ends(self, bitmask: Any, row: int) -> None:
        """Write a row that allows nothing but the ends of sequence."""
        view = bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy()
        view[row] = 0
        view[row, : len(self.ends)] = self.ends

    def mask(self, logits: Any, sequences: Sequence[ConstrainedSequence | None]) -> None:
        """Mask logits in place.

        Args:
            logits: ``[rows, width]``, NumPy array or torch tensor; ``width`` at least the
                vocabulary's size.
            sequences: one for each row, None for rows that are left alone.

        Raises:
            ConstrainError: the shapes do not fit.
            EngineConfigurationError: something else has already forbidden every token that the
                constraint allows.  The logits are masked when it is raised.
        """
        rows = [row for row, sequence in enumerate(sequences) if sequence is not None]
        if not rows:
            return
        if logits.shape[1] < self.vocabulary.size:
            raise ConstrainError(
                f"the logits have {logits.shape[1]} columns, the vocabulary"
                f" {self.vocabulary.size} tokens: give Vocabulary the model's size"
            )
        buffer = getattr(self._local, "bitmask", None)
        if buffer is None or len(buffer) < len(sequences):
            buffer = constrain.allocate_bitmask(len(sequences), self.vocabulary.size)
            self._local.bitmask = buffer
        bitmask = buffer[: len(sequences)]
        self.fill(sequences, bitmask)
        constrain.apply_bitmask(logits, bitmask, rows=None if len(rows) == len(sequences) else rows)
        best = logits.max(1) if isinstance(logits, np.ndarray) else logits.amax(dim=1).tolist()
        for row in rows:
            if best[row] == float("-inf"):
                raise EngineConfigurationError(
                    f"row {row}: other settings (a list of allowed or suppressed tokens, a"
                    " minimal length, forced tokens) forbid every token that the constraint allows",
                    engine=self.engine,
                    setting="logits",
                )

    def _report(self, sequence: ConstrainedSequence | None, error: ConstrainError) -> None:
        if sequence is not None and sequence.problem is None:
            sequence.problem = error
            name = "" if sequence.request_id is None else f"request {sequence.request_id}: "
            _log.warning("%s: %s%s", self.engine, name, error)
