"""One sequence of a batch: its tokens, its text, and when it is over.

Invariants: each token advances the matcher before it counts; the text is the bytes of the tokens,
so the constraint has seen exactly what is returned, unless a stop string cut it.  Text is handed
out as soon as it is certain: whole characters, and nothing that may be the beginning of a stop
string.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import Any

from constrain.decoding.masks import Masks
from constrain.decoding.metrics import Timings
from constrain.decoding.result import GenerationResult
from constrain.decoding.sampling import Sampler
from constrain.errors import ConstrainError, LimitExceededError

__all__ = ["Running"]


class Running:
    """A sequence from its prompt to its result.

    Args:
        prompt: token ids, at least one.
        prefix: ids that the answer begins with already; the constraint reads them.
        constraint: a compiled constraint, or None.
        vocabulary: of the model.
        sampler: chooses its tokens.
        max_tokens: how many tokens it may get behind the prefix.
        stop: texts that end it, and are cut off.
        budget: whether masks keep to what remains of `max_tokens`.
        on_text: called with each piece of text.

    Raises:
        ConstrainError: a setting out of its range, or a prefix that the constraint refuses.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        constraint: Any,
        vocabulary: Any,
        sampler: Sampler,
        *,
        max_tokens: int,
        prefix: Sequence[int] = (),
        stop: Sequence[str] = (),
        budget: bool = True,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        if max_tokens < 1:
            raise ConstrainError(f"max_tokens is {max_tokens}, expected 1 or more")
        if isinstance(stop, str) or not all(isinstance(s, str) and s for s in stop):
            raise ConstrainError("stop is a list of texts, none of them empty")
        self.prompt = list(prompt)
        self.prefix = list(prefix)
        self.matcher = None if constraint is None else constraint.matcher()
        self.sampler = sampler
        self.left = max_tokens
        self.token_ids: list[int] = []
        self.chosen = 0  # tokens, an end of sequence included
        self.finish_reason: str | None = None
        self.on_token: Callable[[int], None] | None = None
        self.timings = Timings()
        self._budget = budget
        self._stop = tuple(stop)
        self._stopped_by: str | None = None
        self._constraint = constraint
        self.vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._given = 0  # characters of the text that were handed out
        self._on_text = on_text
        if self.matcher is not None:
            for index, token_id in enumerate(self.prefix):
                if token_id in vocabulary.eos_token_ids or not self.matcher.try_advance(token_id):
                    raise ConstrainError(
                        f"the constraint refuses token {index} of the prefix ({token_id}): expected"
                        f" {self.matcher.expected()}"
                    )

    @property
    def remaining(self) -> int | None:
        """The budget that its masks keep to; None without one, and where nothing is left of it."""
        return self.left or None if self._budget and self.matcher is not None else None

    @property
    def history(self) -> list[int]:
        """All ids that the model has been given and has chosen."""
        return self.prompt + self.prefix + self.token_ids

    def fit(self, limit: int | None, place: str = "") -> None:
        """Bound the length by the model's context of `limit` tokens, then check the budget.

        `place` says in errors which sequence it is.

        Raises:
            ConstrainError: the prompt leaves no room.
            LimitExceededError: not even the shortest text fits; `needed` is its length in tokens.
        """
        named = "max_tokens"
        if limit is not None:
            used = len(self.prompt) + len(self.prefix)
            if used >= limit:
                raise ConstrainError(
                    f"{place}the prompt has {used} tokens, the model reads {limit}"
                )
            if limit - used < self.left:
                self.left = limit - used
                named = "the context of the model"
        if self.matcher is None or self.remaining is None:
            return
        needed = self.matcher.tokens_needed
        if needed is not None and needed > self.left:
            raise LimitExceededError(
                f"{place}{named} leaves {self.left} tokens, and the shortest text that satisfies the"
                f" constraint has {needed}",
                limit="max_tokens",
                needed=needed,
            )

    def append(self, token_id: int) -> None:
        """Append a chosen token; afterwards the sequence may be finished."""
        if self.matcher is not None:
            self.matcher.advance(token_id)
        self.chosen += 1
        if token_id in self.vocabulary.eos_token_ids:
            self.finish("stop")
            return
        self.token_ids.append(token_id)
        self.left -= 1
        if self.on_token is not None:
            self.on_token(token_id)
        if token_id < self.vocabulary.size:
            self._read(self._decoder.decode(self.vocabulary.tokens[token_id] or b""))

    def end_if_over(self, masks: Masks, row: int) -> bool:
        """Finish where nothing but an end is allowed, or no token is left; whether it did.

        Args:
            masks: whose row `row` was filled with `matcher` and `remaining`.
        """
        if self.matcher is not None and masks.only_ends(row):
            self.finish("stop" if self.matcher.is_accepting else "dead_end")
        elif self.left <= 0:
            self.finish("length")
        return self.finish_reason is not None

    def finish(self, reason: str) -> None:
        """End the sequence: "stop", "length" or "dead_end"."""
        if self.finish_reason is not None:
            return
        self._read(self._decoder.decode(b"", final=True))
        if self.finish_reason is None:
            self.finish_reason = reason
        self._hand_out(len(self._text))

    def _read(self, text: str) -> None:
        """Add text; ends the sequence at a stop string."""
        if not text:
            return
        longest = max(map(len, self._stop), default=1)
        searched = max(0, len(self._text) - longest + 1)
        self._text += text
        found = [(at, s) for s in self._stop if (at := self._text.find(s, searched)) >= 0]
        if found:
            at, self._stopped_by = min(found)
            self._text = self._text[:at]
            self.finish_reason = "stop"
            self._hand_out(at)
            return
        held = max((_overlap(self._text, s) for s in self._stop), default=0)
        self._hand_out(len(self._text) - held)

    def _hand_out(self, end: int) -> None:
        if end > self._given:
            piece = self._text[self._given : end]
            self._given = end
            if self._on_text is not None:
                self._on_text(piece)

    def result(self) -> GenerationResult:
        """What became of it."""
        complete = None
        if self.matcher is not None:
            complete = self._accepts_cut() if self._stopped_by else bool(self.matcher.is_accepting)
        return GenerationResult(
            text=self._text,
            token_ids=self.token_ids,
            finish_reason=self.finish_reason or "length",
            is_complete=complete,
            prompt_tokens=len(self.prompt),
            stop_string=self._stopped_by,
            timings=self.timings,
        )

    def _accepts_cut(self) -> bool:
        """Whether the constraint accepts what a stop string left of the text."""
        matcher = self._constraint.matcher()
        data = self._text.encode()
        tokens = self.vocabulary.encode(data)
        if tokens is None:
            single = {text: i for i, text in enumerate(self.vocabulary.tokens) if text}
            tokens = [single.get(data[i : i + 1], -1) for i in range(len(data))]
        return bool(
            all(matcher.try_advance(token_id) for token_id in self.prefix + tokens)
            and matcher.is_accepting
        )


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that begins `stop`, below all of it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
