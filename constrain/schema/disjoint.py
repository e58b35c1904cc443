"""Alternatives that exclude each other: where `oneOf` may be read as `anyOf`.

Decided from what a branch says plainly: its `type`, its constants, and, for objects, required
properties with constants (the discriminator of a tagged union).  A no means only "not seen".
Cost: linear in the branches where one criterion separates all of them, quadratic otherwise, with
a bound on the number of branches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.schema.context import Context

if TYPE_CHECKING:
    from constrain.schema.translate import Translator

__all__ = ["are_disjoint"]

_MAX_PAIRWISE = 24
_ALL = frozenset(("null", "boolean", "number", "string", "array", "object"))
_WORDS = {
    bool: "boolean",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


class _Signature:
    """What a branch admits at most: types, constants (scalars), constants by required key."""

    __slots__ = ("keys", "types", "values")

    def __init__(self) -> None:
        self.types = _ALL
        self.values: frozenset | None = None
        self.keys: dict[str, frozenset] = {}


def are_disjoint(t: Translator, schemas: list, context: Context, place: int) -> bool:
    """Whether no value can satisfy two of `schemas`, as far as is plainly visible."""
    if len(schemas) < 2:
        return True
    context = context.open
    signatures = []
    for schema in schemas:
        if type(schema) is not dict:
            return False
        signature = _signature(t, schema, context, place)
        if signature.types == _ALL and signature.values is None:
            return False  # admits something of every type, and so do the others of some type
        signatures.append(signature)
    if sum(len(s.types) for s in signatures) == len(
        frozenset().union(*(s.types for s in signatures))
    ):
        return True
    if all(s.types == {"object"} for s in signatures):
        for key in signatures[0].keys:
            sets = [s.keys[key] for s in signatures if key in s.keys]
            if len(sets) == len(signatures) and sum(map(len, sets)) == len(
                frozenset().union(*sets)
            ):
                return True
    if len(signatures) > _MAX_PAIRWISE:
        return False
    return all(
        _exclude(one, other)
        for index, one in enumerate(signatures)
        for other in signatures[index + 1 :]
    )


def _exclude(one: _Signature, other: _Signature) -> bool:
    shared = one.types & other.types
    if not shared:
        return True
    if one.values is not None and other.values is not None:
        return one.values.isdisjoint(other.values)
    if shared != {"object"}:
        return False
    return any(
        key in other.keys and constants.isdisjoint(other.keys[key])
        for key, constants in one.keys.items()
    )


def _signature(t: Translator, schema: dict, context: Context, place: int) -> _Signature:
    found = _Signature()
    if context.embedded:
        context = t.enter(schema, context)
    if isinstance(schema.get("$ref"), str):
        target, inner, _ = t.follow(schema, context, place)
        if type(target) is not dict:
            return found
        if context.draft <= 7 or "type" not in schema:
            schema, context = target, inner
    if context.handlers.get("type") is None:  # the validation vocabulary is off
        return found
    names = schema.get("type")
    names = names if type(names) is list else [names]
    if all(type(name) is str for name in names) and "any" not in names:
        found.types = frozenset("number" if name == "integer" else name for name in names)
    values = _constants(schema, context)
    if values is not None:
        found.values = values
        found.types &= frozenset(word for word, _ in values)
    required, properties = schema.get("required"), schema.get("properties")
    if type(required) is list and type(properties) is dict:
        for key in required:
            member = properties.get(key) if type(key) is str else None
            if type(member) is dict:
                if context.draft <= 7 and "$ref" in member:
                    continue
                constants = _constants(member, context)
                if constants is not None:
                    found.keys[key] = constants
    return found


def _constants(schema: dict, context: Context) -> frozenset | None:
    """The constants of a schema that has only scalar ones, each with its type."""
    if "const" in schema and context.draft >= 6:
        values = [schema["const"]]
    else:
        values = schema.get("enum")  # type: ignore[assignment]
        if type(values) is not list:
            return None
    if any(isinstance(value, (list, dict)) for value in values):
        return None
    return frozenset((_WORDS[type(value)], value) for value in values)
