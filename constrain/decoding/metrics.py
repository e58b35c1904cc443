"""Timings of one generated sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Timings", "percentile"]


@dataclass
class Timings:
    """When tokens came, in seconds.

    In a batch all sequences share a step, so each step counts for every sequence that took part.

    Attributes:
        time_to_first_token: from the start of the prefill to the first chosen token; None if the
            sequence has none.
        inter_token: from each token to the next, one entry fewer than tokens (an end of sequence
            token counts as one).
        mask: filling masks and applying them, in total.
        prefill: the forward pass over the prompt.
    """

    time_to_first_token: float | None = None
    inter_token: list[float] = field(default_factory=list)
    mask: float = 0.0
    prefill: float = 0.0

    @property
    def inter_token_mean(self) -> float | None:
        """Mean time between tokens; None below two tokens, as are the percentiles."""
        return sum(self.inter_token) / len(self.inter_token) if self.inter_token else None

    @property
    def inter_token_p50(self) -> float | None:
        """Median time between tokens."""
        return percentile(self.inter_token, 50)

    @property
    def inter_token_p99(self) -> float | None:
        """The time between tokens that 99% of them do not exceed."""
        return percentile(self.inter_token, 99)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of this sequence per second, prefill included; None without a token."""
        if self.time_to_first_token is None:
            return None
        total = self.time_to_first_token + sum(self.inter_token)
        return (len(self.inter_token) + 1) / total if total > 0 else None


def percentile(values: list[float], percent: float) -> float | None:
    """The smallest of `values` that at least `percent` of them do not exceed; None without any."""
    if not values:
        return None
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(0, int(rank) - 1)]
