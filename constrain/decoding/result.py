"""What the decode loop returns for a sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrain.decoding.metrics import Timings

__all__ = ["GenerationResult"]


@dataclass(frozen=True)
class GenerationResult:
    """One generated sequence.

    Attributes:
        text: what was generated behind the prefix, without special tokens.  Bytes that are no
            UTF-8, which only a sequence without a constraint or a cut-off one can have, read as
            U+FFFD.
        token_ids: the generated ids, without the end of sequence; where a stop string cut the
            text, those of the stop string are still there.
        finish_reason: "stop": the model ended the sequence, nothing but its end was allowed, or a
            stop string came.  "length": `max_tokens` or the context of the model is used up.
            "dead_end": no token of the vocabulary continues the text towards a valid one.
        is_complete: whether the constraint accepts the text; a text may be complete although its
            finish reason is "length" (a number that could go on).  None without a constraint.
        prompt_tokens: length of the prompt.
        stop_string: the stop string that ended it, or None.
        timings: when tokens came, and what they cost.
    """

    text: str
    token_ids: list[int]
    finish_reason: str
    is_complete: bool | None
    prompt_tokens: int
    stop_string: str | None = None
    timings: Timings = field(default_factory=Timings, compare=False)
