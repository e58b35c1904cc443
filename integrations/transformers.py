"""Constrains ``generate`` of transformers through its list of logits processors.

::

    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, model=model)
    compiled = constrain.compile(constrain.JsonSchema(schema), vocabulary)
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    output = generate(model, inputs, compiled, max_new_tokens=200)  # or, where it is not at hand:
    output = model.generate(
        **inputs, logits_processor=[ConstrainedLogitsProcessor(compiled)], max_new_tokens=200
    )

:func:`generate` is ``model.generate`` with the processor, the token budget and the ends of sequence
set up, and a typed error where a setting would drop or break the constraint.
:func:`generate_batch` is the same for continuous batching.

The processor runs ahead of temperature, top-k and top-p, so these choose among legal tokens.

**State is a function of the prefix.**  ``generate`` reorders rows (beam search), calls with prefixes
that it later abandons (prompt lookup) and shares its processors with an assistant model, so nothing
may be counted from one call to the next.  Each row is looked up by its generated ids,
``input_ids[row, prompt_length:]``, in a bounded cache of matchers; an unknown prefix starts from its
longest known part.  A matcher in the cache is never advanced: it is forked.

What a row gets:

====================================  ==========================================================
its generated ids                     its scores
====================================  ==========================================================
can be continued                      illegal tokens are ``-inf``
end with an end of sequence           only end of sequence ids stay (``generate`` pads the row)
are illegal, or lead nowhere          only end of sequence ids stay: the row cannot become valid
====================================  ==========================================================

Illegal prefixes are normal there: a draft may hold anything, and a beam search that finds fewer than
``2 * num_beams`` legal continuations keeps beams of score ``-inf``.  Such beams can be returned where
``num_return_sequences`` asks for more than there are; :meth:`ConstrainedLogitsProcessor.is_complete`
tells which sequences are finished valid texts.

Cost: one copy of the scores and one batch call for the masks, some microseconds per row.
"""

from __future__ import annotations

import importlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError, LimitExceededError, UnsatisfiableError
from constrain.integrations.errors import EngineConfigurationError

if TYPE_CHECKING:
    from constrain.integrations._transformers_batching import generate_batch
    from constrain.integrations._transformers_generate import generate

__all__ = ["ConstrainedLogitsProcessor", "generate", "generate_batch"]

_log = logging.getLogger("constrain")

_TOKEN_BYTES = 4  # token ids are keyed as int32


class ConstrainedLogitsProcessor:
    """A logits processor that masks the tokens that a constraint forbids.

    Args:
        constraints: one compiled constraint for all rows, or one for each sequence of the batch
            that ``generate`` is given, None for those without.  With beams or several returned
            sequences, the rows of a sequence share its constraint.
        prompt_length: how many columns of ``input_ids`` are prompt, padding included; a list gives
            one number for each sequence of the batch, where texts that were begun before are
            continued.  By default the width at the first call of a generation.  A new generation
            is recognised by another prompt, another number of rows, or ids that continue none that
            was seen; where that is not certain (two generations in a row where the prompt of the
            second continues the first by one token), use :meth:`as_list`, or call :meth:`reset`
            between them.
        max_new_tokens: at most so many ids are generated behind `prompt_length`; a list gives one
            number for each sequence.  Every text is then finished and valid within them.  By
            default texts are cut off where ``generate`` stops.
        cached_prefixes: how many prefixes keep their matcher, beside those of the latest call.

    The model must stop at the vocabulary's end of sequence ids: pass
    ``eos_token_id=list(vocabulary.eos_token_ids)`` to ``generate`` where its own list differs.

    Raises:
        ConstrainError: no constraint is given, or constraints of different vocabularies.
    """

    # read by transformers' continuous batching, which hands over rows of another kind
    supports_continuous_batching = False

    def __init__(
        self,
        constraints: Any,
        *,
        prompt_length: int | Sequence[int] | None = None,
        max_new_tokens: int | Sequence[int] | None = None,
        cached_prefixes: int = 256,
    ) -> None:
        self._shared = not isinstance(constraints, Sequence)
        self._constraints: list[Any] = [constraints] if self._shared else list(constraints)
        present = [c for c in self._constraints if c is not None]
        if not present:
            raise ConstrainError("at least one constraint is needed")
        self._vocabulary = present[0].vocabulary
        if any(c.vocabulary != self._vocabulary for c in present[1:]):
            raise ConstrainError("the constraints were compiled for different vocabularies")
        self._fixed_prompt_lengths = _numbers(prompt_length, "prompt_length", 0)
        self._limits = _numbers(max_new_tokens, "max_new_tokens", 1)
        counts = {len(n) for n in (self._fixed_prompt_lengths, self._limits) if n} - {1}
        if counts and self._shared:
            self._shared = False
            self._constraints *= max(counts)
        if counts - {len(self._constraints)}:
            raise ConstrainError(
                f"there are {len(self._constraints)} sequences, but prompt_length or"
                f" max_new_tokens has {max(counts)} numbers"
            )
        self._cached_prefixes = max(1, cached_prefixes)
        self._states: OrderedDict[tuple[int, bytes], _State] = OrderedDict()
        self._prompt: Any = None
        self._prompt_length = 0
        self._width = 0
        self._bitmask: Any = None
        self._check_limits()

    @property
    def vocabulary(self) -> Any:
        """The vocabulary that all constraints were compiled for."""
        return self._vocabulary

    def as_list(self) -> list[Any]:
        """A list with the processor, for pipelines and loops that call ``generate`` many times.

        ``generate`` goes through its list once, when it begins; this one then resets the processor.
        """
        return _FreshEachTime([self])

    def reset(self) -> None:
        """Forget the prompt: the next call begins a new generation."""
        self._prompt = None
        self._width = 0
        self._states.clear()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Mask the scores of one step.

        Args:
            input_ids: int64 ``[rows, length]``: prompt and generated ids of each row.
            scores: float ``[rows, logits]`` on any device; at least as wide as the vocabulary.

        Returns:
            A masked copy of `scores`.

        Raises:
            ConstrainError: the shapes do not fit the constraints.  Never because of what was
                generated.
            EngineConfigurationError: other processors have forbidden every token that a
                constraint allows.
        """
        rows, width = scores.shape
        if width < self._vocabulary.size:
            raise ConstrainError(
                f"the scores have {width} columns, the vocabulary {self._vocabulary.size} tokens:"
                " give Vocabulary the model's size"
            )
        owners = self._owners(rows)
        prefixes = self._prefixes(input_ids, owners)
        if self._width not in (0, width):
            raise EngineConfigurationError(
                f"scores of {self._width} and of {width} columns in one generation: an assistant"
                " with another vocabulary cannot share the constraint",
                engine="transformers",
                setting="assistant_model",
            )
        self._width = width

        masked = scores.clone()
        matchers: list[Any] = [None] * rows
        stuck: list[int] = []
        for row in range(rows):
            owner = owners[row]
            if self._constraints[owner] is None:
                continue
            matcher = self._state(owner, prefixes[row]).matcher
            if matcher is None:
                stuck.append(row)
            else:
                matchers[row] = matcher
        self._shrink(rows)
        self._mask(masked, matchers, self._remaining(owners, prefixes, matchers))
        if stuck:
            eos = list(self._vocabulary.eos_token_ids)
            kept = scores[stuck][:, eos]
            masked[stuck] = float("-inf")
            for index, row in enumerate(stuck):
                masked[row, eos] = kept[index]
        return masked

    def is_complete(self, sequences: Any) -> list[bool]:
        """Which sequences that ``generate`` returned are finished valid texts.

        False for a sequence that was cut off by the length limit, or is illegal.  A sequence
        without a constraint counts as complete.

        Args:
            sequences: int64 ``[rows, length]``, prompts included, as ``generate`` returns them.

        Raises:
            ConstrainError: the rows do not fit the constraints, or nothing was generated yet.
        """
        if self._prompt is None and self._fixed_prompt_lengths is None:
            raise ConstrainError("the length of the prompt is not known yet: pass prompt_length")
        owners = self._owners(len(sequences))
        prefixes = _cut(sequences, self._starts(owners))
        result = []
        for row in range(len(sequences)):
            if self._constraints[owners[row]] is None:
                result.append(True)
                continue
            matcher = self._state(owners[row], prefixes[row]).matcher
            # A text without its end of sequence id is complete too: a stop string may have cut it.
            result.append(matcher is not None and bool(matcher.is_finished or matcher.is_accepting))
        self._shrink(len(sequences))
        return result

    def _mask(self, scores: Any, matchers: list[Any], remaining: list[int | None] | None) -> None:
        """Mask the rows of `scores` that have a matcher, in place."""
        import constrain

        rows = [row for row, matcher in enumerate(matchers) if matcher is not None]
        if not rows:
            return
        if self._bitmask is None or len(self._bitmask) != len(matchers):
            self._bitmask = constrain.allocate_bitmask(len(matchers), self._vocabulary.size)
        try:
            constrain.fill_bitmasks(matchers, self._bitmask, remaining=remaining)
        except (LimitExceededError, UnsatisfiableError) as error:
            # A dead end is possible where satisfiability is undecided within its budget.  All masks
            # are filled; such a row has its ends of sequence open, and must not stop the others.
            _log.warning("%s", error)
        constrain.apply_bitmask(
            scores, self._bitmask, rows=None if len(rows) == len(matchers) else rows
        )
        best = scores.amax(dim=1).tolist()
        for row in rows:
            if best[row] == float("-inf") and not matchers[row].is_finished:
                raise EngineConfigurationError(
                    f"row {row}: other settings (a minimal length, forced or suppressed tokens,"
                    " forbidden words) forbid every token that the constraint allows",
                    engine="transformers",
                    setting="logits_processor",
                )

    def _remaining(
        self, owners: list[int], prefixes: list[Any], matchers: list[Any]
    ) -> list[int | None] | None:
        """How many tokens may still come in each row; None where there is no limit at all."""
        limits = self._limits
        if limits is None:
            return None
        result: list[int | None] = [None] * len(owners)
        for row, owner in enumerate(owners):
            if matchers[row] is not None and not matchers[row].is_finished:
                # Behind the limit there are only drafts, which are dropped.
                result[row] = max(1, _pick(limits, owner) - len(prefixes[row]))
        return result

    def _check_limits(self) -> None:
        """That the shortest text of each constraint has no more tokens than there may be."""
        if self._limits is None:
            return
        for owner, constraint in enumerate(self._constraints):
            needed = None if constraint is None else constraint.matcher().tokens_needed
            limit = _pick(self._limits, owner)
            if needed is not None and needed > limit:
                raise LimitExceededError(
                    f"constraint {owner}: the shortest valid text has {needed} tokens,"
                    f" max_new_tokens is {limit}",
                    limit="max_new_tokens",
                    needed=needed,
                )

    # --- rows and prompts --------------------------------------------------------------------------

    def _owners(self, rows: int) -> list[int]:
        """The constraint of each row: consecutive rows belong to one sequence."""
        count = len(self._constraints)
        if self._shared:
            return [0] * rows
        if rows % count:
            raise ConstrainError(
                f"there are {rows} rows for {count} constraints: expected one constraint for each"
                " sequence of the batch"
            )
        return [row * count // rows for row in range(rows)]

    def _starts(self, owners: list[int]) -> list[int]:
        """The column of each row where generated ids begin."""
        fixed = self._fixed_prompt_lengths
        if fixed is None:
            return [self._prompt_length] * len(owners)
        return [_pick(fixed, owner) for owner in owners]

    def _prefixes(self, input_ids: Any, owners: list[int]) -> list[Any]:
        """The generated ids of each row, int32 arrays; notes the prompt of a new generation."""
        length = input_ids.shape[1]
        fixed = self._fixed_prompt_lengths
        if fixed is None:
            if self._prompt is None or self._is_new(input_ids, owners):
                self._prompt = input_ids.clone()
                self._prompt_length = length
        elif length < max(fixed):
            raise ConstrainError(f"input_ids has {length} columns, prompt_length is {max(fixed)}")
        return _cut(input_ids, self._starts(owners))

    def _is_new(self, input_ids: Any, owners: list[int]) -> bool:
        """Whether these ids cannot belong to the generation that was seen last.

        Ids come one at a time, those of drafts too: what is before the last one was seen before.
        """
        import torch

        rows, length = input_ids.shape
        if rows != len(self._prompt) or length < self._prompt_length:
            return True
        prompt = self._prompt.to(input_ids.device)
        if not torch.equal(input_ids[:, : self._prompt_length], prompt):
            return True
        if length <= self._prompt_length + 1:
            return False
        before = _cut(input_ids[:, :-1], [self._prompt_length] * rows)
        return any(
            self._constraints[owner] is not None and (owner, ids.tobytes()) not in self._states
            for owner, ids in zip(owners, before)
        )

    # --- prefixes ----------------------------------------------------------------------------------

    def _state(self, owner: int, ids: Any) -> _State:
        """The state after `ids` (int32 array), from the longest known prefix of them."""
        key = ids.tobytes()
        states = self._states
        known = states.get((owner, key))
        if known is not None:
            states.move_to_end((owner, key))
            return known
        count = len(ids)
        state = None
        while count > 0 and state is None:
            count -= 1
            state = states.get((owner, key[: count * _TOKEN_BYTES]))
        if state is None:
            state = _State(self._constraints[owner].matcher())
        result = state.after(ids[count:].tolist())
        states[owner, key] = result
        return result

    def _shrink(self, rows: int) -> None:
        limit = self._cached_prefixes + rows
        while len(self._states) > limit:
            self._states.popitem(last=False)


class _FreshEachTime(list):
    """A list that resets its processors when it is iterated."""

    def __iter__(self) -> Any:
        for processor in super().__iter__():
            processor.reset()
            yield processor


class _State:
    """What is known of a prefix: its matcher, or None where the prefix is illegal."""

    __slots__ = ("matcher",)

    def __init__(self, matcher: Any) -> None:
        self.matcher = matcher

    def after(self, ids: list[int]) -> _State:
        """The state after further ids.  What follows an end (padding) changes nothing."""
        if self.matcher is None or not ids or self.matcher.is_finished:
            return self
        matcher = self.matcher.fork()
        for token_id in ids:
            if matcher.is_finished:
                break
            if not matcher.try_advance(token_id):
                return _ILLEGAL
        return _State(matcher)


_ILLEGAL = _State(None)


def _numbers(value: int | Sequence[int] | None, name: str, least: int) -> list[int] | None:
    """One number for all sequences, or one for each."""
    if value is None:
        return None
    numbers = list(value) if isinstance(value, Sequence) else [value]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ConstrainError(f"{name} is {value!r}, expected {least} or more")
    return numbers


def _pick(numbers: list[int], owner: int) -> int:
    return numbers[owner] if len(numbers) > 1 else numbers[0]


def _cut(ids: Any, starts: list[int]) -> list[Any]:
    """The ids of each row from its start, as int32 NumPy arrays: one transfer for all rows."""
    import numpy
    import torch

    first = min(starts, default=0)
    host = ids[:, first:].to(device="cpu", dtype=torch.int32).numpy()
    return [numpy.ascontiguousarray(row[start - first :]) for row, start in zip(host, starts)]


_LAZY = {"generate": "_transformers_generate", "generate_batch": "_transformers_batching"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"constrain.integrations.{_LAZY[name]}"), name)
