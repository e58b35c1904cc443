"""Budgets in small worlds, where the fewest tokens that complete a prefix are known."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reference import budgets, schemas


def test_masks_within_budgets_in_small_worlds() -> None:
    plain = budgets.plain_vocabulary()
    tally = budgets.Tally()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schemas.schemas().filter(lambda s: not schemas.is_cyclic(s)), st.integers(0, 10**6))
    def check(schema: Any, seed: int) -> None:
        budgets.check_world(schema, plain, random.Random(seed), tally)
        assert not tally.wrong

    check()
    # The shortest completion is found by a search that may give up.
    assert tally.counts["tokens"] > 500
    assert len(tally.longer) <= tally.counts["tokens"] // 50, tally.longer
