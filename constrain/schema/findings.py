"""What an analysis can find in a schema: codes, severities, and how they are written down.

Codes are stable: a CI job may filter by them.

======================== ======== ==================================================================
code                     severity meaning
======================== ======== ==================================================================
invalid-schema           error    the schema is malformed, or a reference leads nowhere
invalid-pattern          error    a regular expression is malformed
unsupported-keyword      error    something is well formed and not enforced, so compiling refuses it
unsatisfiable            error    no value at all satisfies the schema
contradiction            error    no value satisfies a subschema: its keywords exclude each other
empty-enum               error    no constant of `enum` or `const` fits the other keywords
impossible-required      error    a required property can never be valid, so no object is
dead-property            warning  a declared property can never appear
dead-branch              warning  an alternative or a condition that no value takes
dead-type                warning  a type in `type` that no value has
dead-items               warning  items beyond `maxItems`
dead-enum-value          warning  a constant of `enum` that the other keywords refuse
crossed-bounds           warning  a minimum above its maximum: no value of that type is valid
overlapping-one-of       warning  branches of `oneOf` that one value can satisfy together, which
                                  refuses that value (info where the branches are `required` only)
undeclared-required      warning  a required name that no `properties` nearby declares
unknown-keyword          warning  a keyword that means nothing, close to one that does (else info)
unknown-format           warning  a `format` that is not enforced
keyword-without-effect   warning  a keyword that cannot apply to the `type`, or lacks its partner
ref-sibling-ignored      warning  a keyword beside `$ref`, which drafts up to 7 ignore
draft-mismatch           warning  a spelling of another draft
duplicate-key            warning  a key that occurs twice in the text of the schema
unanchored-pattern       warning  a pattern that looks as if it was meant for the whole string
partly-anchored-pattern  warning  `^a|b$`: the anchors do not bind as they seem to
invalid-default          warning  a `default` that its own schema refuses
invalid-example          warning  an example that its own schema refuses
surprise                 warning  anything else that is read in a way that may not be meant
open-object              info     properties are declared, and others are allowed
unbounded-string         info     no `maxLength`, finite pattern, format or enum: may run on for ever
unbounded-array          info     no limit to the number of items
unbounded-object         info     no limit to the number of properties
unbounded-value          info     any JSON value at all
recursive                info     a schema that contains itself: nesting has no limit
narrowed                 info     valid texts that are not generated under the policies chosen
unused-definition        info     a definition that nothing refers to
analysis-incomplete      info     a budget was spent before everything was looked at
======================== ======== ==================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CODES", "SEVERITIES", "Finding", "findings_text", "sorted_findings"]

SEVERITIES = ("error", "warning", "info")

CODES: dict[str, str] = {
    **dict.fromkeys(
        (
            "invalid-schema",
            "invalid-pattern",
            "unsupported-keyword",
            "unsatisfiable",
            "contradiction",
            "empty-enum",
            "impossible-required",
        ),
        "error",
    ),
    **dict.fromkeys(
        (
            "dead-property",
            "dead-branch",
            "dead-type",
            "dead-items",
            "dead-enum-value",
            "crossed-bounds",
            "overlapping-one-of",
            "undeclared-required",
            "unknown-keyword",
            "unknown-format",
            "keyword-without-effect",
            "ref-sibling-ignored",
            "draft-mismatch",
            "duplicate-key",
            "unanchored-pattern",
            "partly-anchored-pattern",
            "invalid-default",
            "invalid-example",
            "surprise",
        ),
        "warning",
    ),
    **dict.fromkeys(
        (
            "open-object",
            "unbounded-string",
            "unbounded-array",
            "unbounded-object",
            "unbounded-value",
            "recursive",
            "narrowed",
            "unused-definition",
            "analysis-incomplete",
        ),
        "info",
    ),
}
"""Every code and its severity."""

_RANK = {code: index for index, code in enumerate(CODES)}
_LISTED = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found at one place.

    ``code``: a key of `CODES`.  ``pointer``: JSON pointer of the schema it is about (after
    ``uri#`` in another document).  ``message``: a sentence without that place.  ``keyword``: the
    keyword it is about, or "".  ``severity``: "error", "warning" or "info"; by default that of
    the code.  ``example``: a JSON text that shows it, or None.  ``related``: other pointers.
    """

    code: str
    pointer: str
    message: str
    keyword: str = ""
    severity: str = ""
    example: str | None = None
    related: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.severity:
            object.__setattr__(self, "severity", CODES[self.code])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is empty is left out."""
        result: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity,
            "pointer": self.pointer,
            "message": self.message,
        }
        if self.keyword:
            result["keyword"] = self.keyword
        if self.example is not None:
            result["example"] = self.example
        if self.related:
            result["related"] = list(self.related)
        return result

    def __str__(self) -> str:
        return f"{self.pointer or '(root)'}: {self.message}"


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Without repetitions, by severity, code and pointer."""
    return tuple(
        sorted(
            dict.fromkeys(findings),
            key=lambda f: (SEVERITIES.index(f.severity), _RANK[f.code], f.pointer, f.keyword),
        )
    )


def findings_text(findings: Iterable[Finding]) -> str:
    """For people: by severity and code; long lists of the same kind are cut."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted_findings(findings):
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    lines: list[str] = []
    for (severity, code), group in groups.items():
        count = f" ({len(group)})" if len(group) > 1 else ""
        lines.append(f"{severity}: {code}{count}")
        messages = Counter(f.message for f in group)
        said: set[str] = set()
        left = _LISTED if severity == "info" else 5 * _LISTED
        for finding in group:
            if finding.message in said:
                continue
            if left == 0:
                lines.append("  ...")
                break
            left -= 1
            if messages[finding.message] > 1:
                said.add(finding.message)
                places = [f.pointer or "(root)" for f in group if f.message == finding.message]
                more = f" and {len(places) - 4} more" if len(places) > 4 else ""
                lines.append(f"  {finding.message}: {', '.join(places[:4])}{more}")
            else:
                lines.append(f"  {finding}")
            if finding.example is not None:
                lines.append(f"    for example {finding.example}")
    return "\n".join(lines)
