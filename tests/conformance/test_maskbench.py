"""MaskBench: real schemas, real instances; all of it by bytes, a sample in a real vocabulary.

All of it in real tokens: ``python -m tests.benchmarks.maskbench --all``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conformance import runners
from tests.conformance.outcomes import Outcome, complaints, known, summary
from tests.reference.vocabularies import TestVocabulary


def _check(section: str, outcomes: Sequence[Outcome], request: pytest.FixtureRequest) -> None:
    lines = request.config.__dict__.setdefault("conformance_report", [])
    lines.append(summary(section, outcomes))
    found = complaints("maskbench", outcomes)
    assert not found, "\n".join(["", *found])


@pytest.mark.slow
def test_maskbench_by_bytes(shared_root: Path, request: pytest.FixtureRequest) -> None:
    outcomes = runners.maskbench_by_bytes(shared_root)
    assert len({outcome.item.partition("#")[0] for outcome in outcomes}) == 1_413
    assert set(known("maskbench")) <= {outcome.item for outcome in outcomes}
    _check("maskbench by bytes", outcomes, request)


@pytest.mark.slow
def test_maskbench_sample(
    shared_root: Path, deepseek: TestVocabulary, request: pytest.FixtureRequest
) -> None:
    outcomes = runners.maskbench_sample(shared_root)
    assert len(outcomes) > 100
    _check("maskbench sample", outcomes, request)
