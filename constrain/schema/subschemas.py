"""The subschemas of a translated schema, with what contains them and what they mean.

Built from the notes of a program: one `Subschema` for each pointer that was translated, with all
formulas it became (closed and open, in several dynamic scopes), linked to the schema around it.
Schemas that nothing refers to were not translated and are not here; a schema reached by `$ref`
stands where it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constrain.program import Program
from constrain.schema.dialects import IN_LIST, IN_MAP, SINGLE
from constrain.schema.report import pointers

__all__ = ["Subschema", "is_false", "subschemas"]

_SINGLE = frozenset(SINGLE)
_IN_PLACE = frozenset(
    ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "dependencies")
)
_ASIDE = frozenset(("not", "if", "propertyNames", "contains"))
_DEFINITIONS = frozenset(("$defs", "definitions"))


class Subschema:
    """One schema object.

    ``path``: tokens, the first is the URI of the document ("" for the root document).
    ``pointer``: the JSON pointer, after ``uri#`` in another document.
    ``is_aside``: it, or something around it, does not say what values are, but asks something.
    ``nodes``: the formulas it was translated to, one for each way of reading it.
    ``parent``: the subschema around it, and ``keyword`` and ``key`` where it stands in that (None
    and "" for the root and for definitions).
    """

    __slots__ = (
        *("draft", "is_aside", "key", "keyword", "nodes", "parent", "path", "pointer", "schema"),
    )

    def __init__(
        self, path: tuple[str, ...], pointer: str, schema: dict[str, Any], draft: int
    ) -> None:
        self.path = path
        self.pointer = pointer
        self.schema = schema
        self.draft = draft
        self.nodes: list[int] = []
        self.parent: Subschema | None = None
        self.keyword = ""
        self.key: str | None = None
        self.is_aside = False

    @property
    def is_in_place(self) -> bool:
        """Whether it speaks of the same value as its parent."""
        return self.keyword in _IN_PLACE

    def types(self) -> list[str]:
        """The types that `type` names; none where there is no usable `type`."""
        names = self.schema.get("type")
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, list):
            return []
        return [name for name in names if isinstance(name, str) and name != "any"]

    def around(self) -> Iterator[Subschema]:
        """The schemas around it that speak of the same value, innermost first."""
        at = self
        while at.parent is not None and at.is_in_place and at.keyword not in ("not", "if"):
            at = at.parent
            yield at


def is_false(schema: object) -> bool:
    """Whether a schema is a way to write "nothing"."""
    return schema is False or schema in ({"not": {}}, {"not": True})


def subschemas(program: Program) -> list[Subschema]:
    """All subschemas, outer ones before inner ones."""
    notes: dict[str, Any] = program.notes
    parents, tokens = notes["places"]
    paths: dict[int, tuple[str, ...]] = {}
    pointer = pointers(notes)

    def path_of(place: int) -> tuple[str, ...]:
        trail = []
        while place >= 0 and place not in paths:
            trail.append(place)
            place = parents[place]
        path = paths[place] if place >= 0 else ()
        for at in reversed(trail):
            path = paths[at] = (*path, str(tokens[at]))
        return path

    found: dict[tuple[str, ...], Subschema] = {}
    for place, node, schema, draft in notes["schemas"]:
        path = path_of(place)
        known = found.get(path)
        if known is None:
            known = found[path] = Subschema(path, pointer(place), schema, draft)
        if node not in known.nodes:
            known.nodes.append(node)
    ordered = sorted(found.values(), key=lambda sub: len(sub.path))
    for sub in ordered:
        _link(sub, found)
        sub.is_aside = sub.keyword in _ASIDE or (sub.parent is not None and sub.parent.is_aside)
    return ordered


def _link(sub: Subschema, found: dict[tuple[str, ...], Subschema]) -> None:
    path = sub.path
    if len(path) >= 2 and path[-1] in _SINGLE:
        parent = found.get(path[:-1])
        if parent is not None and parent.schema.get(path[-1]) is sub.schema:
            sub.parent, sub.keyword = parent, path[-1]
            return
    if len(path) >= 3:
        parent = found.get(path[:-2])
        keyword = path[-2]
        if parent is None or keyword in _DEFINITIONS:
            return
        members = parent.schema.get(keyword)
        if (keyword in IN_MAP and isinstance(members, dict)) or (
            keyword in IN_LIST and isinstance(members, list)
        ):
            sub.parent, sub.keyword, sub.key = parent, keyword, path[-1]
