"""What became of each keyword of a schema: the report of a compiled constraint.

Built on demand from the notes of a program; translation itself only records what is unusual.  An
analysis (`constrain.schema.analyze`) adds findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from constrain.program import Program
from constrain.schema.dialects import Dialect
from constrain.schema.findings import SEVERITIES, Finding, findings_text
from constrain.schema.keywords import handlers_of
from constrain.schema.loading import pointer_of

__all__ = ["Report", "ReportEntry", "pointers"]

_ORDER = ("narrowed", "surprise", "unknown", "annotation", "enforced")
_MEANING = {
    "narrowed": "valid texts that are not generated",
    "surprise": "read in a way that may not be meant",
    "unknown": "ignored, as JSON Schema says of unknown keywords",
    "annotation": "no meaning for validity",
    "enforced": "enforced exactly",
}
_IDENTIFIERS = ("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
_CORE = frozenset(("$schema", "$vocabulary", "definitions", "$defs", *_IDENTIFIERS))


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One keyword at one place.

    ``pointer``: JSON pointer of the schema that has the keyword (after ``uri#`` in another
    document).  ``status``: "enforced", "narrowed" (some valid texts are never generated),
    "annotation", "unknown" (ignored) or "surprise" (read in a way that may not be meant).
    """

    pointer: str
    keyword: str
    status: str
    detail: str = ""

    def __str__(self) -> str:
        place = self.pointer or "the root"
        what = f"{self.keyword} at {place}" if self.keyword else place
        return f"{what}: {self.detail}" if self.detail else what


@dataclass(frozen=True)
class Report:
    """All entries, the unusual ones first.  Iterable.

    ``findings`` are there after an analysis, worst first; without one the tuple is empty.
    """

    entries: tuple[ReportEntry, ...]
    findings: tuple[Finding, ...] = ()

    @classmethod
    def from_program(cls, program: Program) -> Report:
        """The report of a program made from a JSON Schema (empty of keywords for others)."""
        entries = list(_policies(program)) if program.kind == "json" else []
        notes: dict[str, Any] = program.notes
        if "schemas" in notes:
            entries += _keywords(notes)
        entries.sort(key=lambda entry: _ORDER.index(entry.status))
        return cls(tuple(entries))

    def __iter__(self) -> Iterator[ReportEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def of_status(self, status: str) -> tuple[ReportEntry, ...]:
        """The entries of one status."""
        return tuple(entry for entry in self.entries if entry.status == status)

    def of_severity(self, severity: str) -> tuple[Finding, ...]:
        """The findings of one severity: "error", "warning" or "info"."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: counts by status, the entries, and the findings by severity."""
        counts = Counter(entry.status for entry in self.entries)
        return {
            "counts": {status: counts.get(status, 0) for status in _ORDER},
            "entries": [
                {
                    "pointer": entry.pointer,
                    "keyword": entry.keyword,
                    "status": entry.status,
                    "detail": entry.detail,
                }
                for entry in self.entries
            ],
            "severities": {s: len(self.of_severity(s)) for s in SEVERITIES},
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        lines = [findings_text(self.findings), ""] if self.findings else []
        for status in _ORDER:
            entries = self.of_status(status)
            if not entries:
                continue
            if self.findings and status not in ("enforced", "annotation"):
                continue  # said by the findings
            lines.append(f"{status} ({len(entries)}): {_MEANING[status]}")
            if status in ("enforced", "annotation"):
                counts = Counter(entry.keyword for entry in entries)
                words = [k if n == 1 else f"{k} ({n})" for k, n in counts.most_common()]
                lines.append("  " + ", ".join(words))
            else:
                lines += [f"  {entry}" for entry in entries]
        return "\n".join(lines) if lines else "nothing to report"


def _policies(program: Program) -> Iterator[ReportEntry]:
    if program.whitespace == "bounded":
        yield ReportEntry(
            "",
            "",
            "narrowed",
            "whitespace='bounded': in a gap at most 8 blanks, or two line breaks and 120 blanks",
        )
    elif program.whitespace == "compact":
        yield ReportEntry("", "", "narrowed", "whitespace='compact': no whitespace between tokens")
    elif program.whitespace == "spaced":
        detail = "whitespace='spaced': one blank behind each colon and comma, none elsewhere"
        yield ReportEntry("", "", "narrowed", detail)
    if program.numbers == "plain":
        detail = (
            "numbers='plain': integers without fraction or exponent, "
            "bounded numbers without exponent"
        )
        yield ReportEntry("", "", "narrowed", detail)
    if program.escapes == "plain":
        detail = (
            "escapes='plain': escapes in strings and keys only where JSON requires them, "
            "each in one form"
        )
        yield ReportEntry("", "", "narrowed", detail)
    if program.property_order == "declared":
        detail = "property_order='declared': properties in the order of the schema"
        yield ReportEntry("", "", "narrowed", detail)


def pointers(notes: dict[str, Any]) -> Callable[[int], str]:
    """A function from places to JSON pointers, after ``uri#`` in another document.

    Each costs one concatenation beyond those of the places around it.
    """
    parents, tokens = notes["places"]
    known: dict[int, str] = {}

    def pointer(place: int) -> str:
        trail = []
        while place not in known:
            if parents[place] < 0:
                known[place] = f"{tokens[place]}#" if tokens[place] else ""
                break
            trail.append(place)
            place = parents[place]
        text = known[place]
        for at in reversed(trail):
            text = known[at] = text + pointer_of((tokens[at],))
        return text

    return pointer


def _keywords(notes: dict[str, Any]) -> list[ReportEntry]:
    pointer = pointers(notes)
    entries: dict[tuple[str, str, str, str], ReportEntry] = {}
    unusual: set[tuple[str, str]] = set()

    def add(where: str, keyword: str, status: str, detail: str) -> None:
        entries.setdefault(
            (where, keyword, status, detail), ReportEntry(where, keyword, status, detail)
        )

    for place, keyword, status, detail in notes["entries"]:
        where = pointer(place)
        unusual.add((where, keyword))
        add(where, keyword, status, detail)
    for place, _, schema, draft in notes["schemas"]:
        where = pointer(place)
        handlers = handlers_of(Dialect(draft))
        for keyword in schema:
            if (where, keyword) in unusual or keyword in _CORE:
                continue
            if keyword == "format" and not notes.get("formats", True):
                add(where, keyword, "annotation", "formats='ignore'")
            elif keyword == "contentEncoding" and not notes.get("content", True):
                add(where, keyword, "annotation", "content='ignore'")
            elif handlers.get(keyword) is None:
                add(where, keyword, "annotation", "")
            else:
                add(where, keyword, "enforced", "")
    return list(entries.values())
