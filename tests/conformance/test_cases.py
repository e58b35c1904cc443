"""Small inputs distilled from public bug reports of constrained-decoding engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import case_runners
from tests.conformance.outcomes import complaints, known
from tests.reference import data


def _ids() -> list[str]:
    root = data.shared_root()
    return [case["id"] for case in case_runners.all_cases(root)] if root else ["js-not-const"]


@pytest.mark.parametrize("case_id", _ids())
def test_case(case_id: str, shared_root: Path) -> None:
    found = complaints("cases", [case_runners.outcome(shared_root, case_id)])
    assert not found, "\n".join(["", *found])


def test_baseline_names_existing_cases(shared_root: Path) -> None:
    assert set(known("cases")) <= {case["id"] for case in case_runners.all_cases(shared_root)}


def test_every_case_of_these_kinds_is_judged(shared_root: Path) -> None:
    judged = {case["id"] for case in case_runners.all_cases(shared_root)}
    kinds = (*case_runners.TEXT_KINDS, *case_runners.TOKEN_KINDS)
    assert judged == {case["id"] for case in data.cases(shared_root, *kinds)}
