"""Array keywords of one schema as one ARRAY row, and what does not fit in it.

An `unevaluatedItems` whose sources are certain becomes the row's word on the rest; only sources
that depend on the value need an UNEVALUATED_ITEMS node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.program import Op
from constrain.schema.builder import FALSE, TRUE
from constrain.schema.sources import ITEMS, gather

if TYPE_CHECKING:
    from constrain.schema.translate import Frame, Translator

__all__ = ["build"]

_ARRAY = int(Op.ARRAY)
_UNEVALUATED = int(Op.UNEVALUATED_ITEMS)
_PREFIX, _ALL, _MATCH = 0, 1, 2


def build(t: Translator, frame: Frame) -> int:
    """The formula of the array keywords in `frame` that the row can hold."""
    context = frame.context.children
    prefix: list[int] = []
    if frame.prefix:
        keyword = "prefixItems" if "prefixItems" in frame.schema else "items"
        there = t.places.add(frame.place, keyword)
        prefix = [t.child(s, context, there, i) for i, s in enumerate(frame.prefix)]
    rest, extra = TRUE, TRUE
    if frame.rest is not None:
        rest = t.child(frame.rest, context, frame.place, frame.rest_keyword)
    elif frame.unevaluated_items is not None:
        rest, extra = _others(t, frame, prefix)
    if rest == TRUE:
        while prefix and prefix[-1] == TRUE:
            prefix.pop()
    if not prefix and rest == TRUE and frame.min_items <= 0 and frame.max_items < 0:
        return extra
    items = (len(prefix), *prefix, rest, frame.min_items, frame.max_items)
    return t.builder.all((t.builder.row(_ARRAY, items), extra))


def _others(t: Translator, frame: Frame, prefix: list[int]) -> tuple[int, int]:
    """The row's rest node and a further formula, for items that nothing evaluates."""
    node = t.child(frame.unevaluated_items, frame.context.children, frame.place, "unevaluatedItems")
    if node == TRUE:
        return TRUE, TRUE
    sources = gather(t, ITEMS, frame.schema, frame.context, frame.place)
    if sources.everything == TRUE:
        return TRUE, TRUE
    certain = max((n for n, c in sources.prefix.items() if c == TRUE), default=0)
    sources.prefix = {
        n: c for n, c in sources.prefix.items() if c != FALSE and (c == TRUE or n > certain)
    }
    if sources.is_certain:
        prefix += [TRUE] * (certain - len(prefix))
        return node, TRUE
    rows = [(_PREFIX, n, c) for n, c in sorted(sources.prefix.items()) if c != TRUE or n == certain]
    rows += [(_MATCH, n, c) for n, c in sources.matches.items() if c != FALSE]
    if sources.everything != FALSE:
        rows.append((_ALL, 0, sources.everything))
    return TRUE, t.builder.sourced(_UNEVALUATED, node, rows)
