"""Budgets in small worlds, where the fewest tokens that complete a prefix are known."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference import budgets, schemas
from tests.reference.vocabularies import TestVocabulary


@lru_cache(maxsize=1)
def plain() -> TestVocabulary:
    return budgets.plain_vocabulary()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas.schemas().filter(lambda s: not schemas.is_cyclic(s)), st.integers(0, 10**6))
def test_masks_within_budgets_in_small_worlds(schema: Any, seed: int) -> None:
    tally = budgets.Tally()
    budgets.check_world(schema, plain(), random.Random(seed), tally)
    assert not tally.wrong
    # The shortest completion is found by a search that may give up.
    assert len(tally.longer) <= tally.counts["tokens"] // 20 + 1, tally.longer
