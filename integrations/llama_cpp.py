"""Constrains llama-cpp-python through its list of logits processors.

::

    from constrain.integrations.llama_cpp import arguments
    llama(prompt, max_tokens=200, **arguments(llama, {"json_schema": schema}, max_tokens=200))
    llama.create_chat_completion(messages, **arguments(llama, {"regex": "[0-9]+"}))

The processor runs first in the sampler's chain: ahead of penalties, temperature, top-k and top-p.
`arguments` gives two arguments: the processors, and a stopping criterion.  The second one is needed
because llama-cpp-python calls processors from C, where an exception is printed and dropped and
generation goes on without a constraint: here it closes the row but for its end, and the criterion
raises it.

Refused: a draft model, whose unverified tokens show up in the prefix.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

import constrain
from constrain.integrations._prefix import Continuation
from constrain.integrations.base import Adapter
from constrain.integrations.errors import EngineConfigurationError

__all__ = ["ConstrainedProcessor", "arguments"]

_adapters: weakref.WeakKeyDictionary[Any, Adapter] = weakref.WeakKeyDictionary()


class ConstrainedProcessor:
    """A logits processor for one sequence at a time.

    Args:
        adapter: of the model's vocabulary.
        constraint: as plain data (see `constrain.integrations.requests`), a spec, or compiled.
        max_tokens: at most so many tokens come behind the prompt; the text is then finished and
            valid within them.

    Attributes:
        error: what was raised inside of the sampler, or None.

    Raises:
        RequestError: the constraint cannot be used, or no valid text has as few tokens.
    """

    def __init__(self, adapter: Adapter, constraint: Any, *, max_tokens: int | None = None) -> None:
        self._adapter = adapter
        self._prefix = Continuation("llama-cpp-python")
        self._sequence = adapter.open(constraint, max_tokens=max_tokens)
        self.error: Exception | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Masked scores.

        Args:
            input_ids: int32 ``[n]``: prompt and generated ids.
            scores: float32 ``[size]``, a view with gaps.

        Returns:
            A masked copy.  Never raises: see `check`.
        """
        masked = np.array(scores, dtype=np.float32)[None]  # a copy without gaps
        try:
            if self._sequence is not None:
                self._sequence.follow(self._prefix.generated(input_ids))
                self._adapter.mask(masked, [self._sequence])
        except Exception as error:
            # raised again by the stopping criterion; until then the row may only end
            self.error = error
            masked[:] = -np.inf
            masked[0, list(self._adapter.vocabulary.eos_token_ids)] = 0.0
        return masked[0]

    def check(self, *_: Any) -> bool:
        """Raise what was raised inside of the sampler; a stopping criterion that never stops."""
        if self.error is not None:
            raise self.error
        return False


def arguments(
    llama: Any,
    constraint: Any,
    *,
    max_tokens: int | None = None,
    vocabulary: constrain.Vocabulary | None = None,
) -> dict[str, Any]:
    """The arguments of one call of a ``Llama`` object that put it under a constraint.

    Args:
        llama: the loaded model.
        constraint: as plain data, a spec, or compiled.
        max_tokens: the same as in the call; texts are finished and valid within it.
        vocabulary: by default read from the model, once.

    Returns:
        ``logits_processor`` and ``stopping_criteria``.

    Raises:
        EngineConfigurationError: the model speculates.
        RequestError: the constraint cannot be used, or no valid text has as few tokens.
    """
    if getattr(llama, "draft_model", None) is not None:
        raise EngineConfigurationError(
            "with a draft model, the tokens that a processor is shown are not verified: load the"
            " model without draft_model",
            engine="llama-cpp-python",
            setting="draft_model",
        )
    from llama_cpp import LogitsProcessorList, StoppingCriteriaList

    adapter = _adapters.get(llama)
    if adapter is None or (vocabulary is not None and vocabulary != adapter.vocabulary):
        if vocabulary is None:
            vocabulary = constrain.Vocabulary.from_tokenizer(llama)
        adapter = _adapters[llama] = Adapter(vocabulary, engine="llama-cpp-python")
    processor = ConstrainedProcessor(adapter, constraint, max_tokens=max_tokens)

    class Processors(LogitsProcessorList):
        """llama-cpp-python puts a logit bias behind the list and keeps what `extend` returns,
        which is nothing for a plain list: bias and constraint would both be dropped."""

        def extend(self, more: Any) -> Any:
            for one in reversed(list(more)):
                self.insert(0, one)  # a bias may not open what the constraint forbids
            return self

    return {
        "logits_processor": Processors([processor]),
        "stopping_criteria": StoppingCriteriaList([processor.check]),
    }
