"""Constrains ``generate`` of transformers through its list of logits processors.

::

    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, model=model)
    compiled = constrain.compile(constrain.JsonSchema(schema), vocabulary)
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    output = model.generate(
        **inputs, logits_processor=[ConstrainedLogitsProcessor(compiled)], max_new_tokens=200
    )

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
end with an end of sequence           untouched: ``generate`` pads the row whatever is chosen
are illegal, or lead nowhere          only end of sequence ids stay: the row cannot become valid
====================================  ==========================================================

Illegal prefixes are normal there: a draft may hold anything, and a beam search that finds fewer than
``2 * num_beams`` legal continuations keeps beams of score ``-inf``.  Such beams can be returned where
``num_return_sequences`` asks for more than there are; :meth:`ConstrainedLogitsProcessor.is_complete`
tells which sequences are finished valid texts.

Cost: one copy of the scores and one batch call for the masks, some microseconds per row.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from constrain.errors import ConstrainError, UnsatisfiableError

__all__ = ["ConstrainedLogitsProcessor"]

_log = logging.getLogger("constrain")

_TOKEN_BYTES = 4  # token ids are keyed as int32


class ConstrainedLogitsProcessor:
    """A logits processor that masks the tokens that a constraint forbids.

    Args:
        constraints: one compiled constraint for all rows, or one for each sequence of the batch
            that ``generate`` is given, None for those without.  With beams or several returned
            sequences, the rows of a sequence share its constraint.
        prompt_length: how many columns of ``input_ids`` are prompt, padding included.  By default
            the width at the first call of a generation.  A new generation is recognised by another
            prompt, another number of rows, or ids that continue none that was seen; where that is
            not certain (two generations in a row where the prompt of the second continues the
            first by one token), call :meth:`reset` between them.
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
        prompt_length: int | None = None,
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
        if prompt_length is not None and prompt_length < 0:
            raise ConstrainError(f"prompt_length is {prompt_length}")
        self._fixed_prompt_length = prompt_length
        self._cached_prefixes = max(1, cached_prefixes)
        self._states: OrderedDict[tuple[int, bytes], _State] = OrderedDict()
        self._prompt: Any = None
        self._prompt_length = 0
        self._longest = 0
        self._bitmask: Any = None

    def reset(self) -> None:
        """Forget the prompt: the next call begins a new generation."""
        self._prompt = None
        self._longest = 0

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
        """
        rows, width = scores.shape
        if width < self._vocabulary.size:
            raise ConstrainError(
                f"the scores have {width} columns, the vocabulary {self._vocabulary.size} tokens:"
                " give Vocabulary the model's size"
            )
        owners = self._owners(rows)
        start = self._start(input_ids)
        prefixes = _host_array(input_ids[:, start:])

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
            elif not matcher.is_finished:
                matchers[row] = matcher
        self._shrink(rows)
        self._mask(masked, matchers)
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
        if self._prompt is None and self._fixed_prompt_length is None:
            raise ConstrainError("the length of the prompt is not known yet: pass prompt_length")
        owners = self._owners(len(sequences))
        prefixes = _host_array(sequences[:, self._prompt_columns() :])
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

    def _mask(self, scores: Any, matchers: list[Any]) -> None:
        """Mask the rows of `scores` that have a matcher, in place."""
        import constrain

        rows = [row for row, matcher in enumerate(matchers) if matcher is not None]
        if not rows:
            return
        if self._bitmask is None or len(self._bitmask) != len(matchers):
            self._bitmask = constrain.allocate_bitmask(len(matchers), self._vocabulary.size)
        try:
            constrain.fill_bitmasks(matchers, self._bitmask)
        except UnsatisfiableError as error:
            # A dead end is possible where satisfiability is undecided within its budget.  All masks
            # are filled; such a row has its ends of sequence open, and must not stop the others.
            _log.warning("%s", error)
        constrain.apply_bitmask(
            scores, self._bitmask, rows=None if len(rows) == len(matchers) else rows
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

    def _prompt_columns(self) -> int:
        fixed = self._fixed_prompt_length
        return self._prompt_length if fixed is None else fixed

    def _start(self, input_ids: Any) -> int:
        """The column where generated ids begin."""
        length = input_ids.shape[1]
        if self._fixed_prompt_length is not None:
            if length < self._fixed_prompt_length:
                raise ConstrainError(
                    f"input_ids has {length} columns, prompt_length is {self._fixed_prompt_length}"
                )
            return self._fixed_prompt_length
        if self._prompt is None or self._is_new(input_ids):
            self._prompt = input_ids.clone()
            self._prompt_length = self._longest = length
        self._longest = max(self._longest, length)
        return self._prompt_length

    def _is_new(self, input_ids: Any) -> bool:
        """Whether these ids cannot belong to the generation that was seen last."""
        import torch

        rows, length = input_ids.shape
        if rows != len(self._prompt) or length < self._prompt_length:
            return True
        if length > self._longest + 1:  # ids come one at a time, drafts too
            return True
        prompt = self._prompt.to(input_ids.device)
        return not torch.equal(input_ids[:, : self._prompt_length], prompt)

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


def _host_array(ids: Any) -> Any:
    """Token ids as a contiguous int32 NumPy array: one transfer for all rows."""
    import numpy
    import torch

    return numpy.ascontiguousarray(ids.to(device="cpu", dtype=torch.int32).numpy())
