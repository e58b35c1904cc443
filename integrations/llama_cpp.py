"""Constrains llama-cpp-python through its list of logits processors.

::

    from constrain.integrations.llama_cpp import create_chat_completion, create_completion
    create_completion(llama, prompt, {"json_schema": schema}, max_tokens=200)
    create_chat_completion(llama, messages, {"regex": "[0-9]+"}, max_tokens=200, stream=True)

They call the methods of the same name with a processor that runs first in the sampler's chain:
ahead of penalties, temperature, top-k and top-p.  ``max_tokens`` is a promise: the text is finished
and valid within it.

Why not the processor alone: llama-cpp-python calls it from C, where an exception is printed and
dropped, and generation goes on without a constraint.  Here a failing processor leaves nothing but
the end of the text, and the error is raised behind the call.  And a ``logit_bias`` is joined to the
list of processors by code that then holds None: bias and constraint would both be lost.

Refused: a draft model, whose unverified tokens show up in the prefix; a grammar or response format
beside the constraint.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

import constrain
from constrain.integrations._prefix import Continuation
from constrain.integrations.base import Adapter
from constrain.integrations.errors import EngineConfigurationError

__all__ = ["ConstrainedProcessor", "create_chat_completion", "create_completion"]

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
            # raised behind the call; until then the row may only end
            self.error = error
            masked[:] = -np.inf
            masked[0, list(self._adapter.vocabulary.eos_token_ids)] = 0.0
        return masked[0]

    def check(self) -> None:
        """Raise what was raised inside of the sampler."""
        if self.error is not None:
            raise self.error


def create_completion(
    llama: Any,
    prompt: Any,
    constraint: Any,
    *,
    max_tokens: int | None = None,
    vocabulary: constrain.Vocabulary | None = None,
    **options: Any,
) -> Any:
    """``llama.create_completion(prompt, max_tokens=..., **options)`` under a constraint.

    Args:
        llama: the loaded model.
        prompt: a text or token ids.
        constraint: as plain data (see `constrain.integrations.requests`), a spec, or compiled.
        max_tokens: at most so many tokens; None is up to the context's end, without a promise.
        vocabulary: by default read from the model, once.

    Returns:
        What the method returns; with ``stream=True`` an iterator.

    Raises:
        EngineConfigurationError: a setting would drop or break the constraint.
        RequestError: the constraint cannot be used, or no valid text has as few tokens.
        Exception: what failed inside of the sampler.
    """
    return _call(llama, "create_completion", prompt, constraint, max_tokens, vocabulary, options)


def create_chat_completion(
    llama: Any,
    messages: Any,
    constraint: Any,
    *,
    max_tokens: int | None = None,
    vocabulary: constrain.Vocabulary | None = None,
    **options: Any,
) -> Any:
    """``llama.create_chat_completion(messages, ...)`` under a constraint: see `create_completion`."""
    return _call(
        llama, "create_chat_completion", messages, constraint, max_tokens, vocabulary, options
    )


# Arguments that bring a grammar of llama.cpp's own.
_OTHERS = ("function_call", "grammar", "response_format", "tool_choice")


def _call(
    llama: Any,
    method: str,
    given: Any,
    constraint: Any,
    max_tokens: int | None,
    vocabulary: constrain.Vocabulary | None,
    options: dict[str, Any],
) -> Any:
    if getattr(llama, "draft_model", None) is not None:
        raise _refused(
            "draft_model",
            "with a draft model, the tokens that a processor is shown are not verified: load the"
            " model without it",
        )
    for name in _OTHERS:
        if options.get(name) is not None:
            raise _refused(name, f"{name} brings a grammar of its own")
    limit = max_tokens if max_tokens is not None and max_tokens > 0 else None
    processor = ConstrainedProcessor(_adapter_of(llama, vocabulary), constraint, max_tokens=limit)
    processors = _list([*(options.pop("logits_processor", None) or ()), processor])
    result = getattr(llama, method)(
        given, max_tokens=max_tokens, logits_processor=processors, **options
    )
    if options.get("stream"):
        return _checked(result, processor)
    processor.check()
    return result


def _checked(chunks: Any, processor: ConstrainedProcessor) -> Iterator[Any]:
    for chunk in chunks:
        processor.check()
        yield chunk
    processor.check()


def _adapter_of(llama: Any, vocabulary: constrain.Vocabulary | None) -> Adapter:
    adapter = _adapters.get(llama)
    if adapter is None or (vocabulary is not None and vocabulary != adapter.vocabulary):
        if vocabulary is None:
            vocabulary = constrain.Vocabulary.from_tokenizer(llama)
        template = (getattr(llama, "metadata", None) or {}).get("tokenizer.chat_template")
        adapter = Adapter(vocabulary, engine="llama-cpp-python", tokenizer=template)
        _adapters[llama] = adapter
    return adapter


def _list(processors: list[Any]) -> Any:
    from llama_cpp import LogitsProcessorList

    class Processors(LogitsProcessorList):
        """llama-cpp-python keeps what `extend` returns, which is nothing for a plain list."""

        def extend(self, more: Any) -> Any:
            for one in reversed(list(more)):
                self.insert(0, one)  # a bias may not open what the constraint forbids
            return self

    return Processors(processors)


def _refused(setting: str, reason: str) -> EngineConfigurationError:
    return EngineConfigurationError(reason, engine="llama-cpp-python", setting=setting)
