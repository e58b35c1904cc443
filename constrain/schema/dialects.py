"""The dialects of JSON Schema: their URIs, and which keyword holds subschemas where.

A dialect is a draft and two switches that a `$vocabulary` may set: whether the keywords of the
validation vocabulary count, and whether `format` is asserted whatever the caller wants.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "DRAFTS",
    "IN_LIST",
    "IN_MAP",
    "SINGLE",
    "UNSUPPORTED_URIS",
    "Dialect",
    "dialect_uri",
]

DRAFTS = {"4": 4, "6": 6, "7": 7, "2019-09": 2019, "2020-12": 2020}
"""Names of drafts, as callers give them, and the numbers used here."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read a schema: `draft` is one of 4, 6, 7, 2019, 2020.

    `declared` says that a `$schema` names the dialect.  Where none does, unambiguous spellings of
    older drafts are understood.
    """

    draft: int
    declared: bool = True
    validation: bool = True
    format_assertion: bool = False

    @property
    def id_keyword(self) -> str:
        """The keyword that names a resource."""
        return "id" if self.draft == 4 else "$id"

    @property
    def reference_keywords(self) -> tuple[str, ...]:
        """The keywords that refer to a schema which applies in place."""
        if self.draft <= 7:
            return ("$ref",)
        return ("$ref", "$recursiveRef" if self.draft == 2019 else "$dynamicRef")

    @property
    def dependent_keywords(self) -> tuple[str, ...]:
        """The keywords that hold schemas by the key that makes them apply."""
        if self.draft <= 7:
            return ("dependencies",)
        return ("dependentSchemas", "dependencies")

    @property
    def name(self) -> str:
        """The name of the draft as callers write it."""
        return {2019: "2019-09", 2020: "2020-12"}.get(self.draft, str(self.draft))


_URIS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-04/hyper-schema": 4,
    "json-schema.org/draft-05/schema": 4,
    "json-schema.org/draft-05/hyper-schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-06/hyper-schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft-07/hyper-schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2019-09/hyper-schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
    "json-schema.org/draft/2020-12/hyper-schema": 2020,
}

UNSUPPORTED_URIS = frozenset(
    f"json-schema.org/draft-0{n}/{kind}" for n in (1, 2, 3) for kind in ("schema", "hyper-schema")
)


def dialect_uri(uri: str) -> tuple[str, int | None]:
    """`uri` without scheme and empty fragment, and the draft it names."""
    bare = uri.strip().removesuffix("#").removeprefix("https://").removeprefix("http://")
    return bare, _URIS.get(bare)


# Where subschemas are, whatever the draft: `items`, `dependencies` and the rest are checked by
# their shape, since only objects and booleans can be schemas.
SINGLE = (
    "additionalProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
IN_LIST = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
IN_MAP = (
    "properties",
    "patternProperties",
    "definitions",
    "$defs",
    "dependentSchemas",
    "dependencies",
)
