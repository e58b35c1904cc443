"""What a schema evaluates: the sources that `unevaluatedProperties` and `unevaluatedItems` see.

The sources of a schema are those of its own keywords and, under the condition that the branch
holds, those of the schemas that apply in place.  They are gathered compositionally and memoised
by schema: conditions are shared formulas, so a web of references stays small.  Conditions are
always formulas of the schema as written (open contexts), never of a closed one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from constrain.program import TYPES, Op
from constrain.schema.builder import FALSE, NEVER, TRUE, ProgramBuilder
from constrain.schema.context import Context

if TYPE_CHECKING:
    from constrain.schema.translate import Translator

__all__ = ["ITEMS", "PROPERTIES", "TO_CLOSE", "Sources", "gather", "has_key"]

PROPERTIES, ITEMS, TO_CLOSE = 0, 1, 2
"""What is asked for.  TO_CLOSE is PROPERTIES where `patternProperties` leaves an object open."""

_Request = tuple[object, Context, int]


class Sources:
    """Conditions under which something is evaluated.

    ``names``: by property name.  ``patterns``: by the node of the pattern.  ``prefix``: by the
    number of leading items.  ``matches``: by the formula an item satisfies.  ``everything``: all.
    """

    __slots__ = ("everything", "matches", "names", "patterns", "prefix")

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.patterns: dict[int, int] = {}
        self.prefix: dict[int, int] = {}
        self.matches: dict[int, int] = {}
        self.everything = FALSE

    def add(self, other: Sources, condition: int, builder: ProgramBuilder) -> None:
        """Add the sources of a branch that counts under `condition`."""
        if condition == FALSE:
            return
        pairs: tuple[tuple[dict, dict], ...] = (
            (self.names, other.names),
            (self.patterns, other.patterns),
            (self.prefix, other.prefix),
            (self.matches, other.matches),
        )
        for mine, theirs in pairs:
            for key, inner in theirs.items():
                holds = inner if condition == TRUE else builder.all((condition, inner))
                known = mine.get(key)
                mine[key] = holds if known is None else builder.any((known, holds))
        if other.everything != FALSE:
            holds = builder.all((condition, other.everything))
            self.everything = builder.any((self.everything, holds))

    @property
    def is_certain(self) -> bool:
        """Whether all conditions are TRUE and none depends on the value of an item."""
        return (
            self.everything in (FALSE, TRUE)
            and not self.matches
            and all(
                condition == TRUE
                for table in (self.names, self.patterns, self.prefix)
                for condition in table.values()
            )
        )


def has_key(builder: ProgramBuilder, key: str) -> int:
    """The value is an object with `key`."""
    number = builder.string(key)
    if number == NEVER:
        return FALSE
    is_object = builder.node(Op.TYPE, TYPES.index("object"))
    return builder.all((is_object, builder.node(Op.HAS, number)))


def gather(t: Translator, kind: int, schema: dict, context: Context, place: int) -> Sources:
    """The sources of `schema`, except its own `unevaluated*` keyword."""
    # a trampoline: nesting costs memory, never stack
    memo: dict[tuple[int, Context], Sources] = {}
    busy: set[tuple[int, Context]] = set()
    stack = [_own(t, kind, schema, context.open, place, True)]
    keys: list[tuple[int, Context] | None] = [None]
    answer: Sources | None = None
    result = Sources()
    while stack:
        try:
            schema_, context_, place_ = stack[-1].send(answer)
        except StopIteration as stop:
            stack.pop()
            key = keys.pop()
            answer = stop.value
            if key is None:
                result = stop.value
            else:
                busy.discard(key)
                memo[key] = stop.value
            continue
        answer = None
        if type(schema_) is not dict:
            answer = Sources()
            continue
        key = (id(schema_), context_)
        answer = memo.get(key)
        if answer is None:
            if key in busy:  # an in-place cycle: refused when the translation ends
                answer = Sources()
            else:
                busy.add(key)
                stack.append(_own(t, kind, schema_, context_, place_, False))
                keys.append(key)
    return result


def _own(
    t: Translator, kind: int, schema: dict, context: Context, place: int, is_top: bool
) -> Generator[_Request, Any, Sources]:
    builder, places = t.builder, t.places
    if context.embedded:
        context = t.enter(schema, context)
    draft = context.draft
    found = Sources()

    for keyword in context.reference_keywords:
        if isinstance(schema.get(keyword), str):
            where = t.target(keyword, schema[keyword], context, place)
            inner = yield where.schema, t.context_of(where, context), where.place
            found.add(inner, TRUE, builder)
            if draft <= 7:
                return found
    if kind == ITEMS:
        _item_sources(t, schema, context, place, found, is_top)
    else:
        _property_sources(t, schema, context, place, found, kind, is_top)
    if found.everything == TRUE:
        return found

    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(keyword)
        if type(branches) is not list:
            continue
        there = places.add(place, keyword)
        for index, branch in enumerate(branches):
            where_ = places.add(there, index)
            inner = yield branch, context, where_
            found.add(
                inner, TRUE if keyword == "allOf" else t.in_place(branch, context, where_), builder
            )
    if "if" in schema and draft >= 7:
        there = places.add(place, "if")
        condition = t.in_place(schema["if"], context, there)
        found.add((yield schema["if"], context, there), condition, builder)
        for keyword, holds in (("then", condition), ("else", builder.negate(condition))):
            if keyword in schema:
                inner = yield schema[keyword], context, places.add(place, keyword)
                found.add(inner, holds, builder)
    for keyword in context.dependent_keywords:
        members = schema.get(keyword)
        if type(members) is not dict:
            continue
        there = places.add(place, keyword)
        for key, branch in members.items():
            if type(branch) is dict:
                inner = yield branch, context, places.add(there, key)
                found.add(inner, has_key(builder, key), builder)
    return found


def _property_sources(
    t: Translator,
    schema: dict,
    context: Context,
    place: int,
    found: Sources,
    kind: int,
    is_top: bool,
) -> None:
    if "additionalProperties" in schema or (not is_top and "unevaluatedProperties" in schema):
        found.everything = TRUE
    patterns = schema.get("patternProperties")
    if type(patterns) is dict:
        if kind == TO_CLOSE:
            found.everything = TRUE  # left open, as it was
        for pattern in patterns:
            found.patterns[t.pattern(pattern, place, "patternProperties", pattern)] = TRUE
    properties = schema.get("properties")
    if type(properties) is dict:
        found.names.update(dict.fromkeys(properties, TRUE))
    required = schema.get("required")
    if kind == TO_CLOSE and type(required) is list:
        found.names.update((key, TRUE) for key in required if type(key) is str)


def _item_sources(
    t: Translator, schema: dict, context: Context, place: int, found: Sources, is_top: bool
) -> None:
    items = schema.get("items")
    prefix = schema.get("prefixItems") if context.draft >= 2020 else None
    if type(items) is list:
        prefix, items = items, schema.get("additionalItems")
    if type(prefix) is list and prefix:
        found.prefix[len(prefix)] = TRUE
    if items is not None or (not is_top and "unevaluatedItems" in schema):
        found.everything = TRUE
    if context.draft >= 2020 and "contains" in schema:
        node = t.child(schema["contains"], context, place, "contains")
        found.matches[node] = TRUE
