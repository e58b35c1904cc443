"""Walks under token budgets: whatever is drawn, the text ends within its budget and is valid.

Each walk has a budget from the shortest completion up, draws tokens with random logits of several
kinds, and ends at an end of sequence or where nothing remains. What the budget adds to a mask is
measured in thread time: the same mask without a budget is made before.

`tests.reference.budgets` runs these from the command line.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference.drive import allowed_ids
from tests.reference.grammar_walks import _class

Judge = Callable[[bytes], str]
"""What is wrong with a text; "" where nothing is."""

MOST = 400  # tokens of a budget


@dataclass
class Case:
    """A constraint, its judge, and its name in reports."""

    name: str
    compiled: Any
    judge: Judge


@dataclass
class Outcome:
    """What walks did: counts, what went wrong, and the milliseconds that budgets added to masks."""

    walks: int = 0
    cases: int = 0
    tokens: int = 0
    hopeless: int = 0
    unjudged: int = 0
    wrong: list[str] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    slow: list[tuple[float, str]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """A report."""
        yield from self.wrong
        costs = np.array(self.costs or [0.0])
        p50, p99, p999 = np.percentile(costs, [50, 99, 99.9])
        yield (
            f"{self.cases} constraints, {self.walks} walks, {self.tokens} tokens, "
            f"{len(self.wrong)} wrong, {self.hopeless} without a known completion, "
            f"{self.unjudged} not judged"
        )
        yield (
            f"a budget adds to a mask (ms): p50 {p50:.3f}, p99 {p99:.2f}, p99.9 {p999:.2f}, "
            f"most {costs.max():.1f}"
        )
        for cost, name in sorted(self.slow, reverse=True)[:12]:
            yield f"  {cost:8.1f} ms  {name}"


class Lexicon:
    """What walks know of the tokens of a vocabulary."""

    def __init__(self, vocabulary: Any) -> None:
        self.vocabulary = vocabulary
        self.size = vocabulary.size
        known = list(vocabulary.tokens)
        self.tokens = known + [None] * (self.size - len(known))
        self.classes = np.array([_class(text) for text in self.tokens])
        self.lengths = np.array([len(text or b"") for text in self.tokens])
        self.eos = np.array(sorted(vocabulary.eos_token_ids))

    def draw(self, ids: np.ndarray, kind: str, rng: random.Random) -> int:
        """One of the allowed ids: evenly, by class of its first byte, or the shortest or longest."""
        if kind == "classes":
            classes = self.classes[ids]
            ids = ids[classes == rng.choice(np.unique(classes).tolist())]
        elif kind == "short":
            ids = ids[self.lengths[ids] <= 2] if (self.lengths[ids] <= 2).any() else ids
        elif kind == "long":
            ids = ids[self.lengths[ids] >= np.quantile(self.lengths[ids], 0.8)]
        return int(ids[rng.randrange(len(ids))])


KINDS = ("even", "classes", "classes", "classes", "short", "long")


def walk(
    case: Case, lexicon: Lexicon, budget: int, kind: str, rng: random.Random, outcome: Outcome
) -> bytes | None:
    """One walk; None if the budget was not kept, which is noted."""
    import constrain

    matcher = case.compiled.matcher()
    row = constrain.allocate_bitmask(1, lexicon.size)
    where = f"{case.name}, budget {budget}, {kind}"
    ids: list[int] = []
    for left in range(budget, 0, -1):
        matcher.fill_bitmask(row)
        before = time.thread_time()
        try:
            matcher.fill_bitmask(row, remaining=left)
        except constrain.ConstrainError as error:
            text = b"".join(lexicon.tokens[i] or b"" for i in ids)
            outcome.wrong.append(f"{where}: {left} left after {text!r}: {error}")
            return None
        cost = (time.thread_time() - before) * 1000
        outcome.costs.append(cost)
        if cost > 10:
            outcome.slow.append((cost, f"{where}: {left} left"))
        allowed = allowed_ids(np.asarray(row)[0], lexicon.size)
        ends = np.isin(allowed, lexicon.eos)
        if ends.any():
            if rng.random() < 0.1 or ends.all():
                break
            allowed = allowed[~ends]
        if not len(allowed):
            outcome.wrong.append(f"{where}: an empty mask with {left} left")
            return None
        token = lexicon.draw(allowed, rng.choice(KINDS) if kind == "mixed" else kind, rng)
        if not matcher.try_advance(token):
            outcome.wrong.append(f"{where}: {token} is allowed and refused")
            return None
        ids.append(token)
        outcome.tokens += 1
    text: bytes = case.compiled.vocabulary.decode(ids, special_tokens=True)
    if not matcher.is_accepting:
        outcome.wrong.append(f"{where}: {text!r} is no end")
        return None
    return text


def run(case: Case, lexicon: Lexicon, walks: int, rng: random.Random, outcome: Outcome) -> None:
    """Walks of one constraint, and what is said of a budget that is too small."""
    import constrain

    needed = case.compiled.matcher().tokens_needed
    outcome.cases += 1
    if needed is None:
        outcome.hopeless += 1
        return
    for number in range(walks):
        budget = needed + rng.choice((0, 0, 1, 2, 3, 4, 6, 10, 20, 40, max(needed, 1)))
        budget = min(max(budget, 1), max(needed, MOST))
        if number == 0 and needed > 0:
            row = constrain.allocate_bitmask(1, lexicon.size)
            try:
                case.compiled.matcher().fill_bitmask(row, remaining=needed - 1)
                outcome.wrong.append(f"{case.name}: {needed - 1} tokens are no error")
            except constrain.LimitExceededError as error:
                if error.needed != needed or error.limit != "remaining":
                    outcome.wrong.append(f"{case.name}: the error says {error.needed}: {error}")
        kind = rng.choice(("mixed", "mixed", *KINDS))
        text = walk(case, lexicon, budget, kind, rng, outcome)
        outcome.walks += 1
        if text is None:
            continue
        reason = case.judge(text)
        if reason == "?":
            outcome.unjudged += 1
        elif reason:
            outcome.wrong.append(f"{case.name}, budget {budget}: {text!r}: {reason}")
