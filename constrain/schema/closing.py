"""Closing objects: what `extra_properties="forbid"` adds to a schema.

An object that declares `properties` and is silent about others gets no others.  Schemas that
apply in place are one object: what any of them declares is allowed, as `unevaluatedProperties:
false` would have it, so a base and a derived schema under `allOf` do not exclude each other.
Closing only ever takes values away: it is never applied under `not`, in the condition of `if`,
or inside the count of `oneOf`.  A key that is required is allowed even where it is not declared.

Three outcomes for a schema that is to be closed: only its own properties matter (a plain
`additionalProperties: false`), one in-place schema declares all there is (it is closed instead,
each alternative of a union on its own), or several do (closed together).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.schema.context import Context

if TYPE_CHECKING:
    from constrain.schema.translate import Translator

__all__ = ["GROUP", "NOTHING", "OWN", "plan"]

NOTHING, OWN, GROUP = 0, 1, 2

_EXPLICIT = frozenset(("additionalProperties", "patternProperties", "unevaluatedProperties"))
_REFS = ("$ref", "$dynamicRef", "$recursiveRef")
_BRANCHES = frozenset(
    ("allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies", *_REFS)
)


def plan(t: Translator, schema: dict, context: Context, place: int) -> tuple[int, Context]:
    """How to close `schema`, and the context of the schemas that apply in place with it."""
    if not _EXPLICIT.isdisjoint(schema):
        return NOTHING, context.inner
    own = _level(schema)
    if _BRANCHES.isdisjoint(schema):
        return (OWN if own == _DECLARES else NOTHING), context.inner
    alone: list[int] = []  # what can be closed on its own, where nothing else speaks of properties
    never: list[int] = []  # what cannot
    for keyword in context.reference_keywords:
        ref = schema.get(keyword)
        if isinstance(ref, str):
            where = t.target(keyword, ref, context, place)
            alone.append(_reach(t, [where.schema], t.context_of(where, context), place))
    branches = schema.get("allOf")
    if type(branches) is list:
        alone += [_reach(t, [branch], context, place) for branch in branches]
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if type(branches) is list:
            alone.append(_reach(t, branches, context, place))
    if "if" in schema and context.draft >= 7:
        alone.append(_reach(t, [schema.get("then"), schema.get("else")], context, place))
        never.append(_reach(t, [schema["if"]], context, place))
    for keyword in context.dependent_keywords:
        branches = schema.get(keyword)
        if type(branches) is dict:
            never.append(_reach(t, list(branches.values()), context, place))
    if max((own, *alone)) < _DECLARES:
        return NOTHING, context.inner
    speaking = sum(level > _SILENT for level in (own, *alone, *never))
    if speaking > 1:
        return GROUP, context.inner
    return (OWN, context.inner) if own else (NOTHING, context)


_SILENT, _MENTIONS, _DECLARES = 0, 1, 2


def _level(schema: dict) -> int:
    """What a schema itself says of properties: nothing, that some are required, or what they are."""
    if schema.get("properties") or not _EXPLICIT.isdisjoint(schema):
        return _DECLARES
    return _MENTIONS if schema.get("required") else _SILENT


def _reach(t: Translator, schemas: list, context: Context, place: int) -> int:
    """The highest level of any of `schemas` and of what applies in place with it."""
    todo = [(schema, context) for schema in schemas]
    seen: set[tuple[int, Context]] = set()
    highest = _SILENT
    while todo:
        schema, where = todo.pop()
        if type(schema) is not dict:
            continue
        if where.embedded:
            where = t.enter(schema, where)
        key = (id(schema), where)
        if key in seen:
            continue
        seen.add(key)
        for keyword in where.reference_keywords:
            ref = schema.get(keyword)
            if isinstance(ref, str):
                target = t.target(keyword, ref, where, place)
                todo.append((target.schema, t.context_of(target, where)))
        if where.draft <= 7 and "$ref" in schema:
            continue
        highest = max(highest, _level(schema))
        if highest == _DECLARES:
            break
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(keyword)
            if type(branches) is list:
                todo += [(branch, where) for branch in branches]
        if "if" in schema:
            todo += [(schema[k], where) for k in ("if", "then", "else") if k in schema]
    return highest
