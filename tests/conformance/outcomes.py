"""What a conformance check finds, and the baseline of known failures.

A check gives every item (a test of a suite, an instance of a benchmark) an `Outcome`: right, or
wrong in one of five ways, worst first:

* ``crash``: an exception that is no ConstrainError;
* ``contract``: the matcher contradicts its own masks;
* ``wrong_accept``: something invalid is accepted;
* ``wrong_reject``: something valid is refused;
* ``compile_error``: the schema is refused with a typed error.

``baseline.json`` holds the known failures of the last three kinds, each with its reason, and may
only shrink: what fails and is not listed fails the test, and so does a listed item that has become
right, until it is taken out. Crashes and contradictions cannot be listed.

``python -m tests.conformance.outcomes`` prints the failures of all suites in the form of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

KINDS = ("crash", "contract", "wrong_accept", "wrong_reject", "compile_error")
LISTABLE = ("wrong_accept", "wrong_reject", "compile_error")
PATH = Path(__file__).with_name("baseline.json")


@dataclass(frozen=True)
class Outcome:
    """The result for one item; `kind` is None where it is right, `detail` says what was seen."""

    item: str
    kind: str | None = None
    detail: str = ""


@lru_cache(maxsize=1)
def baseline() -> dict[str, dict[str, dict[str, str]]]:
    """Section to kind to item to reason."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def known(section: str) -> dict[str, str]:
    """Item to kind of the listed failures of a section."""
    found: dict[str, str] = {}
    for kind, items in baseline().get(section, {}).items():
        if kind not in LISTABLE:
            raise ValueError(f"{kind} cannot be listed in the baseline")
        for item, reason in items.items():
            if not reason.strip():
                raise ValueError(f"{section}: {item} is listed without a reason")
            if item in found:
                raise ValueError(f"{section}: {item} is listed twice")
            found[item] = kind
    return found


def complaints(section: str, outcomes: Iterable[Outcome]) -> list[str]:
    """Why these outcomes fail the section, worst first; [] where they are as the baseline says."""
    listed = known(section)
    found: list[tuple[int, str]] = []
    for outcome in outcomes:
        expected = listed.get(outcome.item)
        if outcome.kind == expected:
            continue
        if outcome.kind is None:
            line = f"now right, take it out of baseline.json: {outcome.item}"
            found.append((len(KINDS), line))
        else:
            was = "" if expected is None else f" (listed as {expected})"
            line = f"{outcome.kind}{was}: {outcome.item}: {outcome.detail}"
            found.append((KINDS.index(outcome.kind), line))
    return [line for _, line in sorted(found)]


def summary(section: str, outcomes: Iterable[Outcome]) -> str:
    """One line for the report: how many are right, and how many wrong in which way."""
    counts: dict[str | None, int] = {}
    for outcome in outcomes:
        counts[outcome.kind] = counts.get(outcome.kind, 0) + 1
    total = sum(counts.values())
    wrong = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if kind in counts)
    return f"{section}: {counts.get(None, 0)} of {total} right" + (f"; {wrong}" if wrong else "")


def as_baseline(sections: Mapping[str, Iterable[Outcome]]) -> dict[str, Any]:
    """The failures in the form of the baseline file, reasons still to be written by hand."""
    result: dict[str, Any] = {}
    for section, outcomes in sections.items():
        kinds: dict[str, dict[str, str]] = {}
        for outcome in outcomes:
            if outcome.kind is not None:
                kinds.setdefault(outcome.kind, {})[outcome.item] = outcome.detail
        if kinds:
            result[section] = {kind: kinds[kind] for kind in KINDS if kind in kinds}
    return result


if __name__ == "__main__":
    from tests.conformance import runners

    print(json.dumps(as_baseline(runners.run_all()), indent=1, ensure_ascii=False))
