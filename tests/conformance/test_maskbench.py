"""A sample of MaskBench: real schemas, real instances, a real vocabulary.

All of it: ``python -m tests.benchmarks.maskbench --all``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import runners
from tests.conformance.outcomes import complaints, known, summary
from tests.reference.vocabularies import TestVocabulary


@pytest.mark.slow
def test_maskbench_sample(
    shared_root: Path, deepseek: TestVocabulary, request: pytest.FixtureRequest
) -> None:
    outcomes = runners.maskbench_sample(shared_root)
    assert len(outcomes) > 100
    assert set(known("maskbench")) <= {outcome.item for outcome in outcomes}
    lines = request.config.__dict__.setdefault("conformance_report", [])
    lines.append(summary("maskbench", outcomes))
    found = complaints("maskbench", outcomes)
    assert not found, "\n".join(["", *found])
