"""The filter for ExLlamaV3: ``generator.generate(..., filters=[ConstrainFilter(tokenizer, ...)])``.

::

    from constrain.integrations.exllamav3 import ConstrainFilter
    filter = ConstrainFilter(tokenizer, {"json_schema": schema})
    text = generator.generate(prompt, max_new_tokens=200, filters=[filter], add_bos=True)

A filter belongs to one job.  The mask is a packed int32 row in CPU memory, made in the engine's
worker threads while the GPU computes.  The job's ``max_new_tokens`` is a promise: the text is
finished and valid within it.  Drafts (speculation) are verified token by token by the engine.

Refused, when the job starts: token healing, which samples the first token without filters, and
``min_new_tokens``, which forbids the end where nothing else may follow.

ExLlamaV3 is imported when the class ``ConstrainFilter`` is first asked for.
"""

from __future__ import annotations

import logging
import weakref
from typing import Any

import constrain
from constrain.integrations.base import Adapter, ConstrainedSequence
from constrain.integrations.errors import EngineConfigurationError

__all__ = ["ConstrainFilter", "FilterCore"]  # noqa: F822  (made when first asked for)

_log = logging.getLogger("constrain")

_adapters: weakref.WeakKeyDictionary[Any, Adapter] = weakref.WeakKeyDictionary()


class FilterCore:
    """What the filter does; ``ConstrainFilter`` adds the engine's base class.

    Args:
        tokenizer: the engine's tokenizer.
        constraint: as plain data (see `constrain.integrations.requests`), a spec, or compiled.
        vocabulary: by default read from the tokenizer, once.
        trigger_token: the filter begins behind this token; by default at once.
        prefix_str: see ExLlamaV3; it is outside of the constraint.
        eos_after_completed: whether the job ends with the text (the default here).  Otherwise what
            follows is free.

    Raises:
        RequestError: the constraint cannot be used.
    """

    def __init__(
        self,
        tokenizer: Any,
        constraint: Any,
        *,
        vocabulary: constrain.Vocabulary | None = None,
        trigger_token: int | None = None,
        prefix_str: str | None = None,
        eos_after_completed: bool = True,
    ) -> None:
        super().__init__(tokenizer, trigger_token, prefix_str, eos_after_completed)  # type: ignore[call-arg]
        self._adapter = _adapter_of(tokenizer, vocabulary)
        opened = self._adapter.open(constraint)
        if opened is None:
            raise EngineConfigurationError(
                "a filter needs a constraint", engine="exllamav3", setting="constraint"
            )
        self._sequence: ConstrainedSequence = opened
        self._compiled = opened.matcher.compiled
        size = self._adapter.vocabulary.size
        self._bitmask = constrain.allocate_bitmask(1, size)

    def attach(self, job: Any) -> None:
        """The job starts; raises EngineConfigurationError if it would break the constraint."""
        if getattr(job, "prefix_token", None) is not None:
            raise EngineConfigurationError(
                "token healing samples the first token without filters",
                engine="exllamav3",
                setting="token_healing",
            )
        if getattr(job, "min_new_tokens", 0):
            raise EngineConfigurationError(
                "min_new_tokens forbids the end where nothing else may follow",
                engine="exllamav3",
                setting="min_new_tokens",
            )
        super().attach(job)  # type: ignore[misc]
        if self.trigger_token is None:  # type: ignore[attr-defined]
            # behind a trigger, what is left of the limit is not known here
            opened = self._adapter.open(
                self._compiled, max_tokens=getattr(job, "max_new_tokens", None)
            )
            if opened is not None:
                self._sequence = opened

    def reset(self) -> None:
        """Back to the start of the text."""
        self._sequence.follow([])

    def accept_token(self, token: int) -> None:
        """Append a sampled token.  Raises ConstrainError if it is illegal, which the mask forbids."""
        if not self._sequence.is_finished and not self._sequence.advance(int(token)):
            raise EngineConfigurationError(
                f"token {token} was sampled though the mask forbids it",
                engine="exllamav3",
                setting="filters",
            )

    def rollback_tokens(self, num_tokens: int) -> bool:
        """Take back the last tokens; False if there are fewer."""
        if num_tokens > len(self._sequence.token_ids):
            return False
        self._sequence.rollback(num_tokens)
        return True

    def get_next_logit_mask(self) -> Any:
        """The allowed tokens: int32 tensor ``[1, ceil(size / 32)]``, overwritten by the next one."""
        import torch

        self._adapter.fill([self._sequence], self._bitmask)
        return torch.from_numpy(self._bitmask)

    def is_completed(self) -> bool:
        """The text is over: it has ended, or nothing but its end may follow."""
        if self._sequence.is_finished:
            return True
        if not self._sequence.is_complete:
            return False
        self._adapter.fill([self._sequence], self._bitmask)
        return not (self._bitmask[0] & ~self._adapter.ends).any()


def _adapter_of(tokenizer: Any, vocabulary: constrain.Vocabulary | None) -> Adapter:
    found = _adapters.get(tokenizer)
    if found is not None and (vocabulary is None or vocabulary == found.vocabulary):
        return found
    if vocabulary is None:
        ends = getattr(getattr(tokenizer, "config", None), "eos_token_id_list", None)
        own = getattr(tokenizer, "eos_token_id", None)
        vocabulary = constrain.Vocabulary.from_tokenizer(
            tokenizer.tokenizer,
            eos_token_ids=sorted({*(ends or ()), *([] if own is None else [own])}) or None,
        )
    adapter = Adapter(vocabulary, engine="exllamav3")
    _adapters[tokenizer] = adapter
    return adapter


def __getattr__(name: str) -> Any:
    if name == "ConstrainFilter":
        from exllamav3.generator.filter import Filter

        globals()[name] = type(
            "ConstrainFilter",
            (FilterCore, Filter),
            {"__module__": __name__, "__doc__": FilterCore.__doc__},
        )
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
