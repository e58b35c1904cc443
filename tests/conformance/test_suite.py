"""The official JSON Schema suite, five drafts, required and optional tests, at the level of masks.

Every instance is written in several ways (keys shuffled, indented, escaped, numbers respelled),
cut into single bytes and into random tokens of a small vocabulary, and a sample into tokens of a
real one; it must be allowed token by token, with the end of sequence after it, exactly where it is
valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conformance import runners
from tests.conformance.outcomes import Outcome, complaints, known, summary
from tests.reference import data


def _files(list_files: Callable[[Path, str], list[str]], example: str) -> list[tuple[str, str]]:
    root = data.shared_root()
    if root is None:
        return [("draft2020-12", example)]
    return [(draft, file) for draft in data.DRAFTS for file in list_files(root, draft)]


@pytest.fixture(scope="module")
def totals(request: pytest.FixtureRequest) -> Iterator[dict[str, list[Outcome]]]:
    """Collects the outcomes by draft, and reports them at the end."""
    found: dict[str, list[Outcome]] = {}
    yield found
    lines = request.config.__dict__.setdefault("conformance_report", [])
    lines.extend(summary(draft, outcomes) for draft, outcomes in found.items())


def _judge(section: str, outcomes: Sequence[Outcome], totals: dict[str, list[Outcome]]) -> None:
    assert outcomes
    totals.setdefault(section, []).extend(outcomes)
    found = complaints(section, outcomes)
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(("draft", "file"), _files(data.suite_files, "type"), ids=lambda part: part)
def test_suite(draft: str, file: str, shared_root: Path, totals: dict[str, list[Outcome]]) -> None:
    _judge(draft, runners.suite_file(shared_root, draft, file), totals)


@pytest.mark.parametrize(
    ("draft", "file"), _files(data.optional_files, "optional/anchor"), ids=lambda part: part
)
def test_optional(
    draft: str, file: str, shared_root: Path, totals: dict[str, list[Outcome]]
) -> None:
    _judge(f"{draft}/optional", runners.suite_file(shared_root, draft, file), totals)


@pytest.mark.parametrize("draft", data.DRAFTS)
@pytest.mark.parametrize(
    ("section", "files"), [("", data.suite_files), ("/optional", data.optional_files)]
)
def test_baseline_names_existing_tests(
    draft: str, section: str, files: Callable[[Path, str], list[str]], shared_root: Path
) -> None:
    items = {
        group.test_id(index)
        for file in files(shared_root, draft)
        for group in data.suite_groups(shared_root, draft, file)
        for index in range(len(group.tests))
    }
    assert set(known(draft + section)) <= items
