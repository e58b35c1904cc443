"""Metrics of decoding for people and programs: tables, JSON, and the panels of a plot."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from constrain.cli._errors import CliError, os_reason
from constrain.cli._svg import Panel, Series, bar_chart

__all__ = ["json_text", "steps_of", "table", "write_plot"]

# Field of Metrics, what people call it, unit.
_ROWS = (
    ("sequences", "sequences", ""),
    ("tokens", "tokens", ""),
    ("time_to_first_token", "time to first token, mean", "ms"),
    ("inter_token_latency_mean", "inter-token latency, mean", "ms"),
    ("inter_token_latency_p50", "inter-token latency, p50", "ms"),
    ("inter_token_latency_p99", "inter-token latency, p99", "ms"),
    ("step_latency_p50", "latency of a step, p50", "ms"),
    ("perceived_tokens_per_second", "perceived tokens per second", ""),
    ("total_tokens_per_second", "total tokens per second", ""),
    ("forward_passes", "forward passes", ""),
    ("passes_per_token", "forward passes per token", ""),
    ("draft_passes", "forward passes of the draft model", ""),
    ("forced_tokens", "forced tokens", ""),
    ("drafted_tokens", "drafted tokens", ""),
    ("acceptance_rate", "drafted tokens accepted", "%"),
    ("mask_time", "time for masks", "ms"),
    ("mask_share", "share of masks in the time", "%"),
    ("probability_removed", "probability removed by masks", "%"),
)
_PLOTTED = (
    "time_to_first_token",
    "inter_token_latency_mean",
    "inter_token_latency_p50",
    "inter_token_latency_p99",
    "perceived_tokens_per_second",
    "total_tokens_per_second",
    "passes_per_token",
    "mask_share",
    "probability_removed",
)
_STEPS = {
    "inter_token_latency": ("latency of each token behind the first", "ms"),
    "probability_removed": ("probability removed by each mask", "%"),
}
_FACTORS = {"ms": 1000.0, "%": 100.0, "": 1.0}


def table(columns: Mapping[str, Any], extra: Sequence[tuple[str, Sequence[str]]] = ()) -> str:
    """A table with a column for each of `columns` (title to `Metrics`), drawn by rich if it is there.

    Rows in which no column has anything to say are left out; `extra` are further rows.
    """
    rows = [
        (
            f"{name} ({unit})" if unit else name,
            [_said(getattr(m, field), unit) for m in columns.values()],
        )
        for field, name, unit in _ROWS
        if any(getattr(m, field) not in (None, 0) for m in columns.values())
    ]
    rows += [(name, list(cells)) for name, cells in extra]
    titles = ["", *columns]
    if importlib.util.find_spec("rich") is not None:
        return _rich_table(titles, rows)
    lines = [titles, *([name, *cells] for name, cells in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    return "".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        + "\n"
        for line in lines
    )


def _rich_table(titles: Sequence[str], rows: Sequence[tuple[str, list[str]]]) -> str:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=SIMPLE)
    for i, title in enumerate(titles):
        drawn.add_column(title, justify="right" if i else "left", no_wrap=not i)
    for name, cells in rows:
        drawn.add_row(name, *cells)
    out = io.StringIO()
    Console(file=out, width=max(80, 44 + 16 * len(titles)), color_system=None).print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines()) + "\n"


def _said(value: float | int | None, unit: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    scaled = value * _FACTORS[unit]
    return f"{scaled:.3g}" if scaled < 1000 else f"{scaled:.0f}"


def json_text(columns: Mapping[str, Any], **more: Any) -> str:
    """The metrics by column as a JSON text of one object, times in seconds."""
    runs = [{"name": name, **metrics.as_dict()} for name, metrics in columns.items()]
    return json.dumps({**more, "runs": runs}, indent=2) + "\n"


def steps_of(timings: Any) -> dict[str, list[float]]:
    """What happened step by step to one sequence (its `Timings`), by names of metrics.

    Latencies are one for each token behind the first, in seconds; probabilities one for each token
    that was chosen from a mask, where they were measured.
    """
    return {
        "inter_token_latency": timings.inter_token,
        "probability_removed": timings.removed,
    }


def write_plot(
    path: str, title: str, columns: Mapping[str, Any], steps: Mapping[str, Sequence[float]] = {}
) -> None:
    """Write an SVG file with a panel of bars for each of the main metrics, and one for each of
    `steps` (see `steps_of`) that has values.  Raises CliError."""
    panels: list[Panel | Series] = []
    for field, name, unit in _ROWS:
        if field in _PLOTTED:
            factor = _FACTORS[unit]
            values = [(column, getattr(m, field)) for column, m in columns.items()]
            bars = [(column, None if v is None else v * factor) for column, v in values]
            panels.append(Panel(f"{name} ({unit})" if unit else name, bars))
    for field, numbers in steps.items():
        name, unit = _STEPS[field]
        if numbers:
            panels.append(Series(f"{name} ({unit})", [v * _FACTORS[unit] for v in numbers]))
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(bar_chart(title, panels))
    except OSError as error:
        raise CliError(f"cannot write to {path}: {os_reason(error)}") from error
