"""Bar charts as SVG, without a plotting library: what the command line draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Panel", "Series", "bar_chart"]

_WIDTH, _LABELS, _NUMBERS = 760, 230, 90
_BAR, _GAP, _TITLE = 16, 6, 30
_HEIGHT = 70  # of a series
_COLORS = ("#4878a8", "#c8783c", "#5c9a5c", "#8868a8", "#a85858")


@dataclass(frozen=True)
class Panel:
    """One group of bars: a title with the unit, and for each bar a label and a value or None."""

    title: str
    bars: Sequence[tuple[str, float | None]]


@dataclass(frozen=True)
class Series:
    """Values in their order, one thin upright bar each: a title with the unit, and the values."""

    title: str
    values: Sequence[float]


def bar_chart(title: str, panels: Sequence[Panel | Series]) -> str:
    """An SVG document with horizontal bars; each panel has a scale of its own, from zero."""
    parts: list[str] = []
    y = 34
    for number, panel in enumerate(panels):
        y += _TITLE
        parts.append(_text(10, y - 8, panel.title, size=13, weight="bold"))
        if isinstance(panel, Series):
            parts += _series(panel, y, _COLORS[number % len(_COLORS)])
            y += _HEIGHT + _GAP
            continue
        largest = max((value for _, value in panel.bars if value is not None), default=0.0)
        for label, value in panel.bars:
            middle = y + _BAR - 4
            parts.append(_text(_LABELS - 8, middle, label, anchor="end"))
            if value is None:
                parts.append(_text(_LABELS, middle, "none"))
            else:
                room = _WIDTH - _LABELS - _NUMBERS
                length = room * value / largest if largest > 0 else 0.0
                color = _COLORS[number % len(_COLORS)]
                parts.append(
                    f'<rect x="{_LABELS}" y="{y}" width="{length:.1f}" height="{_BAR}"'
                    f' fill="{color}"/>'
                )
                parts.append(_text(_LABELS + length + 6, middle, f"{value:.4g}"))
            y += _BAR + _GAP
        y += _GAP
    height = y + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, _text(10, 24, title, size=16, weight="bold"), *parts, "</svg>"]) + "\n"


def _series(series: Series, top: float, color: str) -> list[str]:
    """The bars of a series, the largest value beside the top and how many there are below."""
    left, width = 60, _WIDTH - 70
    largest = max(series.values, default=0.0)
    each = width / max(1, len(series.values))
    parts = [
        _text(left - 6, top + 11, f"{largest:.4g}", anchor="end"),
        _text(left - 6, top + _HEIGHT, "0", anchor="end"),
        f'<line x1="{left}" y1="{top + _HEIGHT}" x2="{left + width}" y2="{top + _HEIGHT}"'
        ' stroke="black" stroke-width="0.5"/>',
    ]
    for index, value in enumerate(series.values):
        height = _HEIGHT * value / largest if largest > 0 else 0.0
        parts.append(
            f'<rect x="{left + index * each:.2f}" y="{top + _HEIGHT - height:.1f}"'
            f' width="{each * 0.9:.2f}" height="{height:.1f}" fill="{color}"/>'
        )
    return parts


def _text(
    x: float, y: float, text: str, *, size: int = 12, weight: str = "normal", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}"'
        f' text-anchor="{anchor}">{escape(text)}</text>'
    )
