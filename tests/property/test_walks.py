"""Random walks under the masks of real schemas: they finish, and what they finish is valid.

More of them: ``python -m tests.reference.walks --schemas 300 --vocabulary deepseek``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference import data
from tests.reference.vocabularies import TestVocabulary
from tests.reference.walks import Report, walks_over_maskbench

WORST = ("not_json", "invalid", "dead", "unfinished")


def real_schemas(root: Path, offset: int) -> list[data.BenchSchema]:
    """Every 14th schema of MaskBench from `offset`."""
    return data.maskbench(root, every=14, offset=offset)


def check(report: Report, least: int) -> None:
    failures = {name: report.counts[name] for name in WORST if report.counts[name]}
    shown = [note for note in report.notes if not note.startswith("unjudged")]
    assert not failures, "\n".join([str(failures), *shown[:20]])
    judged = report.counts["finished"] - report.counts["unjudged"]
    assert judged >= least, report.counts


def test_walks_with_small_tokens(shared_root: Path, small_vocabulary: TestVocabulary) -> None:
    schemas = real_schemas(shared_root, 5)
    report = walks_over_maskbench(small_vocabulary, schemas, walks=4, wander=40, seed=1)
    check(report, least=len(schemas) * 3)


def test_walks_with_every_spelling(shared_root: Path, small_vocabulary: TestVocabulary) -> None:
    schemas = real_schemas(shared_root, 9)
    report = walks_over_maskbench(
        small_vocabulary, schemas, walks=2, wander=60, seed=2, numbers="any", whitespace="any"
    )
    check(report, least=len(schemas) * 3 // 2)


@pytest.mark.slow
def test_walks_with_real_tokens(shared_root: Path, deepseek: TestVocabulary) -> None:
    schemas = real_schemas(shared_root, 1)
    report = walks_over_maskbench(deepseek, schemas, walks=3, wander=30, seed=3)
    check(report, least=len(schemas) * 2)
