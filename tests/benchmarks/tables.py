"""Measurements of engines as Markdown tables and as a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TITLES = {
    "compile": "compile",
    "matcher": "compile and first sequence",
    "first": "time to first mask",
    "whole": "schema: compile, all its instances",
    "token": "token (mask, check, advance)",
    "mask": "mask alone",
    "warm": "mask, second sequence",
    "empty": "a call that does nothing",
    "beyond": "mask, second sequence, beyond such a call",
}
_COLUMNS = ("avg", "p50", "p99", "max")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """Three digits that mean something, thousands with commas; "-" for None."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def label(name: str, entry: Mapping[str, Any]) -> str:
    """An engine with its version, which some of them spell with more than that."""
    version = str(entry["version"]).split()[0].rpartition("@")[2]
    return name if version == "source" else f"{name} {version}"


def verdicts(engines: Mapping[str, Mapping[str, Any]]) -> str:
    """How many schemas compile, how many are judged right, and what went wrong."""
    head = [
        *("engine", "schemas", "compiled", "refused", "timeouts", "crashes"),
        *("wrong accepts", "wrong rejects", "schemas all right"),
    ]
    keys = ("schemas", "compiled", "refused", "timeout", "crash", "wrong_accept", "wrong_reject")
    rows = [
        [label(name, entry), *(f"{entry[key]:,}" for key in keys), f"{entry['right']:,}"]
        for name, entry in engines.items()
        if "unavailable" not in entry
    ]
    return markdown(head, rows)


def times(engines: Mapping[str, Mapping[str, Any]]) -> str:
    """Times of each engine on all that it compiles, in µs."""
    rows = [
        [
            title,
            name,
            *(number(entry[what][column]) for column in _COLUMNS),
            f"{entry[what]['count']:,}",
        ]
        for what, title in TITLES.items()
        for name, entry in engines.items()
        if entry.get(what)
    ]
    return markdown(["µs", "engine", *_COLUMNS, "n"], rows)


def pairs(first: str, against: Mapping[str, Mapping[str, Any]]) -> str:
    """The first engine beside each other one, on the schemas that both compile, in µs."""
    rows = []
    for name, pair in against.items():
        for what in ("matcher", "token", "whole"):
            own, theirs = pair["one"][what], pair["other"][what]
            if own and theirs:
                cells = [
                    f"{number(own[column])} / {number(theirs[column])}"
                    f" ({number(theirs[column] / max(own[column], 1e-9))}x)"
                    for column in _COLUMNS
                ]
                rows.append([name, f"{pair['schemas']:,}", TITLES[what], *cells])
    return markdown([f"{first} / other", "shared schemas", "µs", *_COLUMNS], rows)


def unavailable(engines: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each engine that could not be measured at all."""
    return "\n".join(
        f"{name} was not measured: {entry['unavailable']}"
        for name, entry in engines.items()
        if "unavailable" in entry
    )


def report(result: Mapping[str, Any]) -> str:
    """All tables of one measurement (see `maskbench` and `timing` for its form)."""
    engines = result["engines"]
    parts = [verdicts(engines), times(engines)]
    if result.get("against"):
        first = next(name for name, entry in engines.items() if "unavailable" not in entry)
        parts.append(pairs(first, result["against"]))
    return "\n\n".join(part for part in [*parts, unavailable(engines)] if part)


def plot(result: Mapping[str, Any], path: Path) -> None:
    """Draw the tail of the times per token: the share of tokens that take longer than x.

    The form of the file is that of its name (.svg, .png). Raises ImportError without matplotlib.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name, entry in result["engines"].items():
        if entry.get("tail"):
            shares, micro = zip(*entry["tail"])
            axes.plot(micro, shares, label=label(name, entry), linewidth=1.6)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("µs per token (mask, check and advance)")
    axes.set_ylabel("share of tokens that take longer")
    axes.set_title("MaskBench, cold, one core")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
