"""What decoding costs: timings of one sequence, and metrics of one or many.

Names and definitions are those of the serving benchmarks:

* *time to first token*: from the start of the call to the first token.
* *inter-token latency*: from each token to the next one.  Tokens that come from one forward pass
  (forced ones, accepted drafts) come at one moment, so all but the first of them have latency 0.
* *perceived tokens per second*: of one sequence, behind its first token: what a reader sees.
* *total tokens per second*: of all sequences, from the start to the last token of all.
* *forward passes per token*: passes that a sequence took part in, by its tokens.  1 is plain
  decoding; forced tokens and accepted drafts lower it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Metrics", "Timings", "percentile"]


@dataclass
class Timings:
    """What one sequence took.  Times are seconds.

    In a batch all sequences share a step, so each step counts for every sequence that took part.

    Attributes:
        time_to_first_token: from the start to the first token; None if the sequence has none.
        inter_token: from each token to the next, one entry fewer than tokens (an end of sequence
            token counts as one).
        mask: filling masks, applying them and finding forced tokens, in total; of a call for
            several sequences an equal share each.
        prefill: the forward pass over the prompt.
        passes: forward passes of the model, the prefill included.
        draft_passes: forward passes of a draft model.
        forced: tokens that were appended because the text had no alternative.
        drafted: tokens that were drafted, besides forced ones.
        accepted: drafted tokens that became part of the text.
        removed: for each choice the share of the model's probability that the mask removed, where
            that was measured.
    """

    time_to_first_token: float | None = None
    inter_token: list[float] = field(default_factory=list)
    mask: float = 0.0
    prefill: float = 0.0
    passes: int = 0
    draft_passes: int = 0
    forced: int = 0
    drafted: int = 0
    accepted: int = 0
    removed: list[float] = field(default_factory=list)
    _last: float = field(default=0.0, repr=False)

    def tick(self, start: float, now: float, tokens: int) -> None:
        """Note that at `now` there are `tokens` tokens, of a run that began at `start`."""
        new = tokens - self.tokens
        if new > 0 and self.time_to_first_token is None:
            self.time_to_first_token = now - start
            self._last = now
            new -= 1
        if new > 0:
            self.inter_token += [now - self._last] + [0.0] * (new - 1)
            self._last = now

    @property
    def tokens(self) -> int:
        """How many tokens were timed."""
        return 0 if self.time_to_first_token is None else 1 + len(self.inter_token)

    @property
    def total(self) -> float:
        """From the start to the last token."""
        return (self.time_to_first_token or 0.0) + sum(self.inter_token)

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
        return self.tokens / self.total if self.tokens and self.total > 0 else None

    @property
    def perceived_tokens_per_second(self) -> float | None:
        """Tokens per second behind the first one; None below two tokens."""
        spent = sum(self.inter_token)
        return len(self.inter_token) / spent if spent > 0 else None

    @property
    def passes_per_token(self) -> float | None:
        """Forward passes by tokens; None without a token."""
        return self.passes / self.tokens if self.tokens else None


@dataclass(frozen=True)
class Metrics:
    """Metrics of one or several runs; None where there is nothing to measure.

    Times are seconds.  Latencies are over all tokens of all sequences, `time_to_first_token` and
    `perceived_tokens_per_second` are means over sequences.  A run lasts until its last token.

    Attributes:
        step_latency_p50: between the moments at which tokens come, however many come at once.
        mask_time: of all sequences together.
        mask_share: of the time of the run.
        acceptance_rate: accepted drafted tokens by drafted ones.
        probability_removed: mean share of the model's probability that a mask removed.
    """

    sequences: int
    tokens: int
    time_to_first_token: float | None
    inter_token_latency_mean: float | None
    inter_token_latency_p50: float | None
    inter_token_latency_p99: float | None
    step_latency_p50: float | None
    perceived_tokens_per_second: float | None
    total_tokens_per_second: float | None
    forward_passes: int
    passes_per_token: float | None
    draft_passes: int
    forced_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    acceptance_rate: float | None
    mask_time: float
    mask_share: float | None
    probability_removed: float | None

    @classmethod
    def of(cls, *runs: Iterable[Timings]) -> Metrics:
        """The metrics of runs: of each the timings of the sequences that were decoded together."""
        groups = [list(run) for run in runs]
        every = [t for group in groups for t in group]
        gaps = [gap for t in every for gap in t.inter_token]
        tokens = sum(t.tokens for t in every)
        passes = sum(t.passes for t in every)
        drafted, accepted = sum(t.drafted for t in every), sum(t.accepted for t in every)
        wall = sum(max((t.total for t in group), default=0.0) for group in groups)
        mask = sum(t.mask for t in every)
        return cls(
            sequences=len(every),
            tokens=tokens,
            time_to_first_token=_mean([t.time_to_first_token for t in every]),
            inter_token_latency_mean=_mean(gaps),
            inter_token_latency_p50=percentile(gaps, 50),
            inter_token_latency_p99=percentile(gaps, 99),
            step_latency_p50=percentile([gap for gap in gaps if gap > 0], 50),
            perceived_tokens_per_second=_mean([t.perceived_tokens_per_second for t in every]),
            total_tokens_per_second=tokens / wall if wall > 0 else None,
            forward_passes=passes,
            passes_per_token=passes / tokens if tokens else None,
            draft_passes=sum(t.draft_passes for t in every),
            forced_tokens=sum(t.forced for t in every),
            drafted_tokens=drafted,
            accepted_tokens=accepted,
            acceptance_rate=accepted / drafted if drafted else None,
            mask_time=mask,
            mask_share=mask / wall if wall > 0 else None,
            probability_removed=_mean([share for t in every for share in t.removed]),
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def percentile(values: list[float], percent: float) -> float | None:
    """The smallest of `values` that at least `percent` of them do not exceed; None without any."""
    if not values:
        return None
    rank = -(-len(values) * percent // 100)
    return sorted(values)[max(0, int(rank) - 1)]
