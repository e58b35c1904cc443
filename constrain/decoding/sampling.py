"""From logits to a token: penalties, the mask, temperature, top-k, top-p, a draw.

The mask comes before the warpers, so that top-k and top-p choose among legal tokens and the
probabilities that are left are renormalised over them: sampling is from the model's distribution
given legality, step by step.  Repetition penalty and logit bias change the logits ahead of the mask;
they are finite, so they can neither open a token nor close all of them.

Cost: one pass over the logits, and a sort of the few tokens that top-k and top-p keep; the whole
vocabulary is sorted only where the most likely 1,024 tokens hold less than `top_p`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from constrain.errors import ConstrainError

__all__ = ["Sampler", "kept_probabilities"]

_FIRST_SORTED = 1024  # nearly always holds top-p's tokens
_LARGEST_BIAS = 1e6  # far from where float32 overflows


class Sampler:
    """Chooses tokens of one sequence.

    Args:
        temperature: divides the logits; 0 takes the most likely token (of equal ones the smallest
            id), whatever the other settings.
        top_k: keep the k most likely tokens; None or 0 keeps all, 1 is the same as temperature 0.
        top_p: keep the fewest most likely tokens whose probability reaches top_p; None or 1 keeps
            all.
        seed: makes the draws repeatable, whatever else is in the batch; None draws a seed.
        repetition_penalty: logits of tokens that the prompt or the text has already are divided by
            it where positive and multiplied where negative; 1 changes nothing.
        logit_bias: numbers that are added to the logits of token ids.

    Raises:
        ConstrainError: a setting out of its range.
    """

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        repetition_penalty: float = 1.0,
        logit_bias: Mapping[int, float] | None = None,
    ) -> None:
        if not (math.isfinite(temperature) and temperature >= 0):
            raise ConstrainError(f"temperature is {temperature}, expected 0 or more")
        if top_k is not None and top_k < 0:
            raise ConstrainError(f"top_k is {top_k}, expected 1 or more")
        if top_p is not None and not 0 < top_p <= 1:
            raise ConstrainError(f"top_p is {top_p}, expected more than 0, at most 1")
        if not (math.isfinite(repetition_penalty) and repetition_penalty > 0):
            raise ConstrainError(f"repetition_penalty is {repetition_penalty}, expected above 0")
        for token_id, bias in (logit_bias or {}).items():
            if isinstance(token_id, bool) or not isinstance(token_id, int) or token_id < 0:
                raise ConstrainError(f"logit_bias has the key {token_id!r}, expected token ids")
            if not abs(bias) <= _LARGEST_BIAS:  # NaN too
                raise ConstrainError(
                    f"logit_bias of token {token_id} is {bias}, expected a number of at most"
                    f" {_LARGEST_BIAS:g} in absolute value"
                )
        self.temperature = temperature
        self.top_k = top_k or None
        self.top_p = None if top_p == 1 else top_p
        self.repetition_penalty = repetition_penalty
        self.logit_bias = dict(logit_bias or {})
        self._seed = seed
        self._generator: Any = None

    @property
    def is_greedy(self) -> bool:
        """Whether no draw is ever made."""
        return self.temperature == 0 or self.top_k == 1

    @property
    def adjusts(self) -> bool:
        """Whether `adjust` changes anything."""
        return self.repetition_penalty != 1 or bool(self.logit_bias)

    def adjust(self, logits: Any, history: Sequence[int]) -> None:
        """Apply logit bias and repetition penalty, in place, ahead of the mask.

        Args:
            logits: float tensor ``[width]``.
            history: the ids of the prompt and of the text so far.

        Raises:
            ConstrainError: `logit_bias` names a token that the model has no logit for.
        """
        import torch

        if self.logit_bias:
            if max(self.logit_bias) >= len(logits):
                raise ConstrainError(
                    f"logit_bias names token {max(self.logit_bias)}, the model has"
                    f" {len(logits)} logits"
                )
            ids = torch.tensor(list(self.logit_bias), dtype=torch.int64, device=logits.device)
            added = torch.tensor(
                list(self.logit_bias.values()), dtype=logits.dtype, device=logits.device
            )
            logits[ids] += added
        if self.repetition_penalty != 1 and history:
            seen = torch.tensor(sorted(set(history)), dtype=torch.int64, device=logits.device)
            values = logits[seen]
            logits[seen] = torch.where(
                values > 0, values / self.repetition_penalty, values * self.repetition_penalty
            )

    def sample(self, logits: Any) -> int:
        """Choose a token.

        Args:
            logits: float tensor ``[width]`` on any device, ``-inf`` where illegal.

        Raises:
            ConstrainError: no token is legal, or the logits are not numbers.
        """
        if self.is_greedy:
            return _best(logits)
        return self.draw(*self.distribution(logits))

    def distribution(self, logits: Any) -> tuple[Any, Any]:
        """The tokens that may be chosen and their probabilities.

        Args and raises: as `sample`.

        Returns:
            int64 ids ``[n]`` and float32 probabilities ``[n]``, which sum to 1.
        """
        import torch

        best = _best(logits)
        if self.is_greedy:
            return (
                torch.tensor([best], device=logits.device),
                torch.ones(1, device=logits.device),
            )
        return kept_probabilities(
            logits, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p
        )

    def draw(self, ids: Any, probabilities: Any) -> int:
        """Draw one of `ids` ``[n]`` by its probability (they need not sum to 1)."""
        import torch

        if len(ids) == 1:
            return int(ids[0])
        drawn = torch.multinomial(probabilities, 1, generator=self._random(probabilities.device))
        return int(ids[drawn])

    def uniform(self, device: Any) -> float:
        """A number from 0 to below 1, of the same stream as the draws."""
        import torch

        return float(torch.rand((), generator=self._random(device), device=device))

    def _random(self, device: Any) -> Any:
        import torch

        if self._generator is None or self._generator.device != device:
            self._generator = torch.Generator(device=device)
            if self._seed is None:
                self._generator.seed()
            else:
                # Mixed: the first numbers of neighbouring seeds are not independent otherwise.
                mixed = np.random.SeedSequence(self._seed).generate_state(1, np.uint64)
                self._generator.manual_seed(int(mixed[0]) >> 1)
        return self._generator


def _best(logits: Any) -> int:
    """The most likely token, of equal ones the smallest id."""
    import torch

    best = int(torch.argmax(logits))  # NaN counts as the largest
    if not math.isfinite(float(logits[best])):
        if float(logits[best]) == -math.inf:
            raise ConstrainError("no token is allowed: every logit is -inf")
        raise ConstrainError(f"the model's logits are not finite: {float(logits[best])}")
    return best


def kept_probabilities(
    logits: Any, *, temperature: float, top_k: int | None, top_p: float | None
) -> tuple[Any, Any]:
    """The tokens that may be drawn, and their probabilities, which sum to 1.

    Args:
        logits: float tensor ``[width]`` with at least one finite entry.
        temperature: above 0.
        top_k, top_p: as in :class:`Sampler`, None for all.

    Returns:
        int64 ids and float32 probabilities, by falling probability where top-k or top-p is given,
        else by id.  Tokens of probability 0 are not listed.
    """
    import torch

    values = logits.to(torch.float32)
    ids = torch.isfinite(values).nonzero().flatten()
    values = values[ids]
    if top_k is not None and top_k < len(values):
        values, order = torch.topk(values, top_k)
        ids = ids[order]
    # Subtracting the largest first keeps tiny temperatures from overflowing.
    probabilities = torch.softmax((values - values.max()) / temperature, dim=0)
    if top_p is None:
        if top_k is not None:
            probabilities, order = torch.sort(probabilities, descending=True, stable=True)
            ids = ids[order]
    else:
        count = min(_FIRST_SORTED, len(probabilities))
        largest, order = torch.topk(probabilities, count)
        if float(largest.sum()) < top_p and count < len(probabilities):
            largest, order = torch.sort(probabilities, descending=True, stable=True)
        before = torch.cumsum(largest, dim=0) - largest
        kept = max(1, int((before < top_p).sum()))
        probabilities, ids = largest[:kept], ids[order[:kept]]
        probabilities = probabilities / probabilities.sum()
    drawable = probabilities > 0  # underflow
    if not bool(drawable.all()):
        ids, probabilities = ids[drawable], probabilities[drawable]
    return ids, probabilities
