"""The decode loop: one prefill, then one forward pass per token with the KV cache.

Each step, for all sequences that are still running::

    logits of the forward pass -> masks of the matchers -> temperature -> top-k -> top-p -> draw

A sequence is over when its end of sequence token is chosen, or already when nothing but that is
allowed, which saves the forward pass that would choose it.  Sequences that are over leave the batch.

Invariants: a token is chosen from a masked row only, and advances its matcher; the text is the
bytes of the tokens, so the constraint has seen exactly what is returned.
"""

from __future__ import annotations

import codecs
import contextlib
import inspect
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from constrain.decoding.metrics import Timings
from constrain.decoding.prompts import Prompt, encode_prompt
from constrain.decoding.result import GenerationResult
from constrain.decoding.sampling import Sampler
from constrain.errors import ConstrainError, UnsatisfiableError

__all__ = ["generate", "generate_batch"]

_vocabularies: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def generate(
    model: Any,
    tokenizer: Any,
    prompt: Prompt,
    constraint: Any = None,
    *,
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    on_text: Callable[[str], None] | None = None,
) -> GenerationResult:
    """Generate one sequence.

    Args:
        model: a causal language model of transformers, in evaluation mode.
        tokenizer: its tokenizer.
        prompt: a text, chat messages or token ids.
        constraint: a compiled constraint, or None.
        max_tokens: at most so many tokens, besides the end of sequence.
        temperature, top_k, top_p, seed: see :class:`~constrain.decoding.Sampler`.
        on_text: called with each piece of text as soon as it is certain (a character may take
            several tokens); the pieces joined are the text of the result.

    Raises:
        ConstrainError: the prompt does not fit the model, a setting is out of range, or the
            constraint belongs to another vocabulary.
    """
    sampler = Sampler(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    vocabulary = _vocabulary_of(tokenizer, model, [constraint])
    sequence = _Sequence(
        encode_prompt(tokenizer, prompt), constraint, vocabulary, sampler, max_tokens, on_text
    )
    _run(model, vocabulary, [sequence])
    return sequence.result()


def generate_batch(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    constraints: Any = None,
    *,
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    on_token: Callable[[int, int], None] | None = None,
) -> list[GenerationResult]:
    """Generate one sequence for each prompt, together.

    Args:
        prompts: each a text, chat messages or token ids; padded on the left.
        constraints: one compiled constraint for all, or a list with one (or None) for each prompt.
        seed: prompt i draws with the seed ``seed + i``, so that equal prompts differ.
        on_token: called with the index of the prompt and each id that is chosen for it.

    The other arguments, and what is raised, are those of :func:`generate`.

    Returns:
        The results, in the order of the prompts.
    """
    if isinstance(prompts, str):
        raise ConstrainError("prompts is a list of prompts, not one text")
    if constraints is None or not isinstance(constraints, Sequence):
        constraints = [constraints] * len(prompts)
    if len(constraints) != len(prompts):
        raise ConstrainError(f"there are {len(prompts)} prompts and {len(constraints)} constraints")
    vocabulary = _vocabulary_of(tokenizer, model, constraints)
    sequences = []
    for index, (prompt, constraint) in enumerate(zip(prompts, constraints)):
        sampler = Sampler(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=None if seed is None else seed + index,
        )
        try:
            ids = encode_prompt(tokenizer, prompt)
        except ConstrainError as error:
            raise ConstrainError(f"prompt {index}: {error}") from error
        sequence = _Sequence(ids, constraint, vocabulary, sampler, max_tokens, None)
        if on_token is not None:
            sequence.on_token = _numbered(on_token, index)
        sequences.append(sequence)
    if sequences:
        _run(model, vocabulary, sequences)
    return [sequence.result() for sequence in sequences]


def _numbered(on_token: Callable[[int, int], None], index: int) -> Callable[[int], None]:
    return lambda token_id: on_token(index, token_id)


def _vocabulary_of(tokenizer: Any, model: Any, constraints: Sequence[Any]) -> Any:
    """The vocabulary that the constraints share; without any, the tokenizer's own."""
    found = [constraint.vocabulary for constraint in constraints if constraint is not None]
    if found:
        if any(vocabulary != found[0] for vocabulary in found[1:]):
            raise ConstrainError("the constraints were compiled for different vocabularies")
        return found[0]
    from constrain.vocabulary import Vocabulary

    vocabulary = _vocabularies.get(tokenizer)
    if vocabulary is None:
        vocabulary = Vocabulary.from_tokenizer(tokenizer, model=model)
        _vocabularies[tokenizer] = vocabulary
    return vocabulary


class _Sequence:
    """One sequence of a batch, from its prompt to its result."""

    def __init__(
        self,
        prompt: list[int],
        constraint: Any,
        vocabulary: Any,
        sampler: Sampler,
        max_tokens: int,
        on_text: Callable[[str], None] | None,
    ) -> None:
        if max_tokens < 1:
            raise ConstrainError(f"max_tokens is {max_tokens}, expected 1 or more")
        self.prompt = prompt
        self.matcher = None if constraint is None else constraint.matcher()
        self.sampler = sampler
        self.remaining = max_tokens
        self.token_ids: list[int] = []
        self.finish_reason: str | None = None
        self.on_token: Callable[[int], None] | None = None
        self.timings = Timings()
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: list[str] = []
        self._on_text = on_text
        self._last = 0.0

    def choose(self, logits: Any) -> None:
        """Choose the next token from masked logits ``[width]``."""
        token_id = self.sampler.sample(logits)
        if token_id in self._vocabulary.eos_token_ids:
            if self.matcher is not None:
                self.matcher.advance(token_id)
            self.finish("stop")
            return
        if self.matcher is not None:
            self.matcher.advance(token_id)
        self.token_ids.append(token_id)
        self.remaining -= 1
        if self.on_token is not None:
            self.on_token(token_id)
        if token_id < self._vocabulary.size:
            self._emit(self._decoder.decode(self._vocabulary.tokens[token_id] or b""))

    def tick(self, start: float, now: float) -> None:
        """Note that a token was chosen at `now`."""
        if self.timings.time_to_first_token is None:
            self.timings.time_to_first_token = now - start
        else:
            self.timings.inter_token.append(now - self._last)
        self._last = now

    def finish(self, reason: str) -> None:
        self.finish_reason = reason
        self._emit(self._decoder.decode(b"", final=True))

    def _emit(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            if self._on_text is not None:
                self._on_text(text)

    def result(self) -> GenerationResult:
        return GenerationResult(
            text="".join(self._pieces),
            token_ids=self.token_ids,
            finish_reason=self.finish_reason or "length",
            is_complete=None if self.matcher is None else bool(self.matcher.is_accepting),
            prompt_tokens=len(self.prompt),
            timings=self.timings,
        )


def _run(model: Any, vocabulary: Any, sequences: list[_Sequence]) -> None:
    """Decode `sequences` to their ends."""
    import torch

    limit = _context_limit(model)
    for sequence in sequences:
        if limit is not None:
            if len(sequence.prompt) >= limit:
                raise ConstrainError(
                    f"the prompt has {len(sequence.prompt)} tokens, the model reads {limit}"
                )
            sequence.remaining = min(sequence.remaining, limit - len(sequence.prompt))
    masks = _Masks(vocabulary, len(sequences))
    running = list(sequences)
    with torch.inference_mode():
        start = time.perf_counter()
        batch = _Batch(model, [sequence.prompt for sequence in sequences])
        masks.fill(running)
        running = _drop_finished(running, batch, masks)
        if not running:
            return
        logits = batch.prefill()
        for sequence in running:
            sequence.timings.prefill = time.perf_counter() - start
        while True:
            masks.apply(running, logits)
            for row, sequence in enumerate(running):
                sequence.choose(logits[row])
            now = time.perf_counter()
            for sequence in running:
                sequence.tick(start, now)
            running = _drop_finished(running, batch, masks)
            masks.fill(running)
            # Behind the masks: a text that can only end has stopped, whatever tokens are left.
            for sequence in running:
                if sequence.finish_reason is None and sequence.remaining <= 0:
                    sequence.finish("length")
            running = _drop_finished(running, batch, masks)
            if not running:
                return
            logits = batch.step([sequence.token_ids[-1] for sequence in running])


def _drop_finished(running: list[_Sequence], batch: _Batch, masks: _Masks) -> list[_Sequence]:
    """The sequences that go on; the others leave the batch and the masks."""
    kept = [row for row, sequence in enumerate(running) if sequence.finish_reason is None]
    if len(kept) == len(running):
        return running
    batch.keep(kept)
    masks.keep(kept)
    return [running[row] for row in kept]


class _Masks:
    """The bitmask of the running sequences."""

    def __init__(self, vocabulary: Any, rows: int) -> None:
        import constrain

        self._size = vocabulary.size
        self._bitmask = constrain.allocate_bitmask(rows, vocabulary.size)
        self._ends = constrain.allocate_bitmask(1, vocabulary.size)[0]
        self._ends[:] = 0
        view = self._ends.view(np.uint32)
        for token_id in vocabulary.eos_token_ids:
            view[token_id // 32] |= np.uint32(1 << token_id % 32)

    def fill(self, running: list[_Sequence]) -> None:
        """Fill the masks; sequences that have nothing but their end before them are finished."""
        import constrain

        matchers = [sequence.matcher for sequence in running]
        if all(matcher is None for matcher in matchers):
            return
        begin = time.perf_counter()
        # Where it is raised all masks are filled: a row without any token has its ends open.
        with contextlib.suppress(UnsatisfiableError):
            constrain.fill_bitmasks(matchers, self._bitmask)
        spent = time.perf_counter() - begin
        for row, sequence in enumerate(running):
            if sequence.matcher is None:
                continue
            sequence.timings.mask += spent
            if not np.any(self._bitmask[row] & ~self._ends):
                sequence.finish("stop" if sequence.matcher.is_accepting else "dead_end")

    def keep(self, rows: list[int]) -> None:
        """Drop all rows but these."""
        self._bitmask[: len(rows)] = self._bitmask[rows]

    def apply(self, running: list[_Sequence], logits: Any) -> None:
        """Mask the logits ``[rows, width]`` of the sequences that have a constraint, in place."""
        import constrain

        rows = [row for row, sequence in enumerate(running) if sequence.matcher is not None]
        if not rows:
            return
        if logits.shape[1] < self._size:
            raise ConstrainError(
                f"the model has {logits.shape[1]} logits, the vocabulary {self._size} tokens: give"
                " Vocabulary the model's size"
            )
        begin = time.perf_counter()
        bitmask = self._bitmask[: len(running)]
        constrain.apply_bitmask(logits, bitmask, rows=None if len(rows) == len(running) else rows)
        spent = time.perf_counter() - begin
        for row in rows:
            running[row].timings.mask += spent


class _Batch:
    """The forward passes: prompts padded on the left, a KV cache, rows that can leave."""

    def __init__(self, model: Any, prompts: list[list[int]]) -> None:
        import torch

        self._model = model
        self._device = model.device
        width = max(map(len, prompts))
        ids = torch.zeros((len(prompts), width), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        self._ids = ids.to(self._device)
        self._mask = mask.to(self._device)
        # Rows of the cache, which cannot always drop some: index into it of each running row.
        self._rows: list[int] = list(range(len(prompts)))
        self._height = len(prompts)
        self._cache: Any = None
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._takes_positions = "position_ids" in parameters
        self._last_only = next(
            (n for n in ("logits_to_keep", "num_logits_to_keep") if n in parameters), None
        )

    def keep(self, rows: list[int]) -> None:
        """Go on with these of the running rows only."""
        import torch

        self._rows = [self._rows[row] for row in rows]
        select = getattr(self._cache, "batch_select_indices", None)
        if self._cache is not None and select is None:
            return  # the other rows are carried along
        chosen = torch.tensor(self._rows, dtype=torch.int64, device=self._device)
        self._ids, self._mask = self._ids[chosen], self._mask[chosen]
        if select is not None and len(self._rows):
            select(chosen)
        self._height = len(self._rows)
        self._rows = list(range(self._height))

    def prefill(self) -> Any:
        """Logits ``[running rows, width]``, float32, behind the prompts."""
        positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
        return self._forward(self._ids, positions)

    def step(self, token_ids: list[int]) -> Any:
        """Logits behind one more token of each running row."""
        import torch

        column = torch.zeros((self._height, 1), dtype=torch.int64)
        for row, token_id in zip(self._rows, token_ids):
            column[row, 0] = token_id
        self._mask = torch.cat([self._mask, self._mask.new_ones((self._height, 1))], dim=1)
        positions = self._mask.sum(dim=1, keepdim=True) - 1
        return self._forward(column.to(self._device), positions)

    def _forward(self, ids: Any, positions: Any) -> Any:
        import torch

        options: dict[str, Any] = {self._cache_name: self._cache, "use_cache": True}
        if self._takes_positions:
            options["position_ids"] = positions
        if self._last_only is not None:
            options[self._last_only] = 1
        output = self._model(input_ids=ids, attention_mask=self._mask, **options)
        self._cache = getattr(output, self._cache_name, None)
        if self._cache is None:
            raise ConstrainError(
                f"{type(self._model).__name__} returns no KV cache, which this loop needs"
            )
        logits = output.logits[:, -1, :]
        if len(self._rows) != self._height:
            logits = logits[self._rows]
        # A copy: the mask is applied in place.
        return logits.to(dtype=torch.float32, copy=True)


def _context_limit(model: Any) -> int | None:
    config: Any = getattr(model, "config", None)
    if hasattr(config, "get_text_config"):
        config = config.get_text_config()
    limit = getattr(config, "max_position_embeddings", None)
    return int(limit) if isinstance(limit, int) and limit > 0 else None
