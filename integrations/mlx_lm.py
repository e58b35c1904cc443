"""Constrains mlx-lm through its lists of logits processors.

::

    from constrain.integrations.mlx_lm import Constraints
    constraints = Constraints(tokenizer, model)
    processor = constraints.processor({"json_schema": schema}, max_tokens=200)
    generate(model, tokenizer, prompt, max_tokens=200, logits_processors=[processor])

One processor serves one sequence.  For ``BatchGenerator``, make one for each prompt.  Processors run
ahead of the sampler (temperature, top-p, min-p, top-k); put this one last in its list.

mlx-lm computes the next step before it hands out a token, so the processor is called once more
behind the end of a text; such calls allow the end only.  With a draft model the prefixes go back and
forth; the state follows them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import constrain
from constrain.integrations._prefix import Continuation
from constrain.integrations.base import Adapter, ConstrainedSequence

__all__ = ["ConstrainedProcessor", "Constraints"]


class ConstrainedProcessor:
    """A logits processor for one sequence; made by `Constraints.processor`."""

    def __init__(
        self, adapter: Adapter, sequence: ConstrainedSequence | None, prompt_length: int | None
    ) -> None:
        self._adapter = adapter
        self._sequence = sequence
        self._prefix = Continuation("mlx-lm", prompt_length)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Masked logits.

        Args:
            tokens: mlx array ``[n]``: prompt and generated ids.
            logits: mlx array ``[1, width]``.
        """
        import mlx.core as mx

        if self._sequence is None:
            return logits
        self._sequence.follow(self._prefix.generated(np.array(tokens)))
        values = np.array(logits.astype(mx.float32))
        self._adapter.mask(values, [self._sequence])
        return mx.array(values).astype(logits.dtype)


class Constraints:
    """Makes the processors of one model.

    Args:
        tokenizer: mlx-lm's tokenizer, or the one of transformers.
        model: the model, for the width of its logits; by default the tokenizer's size.
        vocabulary: instead of both.
    """

    def __init__(
        self,
        tokenizer: Any = None,
        model: Any = None,
        *,
        vocabulary: constrain.Vocabulary | None = None,
    ) -> None:
        if vocabulary is None:
            vocabulary = _vocabulary(tokenizer, model)
        inner = getattr(tokenizer, "_tokenizer", tokenizer)
        self._adapter = Adapter(vocabulary, engine="mlx-lm", tokenizer=inner)

    @property
    def vocabulary(self) -> constrain.Vocabulary:
        """The vocabulary of the model."""
        return self._adapter.vocabulary

    def processor(
        self, constraint: Any, *, max_tokens: int | None = None, prompt_length: int | None = None
    ) -> ConstrainedProcessor:
        """A processor for one sequence.

        Args:
            constraint: as plain data (see `constrain.integrations.requests`), a spec, compiled, or
                None.
            max_tokens: the same as in the call; the text is finished and valid within it.
            prompt_length: how many of the ids that a call is shown are prompt; by default all of
                the first call.

        Raises:
            RequestError: the constraint cannot be used, or no valid text has as few tokens.
        """
        sequence = self._adapter.open(constraint, max_tokens=max_tokens)
        return ConstrainedProcessor(self._adapter, sequence, prompt_length)


def _vocabulary(tokenizer: Any, model: Any) -> constrain.Vocabulary:
    inner = getattr(tokenizer, "_tokenizer", tokenizer)  # mlx-lm wraps the one of transformers
    ends = getattr(tokenizer, "eos_token_ids", None)
    size = getattr(getattr(model, "args", None), "vocab_size", None)
    return constrain.Vocabulary.from_tokenizer(
        inner, eos_token_ids=sorted(ends) if ends else None, size=size
    )
