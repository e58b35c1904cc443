"""From masked logits to a token: temperature, then top-k, then top-p, then a draw.

The mask comes first, so that top-k and top-p choose among legal tokens and the probabilities that
are left are renormalised over them: sampling is from the model's distribution given legality, step
by step.

Cost: one pass over the logits, and a sort of the few tokens that top-k and top-p keep; the whole
vocabulary is sorted only where the most likely 1,024 tokens hold less than `top_p`.
"""

from __future__ import annotations

import math
from typing import Any

from constrain.errors import ConstrainError

__all__ = ["Sampler", "kept_probabilities"]

_FIRST_SORTED = 1024  # nearly always holds top-p's tokens


class Sampler:
    """Chooses tokens of one sequence.

    Args:
        temperature: divides the logits; 0 takes the most likely token (of equal ones the smallest
            id), whatever the other settings.
        top_k: keep the k most likely tokens; None or 0 keeps all.
        top_p: keep the fewest most likely tokens whose probability reaches top_p; None or 1 keeps
            all.
        seed: makes the draws repeatable; None draws a seed.

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
    ) -> None:
        if not (math.isfinite(temperature) and temperature >= 0):
            raise ConstrainError(f"temperature is {temperature}, expected 0 or more")
        if top_k is not None and top_k < 0:
            raise ConstrainError(f"top_k is {top_k}, expected 1 or more")
        if top_p is not None and not 0 < top_p <= 1:
            raise ConstrainError(f"top_p is {top_p}, expected more than 0, at most 1")
        self.temperature = temperature
        self.top_k = top_k or None
        self.top_p = None if top_p == 1 else top_p
        self._seed = seed
        self._generator: Any = None

    def sample(self, logits: Any) -> int:
        """Choose a token.

        Args:
            logits: float tensor ``[width]`` on any device, ``-inf`` where illegal.

        Raises:
            ConstrainError: no token is legal, or the logits are not numbers.
        """
        import torch

        best = int(torch.argmax(logits))  # NaN counts as the largest
        if not math.isfinite(float(logits[best])):
            if float(logits[best]) == -math.inf:
                raise ConstrainError("no token is allowed: every logit is -inf")
            raise ConstrainError(f"the model's logits are not finite: {float(logits[best])}")
        if self.temperature == 0:
            return best
        ids, probabilities = kept_probabilities(
            logits, temperature=self.temperature, top_k=self.top_k, top_p=self.top_p
        )
        if len(ids) == 1:
            return int(ids[0])
        drawn = torch.multinomial(probabilities, 1, generator=self._random(logits.device))
        return int(ids[drawn])

    def _random(self, device: Any) -> Any:
        import torch

        if self._generator is None or self._generator.device != device:
            self._generator = torch.Generator(device=device)
            if self._seed is None:
                self._generator.seed()
            else:
                self._generator.manual_seed(self._seed)
        return self._generator


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
