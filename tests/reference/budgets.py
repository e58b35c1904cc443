"""What a token budget must do, decided without the machine, and sampled under it.

* *Small worlds* (`check_world`). A schema is cut down to finitely many values, as in
  `tests.reference.truth`, over a vocabulary without escapes. The fewest tokens that complete each
  prefix of a valid text are counted over all valid texts, so every bit of every mask within a budget
  is known, and so is the number in the error for a budget that is too small.
* *Pairs* (`run_pair`). A real schema, a regular expression or a grammar, and a budget from the
  shortest length up; logits at random. Whatever is drawn, the text must end in time, and be valid.

``python -m tests.reference.budgets --pairs 2000 --worlds 500`` runs more of both than the tests do.
"""

from __future__ import annotations

import collections
import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.reference import oracle, vocabularies
from tests.reference.drive import allowed_ids, new_row, random_tokens, tokens_by_bytes
from tests.reference.truth import _texts, cut_down, world
from tests.reference.vocabularies import TestVocabulary

# -- small worlds ------------------------------------------------------------------------------


def plain_vocabulary() -> TestVocabulary:
    """The small vocabulary without its tokens that hold a backslash."""
    small = vocabularies.small_vocabulary()
    tokens = [text if text and b"\\" not in text else None for text in small.tokens]
    return vocabularies._fixed("plain", tokens, small.eos_ids)


def fewest_tokens(whole: Iterable[bytes], tokens: Iterable[bytes | None]) -> dict[bytes, int]:
    """For each prefix of these texts the fewest tokens that make it one of them."""
    ends = set(whole)
    known = {text for text in tokens if text}
    longest = max(map(len, known))
    needs: dict[bytes, int] = dict.fromkeys(ends, 0)
    prefixes = {text[:length] for text in ends for length in range(len(text) + 1)}
    behind: dict[bytes, list[bytes]] = collections.defaultdict(list)
    for prefix in prefixes:
        for length in range(1, min(longest, len(prefix)) + 1):
            if prefix[-length:] in known:
                behind[prefix].append(prefix[:-length])
    level = list(ends)
    count = 0
    while level:
        count += 1
        fresh = {before for prefix in level for before in behind[prefix] if before not in needs}
        needs.update(dict.fromkeys(fresh, count))
        level = list(fresh)
    return needs


@dataclass
class Tally:
    """What was counted, and what was wrong."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    longer: list[str] = field(default_factory=list)  # completions that are not the shortest


def check_world(
    schema: Any, vocabulary: TestVocabulary, rng: random.Random, tally: Tally, states: int = 8
) -> None:
    """Masks within budgets of a cut-down schema against the truth, at random states.

    A token too many is wrong. A token too few is one whose shortest completion was not found:
    `tally.longer` has those. `vocabulary` has no token with a backslash.
    """
    import constrain

    judge = oracle.Oracle(schema)
    values = (oracle.parse(json.dumps(value)) for value in world())
    valid = [plain for plain, value in zip(world(), values, strict=True) if judge.is_valid(value)]
    whole = [text for value in valid for text in _texts(value)]
    if not whole:
        return
    spec = constrain.JsonSchema(cut_down(schema), whitespace="compact", numbers="plain")
    compiled = constrain.compile(spec, vocabulary.vocabulary)
    needs = fewest_tokens(whole, vocabulary.tokens)
    tally.counts["worlds"] += 1
    table = tokens_by_bytes(vocabulary.tokens)
    size = vocabulary.vocabulary.size
    row = new_row(vocabulary.vocabulary)
    for index in range(states):
        ids = random_tokens(rng.choice(whole), table, rng) or []
        ids = ids[: rng.randrange(len(ids) + 1)] if index else []
        matcher = compiled.matcher()
        for token in ids:
            matcher.advance(token)
        text = vocabulary.text(ids)
        needed = matcher.tokens_needed
        where = f"{json.dumps(schema)} after {text!r}"
        tally.counts["states"] += 1
        if needed is None or needed < needs[text]:
            tally.wrong.append(f"{where}: needs {needed}, not {needs[text]}")
            continue
        if needed > needs[text]:
            tally.longer.append(f"{where}: needs {needed}, not {needs[text]}")
        if needed > 0:
            try:
                matcher.fill_bitmask(row, remaining=needed - 1)
                tally.wrong.append(f"{where}: {needed - 1} tokens are no error")
            except constrain.LimitExceededError as error:
                if error.needed != needed:
                    tally.wrong.append(f"{where}: the error says {error.needed}, not {needed}")
        budget = needed + rng.choice((0, 0, 1, 2, 3, 5, 9))
        if budget == 0:
            continue
        matcher.fill_bitmask(row, remaining=budget)
        allowed = set(allowed_ids(row[0], size).tolist())
        matcher.fill_bitmask(row)
        ends = set(vocabulary.eos_ids)
        for token in set(allowed_ids(row[0], size).tolist()) - ends:
            tally.counts["tokens"] += 1
            short = needs[text + (vocabulary.tokens[token] or b"")] < budget
            if (token in allowed) and not short:
                tally.wrong.append(f"{where}: {vocabulary.tokens[token]!r} within {budget}")
            if short and token not in allowed:
                tally.longer.append(f"{where}: no {vocabulary.tokens[token]!r} within {budget}")
        if (needs[text] == 0) != (ends <= allowed):
            tally.wrong.append(f"{where}: the end within {budget}")
