"""Object keywords of one schema as one OBJECT row.

`additionalProperties`, closing, and an `unevaluatedProperties` whose sources are certain all
become the row's last word on keys it does not name; only sources that depend on the value need an
UNEVALUATED_PROPERTIES node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.program import TYPES, Op
from constrain.schema import closing
from constrain.schema.builder import FALSE, NEVER, TRUE
from constrain.schema.sources import PROPERTIES, TO_CLOSE, Sources, gather

if TYPE_CHECKING:
    from constrain.schema.translate import Frame, Translator

__all__ = ["build"]

_OBJECT = int(Op.OBJECT)
_UNEVALUATED = int(Op.UNEVALUATED_PROPERTIES)


def build(t: Translator, frame: Frame) -> int:
    """The formula of all object keywords in `frame`."""
    builder, places = t.builder, t.places
    context, place = frame.context.children, frame.place
    string, child = builder.string, t.child

    required: dict[int, None] = {}
    for key in frame.required or ():
        required[string(key)] = None

    row: list[int] = []
    own = frame.properties or {}
    if own:
        there = places.add(place, "properties")
        for key, schema in own.items():
            number = string(key)
            node = child(schema, context, there, key)
            if number != NEVER:
                row += (number, node)
            if type(schema) is dict and schema.get("required") is True:
                required[number] = None

    patterns: dict[int, int] = {}
    if frame.pattern_properties:
        there = places.add(place, "patternProperties")
        for pattern, schema in frame.pattern_properties.items():
            matcher = t.pattern(pattern, there, pattern)
            node = child(schema, context, there, pattern)
            known = patterns.get(matcher)
            patterns[matcher] = node if known is None else builder.all((known, node))

    additional, extra = TRUE, TRUE
    if frame.additional is not None:
        additional = child(frame.additional, context, place, "additionalProperties")
    elif frame.unevaluated_properties is not None or frame.close:
        additional, extra = _others(t, frame, row, patterns)

    result = [] if extra == TRUE else [extra]
    if NEVER in required:  # a key that cannot be written is required
        result.append(builder.negate(builder.node(Op.TYPE, TYPES.index("object"))))
        del required[NEVER]
    names, fewest, most = frame.names, frame.min_properties, frame.max_properties
    if (
        row
        or patterns
        or required
        or additional != TRUE
        or names != TRUE
        or fewest > 0
        or most >= 0
    ):
        items = [len(row) // 2, *row, len(patterns)]
        for pair in patterns.items():
            items += pair
        items += (additional, names, len(required), *required, fewest, most)
        result.append(builder.row(_OBJECT, tuple(items)))
    return result[0] if len(result) == 1 else builder.all(result)


def _others(
    t: Translator, frame: Frame, row: list[int], patterns: dict[int, int]
) -> tuple[int, int]:
    """The row's additional node and a further formula, for keys that nothing evaluates."""
    builder = t.builder
    if frame.unevaluated_properties is not None:
        keyword = "unevaluatedProperties"
        kind = PROPERTIES
        node = t.child(frame.unevaluated_properties, frame.context.children, frame.place, keyword)
        if node == TRUE:
            return TRUE, TRUE
        sources = gather(t, kind, frame.schema, frame.context, frame.place)
    elif frame.close == closing.OWN:
        t.note(frame, "properties", "narrowed", "no other properties are generated")
        for key in frame.required or ():
            number = builder.string(key)
            if number != NEVER and number not in row[::2]:
                row += (number, TRUE)
        return FALSE, TRUE
    else:
        node = FALSE
        sources = gather(t, TO_CLOSE, frame.schema, frame.context, frame.place)
        if sources.everything != TRUE:
            t.note(frame, "properties", "narrowed", "no other properties are generated")
    if sources.everything == TRUE:
        return TRUE, TRUE
    _simplify(sources)
    if sources.is_certain:
        known = set(row[::2])
        for name in sources.names:
            number = builder.string(name)
            if number != NEVER and number not in known:
                row += (number, TRUE)
        for matcher in sources.patterns:
            patterns.setdefault(matcher, TRUE)
        return node, TRUE

    by_condition: dict[int, list[str]] = {}
    for name, condition in sources.names.items():
        by_condition.setdefault(condition, []).append(name)
    pairs = [(builder.one_of_strings(names), c) for c, names in by_condition.items()]
    pairs += sources.patterns.items()
    if sources.everything != FALSE:
        pairs.append((TRUE, sources.everything))
    return TRUE, builder.sourced(_UNEVALUATED, node, pairs)


def _simplify(sources: Sources) -> None:
    for table in (sources.names, sources.patterns):
        for key in [key for key, condition in table.items() if condition == FALSE]:
            del table[key]  # type: ignore[arg-type]
