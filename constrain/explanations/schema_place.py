"""Which schemas say what may stand at a place of a JSON text, and which keywords refuse a byte there.

`governing` walks the schema along the path of the place.  Of alternatives (`anyOf`, `oneOf`, ...)
it follows those that the text could still satisfy by themselves.  `reasons` asks for keywords that
are enough to refuse the text (`constrain.schema.contradictions`), then for policies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from constrain._programs import begun
from constrain.errors import ConstrainError
from constrain.explanations.json_place import JsonPlace, json_place
from constrain.explanations.types import Reason
from constrain.schema import contradictions
from constrain.schema.dialects import DRAFTS, Dialect
from constrain.schema.documents import Location, Registry
from constrain.schema.loading import pointer_of
from constrain.schema.spec import JsonSchema

__all__ = ["governing", "literals", "reasons"]

_URI = "constrain:explained"
_MAX_LOCATIONS = 200
_MAX_TRIALS = 100
_MAX_WORK = 60_000
_SAY_NOTHING = frozenset(
    (
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "$comment"),
        *("title", "description", "default", "examples", "$ref", "allOf", "anyOf", "oneOf"),
    )
)
_ALTERNATIVES = ("anyOf", "oneOf")
_BRANCHING = frozenset((*_ALTERNATIVES, "then", "else"))
_WIDEST = {
    "whitespace": "any",
    "numbers": "any",
    "property_order": "any",
    "escapes": "any",
    "extra_properties": "schema",
}


def governing(spec: JsonSchema, text: bytes, place: JsonPlace) -> dict[str, Any]:
    """The schemas that speak of the place by their JSON pointers, outer ones first."""
    return _Walk(spec, text, place).schemas()


def literals(schemas: dict[str, Any], place: JsonPlace) -> list[bytes]:
    """The names or constants that schemas list for a place, as JSON texts; not all need be possible."""
    found: list[object] = []
    for schema in schemas.values():
        if not isinstance(schema, dict):
            continue
        if place.role == "key":
            for keyword in ("properties", "required"):
                members = schema.get(keyword)
                if isinstance(members, (dict, list)):
                    found += [name for name in members if isinstance(name, str)]
        elif place.role == "value":
            values = schema.get("enum")
            found += values if isinstance(values, list) else []
            found += [schema["const"]] if "const" in schema else []
    texts = (json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in found)
    return list(dict.fromkeys(text.encode(errors="replace") for text in texts))


class _Walk:
    def __init__(self, spec: JsonSchema, text: bytes, place: JsonPlace) -> None:
        self.spec, self.text, self.place = spec, text, place
        self.trials = 0
        self.registry = Registry(
            spec.schema, spec.resources, Dialect(DRAFTS[spec.draft], declared=False)
        )

    def schemas(self) -> dict[str, Any]:
        root = self.registry.root
        found = list(self.in_place([Location(root.root, root, root.place)], 0))
        for depth, step in enumerate(self.place.path, 1):
            below = [child for at in found for child in self.children(at, step)]
            found = list(self.in_place(below, depth))
        speaking = [at for at in found if at.schema is False or self.says_something(at)] or found
        pointer = self.registry.places.pointer
        return {pointer(at.place): at.schema for at in speaking}

    @staticmethod
    def says_something(at: Location) -> bool:
        return isinstance(at.schema, dict) and not set(at.schema) <= _SAY_NOTHING

    def child(self, at: Location, *tokens: str | int) -> Location:
        schema: Any = at.schema
        place, resource = at.place, at.resource
        for token in tokens:
            schema = schema[token]
            place = self.registry.places.add(place, token)
        return Location(schema, resource.document.embedded.get(id(schema), resource), place)

    def in_place(self, todo: list[Location], depth: int) -> Iterator[Location]:
        """The schemas themselves and those that apply in place with them."""
        seen: set[int] = set()
        todo = todo[::-1]
        while todo and len(seen) < _MAX_LOCATIONS:
            at = todo.pop()
            if id(at.schema) in seen and isinstance(at.schema, dict):
                continue
            seen.add(id(at.schema))
            yield at
            if isinstance(at.schema, dict):
                todo += list(self.applied(at, depth))[::-1]

    def applied(self, at: Location, depth: int) -> Iterator[Location]:
        schema: Any = at.schema
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            ref = schema.get(keyword)
            if isinstance(ref, str):
                try:
                    yield self.registry.resolve(ref, at.resource, at.place)[0]
                except ConstrainError:
                    continue
        members = schema.get("allOf")
        if isinstance(members, list):
            yield from (self.child(at, "allOf", index) for index in range(len(members)))
        for keyword in _ALTERNATIVES:
            members = schema.get(keyword)
            if isinstance(members, list):
                inner = [self.child(at, keyword, index) for index in range(len(members))]
                yield from [one for one in inner if self.is_possible(one, depth)] or inner
        for keyword in ("then", "else"):
            if keyword in schema and self.is_possible(self.child(at, keyword), depth):
                yield self.child(at, keyword)
        members = schema.get("dependentSchemas")
        if isinstance(members, dict):
            yield from (self.child(at, "dependentSchemas", key) for key in members)

    def is_possible(self, at: Location, depth: int) -> bool:
        """Whether the text from the value at this depth on begins a text of the schema alone."""
        if not isinstance(at.schema, dict) or self.trials >= _MAX_TRIALS:
            return at.schema is not False
        self.trials += 1
        text = self.text[self.place.starts[min(depth, len(self.place.starts) - 1)] :]
        pointer = self.registry.places.pointer(at.place)
        spec = self.spec
        ref = pointer if "#" in pointer else f"{_URI}#{pointer}"
        try:
            alone = JsonSchema(
                {"$ref": ref},
                draft=spec.draft,
                resources={**spec.resources, _URI: spec.schema},
                formats=spec.formats,
            )
            return begun(alone.program(), text) == len(text)
        except ConstrainError:
            return True

    def children(self, at: Location, step: str | int) -> Iterator[Location]:
        schema: Any = at.schema
        if not isinstance(schema, dict):
            return
        if isinstance(step, str):
            yield from self.members(at, step)
            return
        for keyword in ("prefixItems", "items"):
            members = schema.get(keyword)
            if isinstance(members, list) and step < len(members):
                yield self.child(at, keyword, step)
                return
        for keyword in ("items", "additionalItems", "unevaluatedItems"):
            if isinstance(schema.get(keyword), (dict, bool)):
                yield self.child(at, keyword)
                return

    def members(self, at: Location, key: str) -> Iterator[Location]:
        schema: Any = at.schema
        matched = False
        members = schema.get("properties")
        if isinstance(members, dict) and key in members:
            matched = True
            yield self.child(at, "properties", key)
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict):
            for pattern in patterns:
                if self.matches(pattern, key):
                    matched = True
                    yield self.child(at, "patternProperties", pattern)
        if matched:
            return
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if isinstance(schema.get(keyword), (dict, bool)):
                yield self.child(at, keyword)
                return

    def matches(self, pattern: str, key: str) -> bool:
        """Whether a pattern of JSON Schema finds something in a key."""
        text = json.dumps(key).encode()
        try:
            program = JsonSchema({"pattern": pattern}, draft=self.spec.draft).program()
            return begun(program, text) == len(text)
        except ConstrainError:
            return False


def reasons(spec: JsonSchema, text: bytes) -> tuple[Reason, ...]:
    """Why `text` begins no text of the schema: keywords, policies, or JSON itself.

    The last byte of `text` is the one that is refused.
    """
    if begun(JsonSchema(True, whitespace="any", numbers="any").program(), text) < len(text):
        return (Reason("syntax", "no JSON text continues like this"),)
    found = _contradiction(spec, text)
    if found is None or _begins(spec, _WIDEST, text):
        return tuple(_policies(spec, text))
    told = list(_keywords(found))
    # Of alternatives: what refuses it in those that the text could still be.
    place = json_place(text[:-1])
    for path, keyword, _ in found.clauses:
        if keyword not in _BRANCHING:
            continue
        inside = pointer_of((*path, keyword)) + "/"
        for pointer in governing(spec, text[:-1], place):
            if pointer.startswith(inside):
                inner = _contradiction(spec, text[place.starts[-1] :], _tokens(pointer))
                told += [] if inner is None else _keywords(inner)
    return tuple({reason.pointer: reason for reason in told}.values())


def _contradiction(
    spec: JsonSchema, text: bytes, at: tuple[str, ...] = ()
) -> contradictions.Contradiction | None:
    """The keywords that refuse a text, under all policies but `extra_properties`."""
    return contradictions.explain(
        spec.schema,
        draft=DRAFTS[spec.draft],
        resources=spec.resources,
        formats=spec.formats == "assert",
        content=spec.content == "assert",
        forbid=False,
        numbers=spec.numbers,
        at=at,
        text=text,
        spelling={
            name: getattr(spec, name) for name in ("whitespace", "property_order", "escapes")
        },
        max_work=_MAX_WORK,
    )


def _keywords(found: contradictions.Contradiction) -> Iterator[Reason]:
    for path, keyword, value in found.clauses:
        pointer = pointer_of((*path, keyword))
        message = f"{pointer} is {_short(value)}"
        yield Reason("keyword", message, pointer=pointer, keyword=keyword, value=value)


def _tokens(pointer: str) -> tuple[str, ...]:
    return tuple(t.replace("~1", "/").replace("~0", "~") for t in pointer.split("/")[1:])


def _policies(spec: JsonSchema, text: bytes) -> Iterator[Reason]:
    """The policies that refuse what the schema as written would allow."""
    given = {name: getattr(spec, name) for name in _WIDEST}
    narrow = [name for name, widest in _WIDEST.items() if given[name] != widest]
    alone = []
    for name in narrow:
        if _begins(spec, {**given, name: _WIDEST[name]}, text):
            alone.append(name)
    if not alone and not _begins(spec, _WIDEST, text):
        yield Reason("keyword", "the schema as a whole", pointer="")
        return
    for name in alone or narrow:
        message = f"the policy {name}={given[name]!r}"
        if name == "extra_properties":
            message += " allows declared properties only"
            place = json_place(text[:-1])
            pointer = next(iter(governing(spec, text[:-1], place)), "")
            yield Reason("policy", message, pointer=pointer, keyword=name)
            continue
        yield Reason("policy", message, keyword=name)


def _begins(spec: JsonSchema, policies: dict[str, str], text: bytes) -> bool:
    try:
        other = JsonSchema(
            spec.schema,
            draft=spec.draft,
            resources=spec.resources,
            formats=spec.formats,
            content=spec.content,
            **policies,
        )
        return begun(other.program(), text) == len(text)
    except ConstrainError:
        return False


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else f"{text[:97]}..."
