"""What can be seen in a schema without asking what satisfies it.

Works on one subschema at a time (and, for required names, on what applies in place with it), so
its cost is linear in the schema.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from constrain.schema.dialects import Dialect
from constrain.schema.findings import Finding
from constrain.schema.keywords import handlers_of
from constrain.schema.report import ReportEntry
from constrain.schema.subschemas import Subschema

__all__ = ["TYPE_OF", "lint", "noted"]

_OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"),
        *("minContains", "maxContains", "minItems", "maxItems", "uniqueItems"),
    ),
    "object": (
        *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"),
        *("propertyNames", "required", "minProperties", "maxProperties"),
        *("dependentRequired", "dependentSchemas", "dependencies"),
    ),
}
TYPE_OF = {keyword: name for name, keywords in _OF_TYPE.items() for keyword in keywords}
"""The type that each keyword speaks of."""
_BOUNDS = (
    ("minLength", "maxLength", "string"),
    ("minItems", "maxItems", "array"),
    ("minProperties", "maxProperties", "object"),
    ("minimum", "maximum", "number"),
    ("minContains", "maxContains", "array"),
)
_MEANT = {
    "require": "required",
    "requires": "required",
    "optional": "required",
    "regex": "pattern",
    "regexp": "pattern",
    "min": "minimum",
    "max": "maximum",
    "values": "enum",
    "options": "enum",
    "enums": "enum",
    "example": "examples",
    "ref": "$ref",
    "defs": "$defs",
    "schema": "$schema",
    "anchor": "$anchor",
    "constant": "const",
    "extends": "allOf",
    "disallow": "not",
    "divisibleBy": "multipleOf",
}
_OTHER = {
    "nullable": "is of OpenAPI 3.0 and means nothing here: add 'null' to type",
    "discriminator": "is of OpenAPI and means nothing here",
    "xml": "is of OpenAPI and means nothing here",
    "externalDocs": "is of OpenAPI and means nothing here",
}
_OPENAPI_FORMATS = frozenset(("int32", "int64", "float", "double", "byte", "binary", "password"))


def lint(sub: Subschema) -> Iterator[Finding]:
    """The findings about one subschema."""
    schema = sub.schema
    if "$ref" in schema and sub.draft <= 7:
        return
    yield from _without_effect(sub)
    yield from _crossed(sub)
    yield from _undeclared(sub)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        yield from _anchors(sub, "pattern", pattern)
    prefix = schema.get("prefixItems", schema.get("items"))
    most: Any = schema.get("maxItems")
    if isinstance(prefix, list) and _is_count(most) and len(prefix) > most:
        yield Finding(
            "dead-items",
            sub.pointer,
            f"maxItems is {most}, so the schemas of items from the {most + 1}. on never apply",
            "maxItems",
        )


def _without_effect(sub: Subschema) -> Iterator[Finding]:
    types = {"number" if name == "integer" else name for name in sub.types()}
    if not types:
        return
    for keyword in sub.schema:
        needs = TYPE_OF.get(keyword)
        if keyword == "format" and sub.schema["format"] not in _formats():
            continue  # not one of strings, or unknown, which is said anyway
        if needs is not None and needs not in types:
            named = " or ".join(sorted(sub.types()))
            yield Finding(
                "keyword-without-effect",
                sub.pointer,
                f"{keyword} says nothing about type {named}",
                keyword,
            )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _crossed(sub: Subschema) -> Iterator[Finding]:
    for low, high, kind in _BOUNDS:
        least: Any = sub.schema.get(low)
        most: Any = sub.schema.get(high)
        if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in (least, most)):
            continue
        if least > most:
            yield Finding(
                "crossed-bounds",
                sub.pointer,
                f"{low} {least} is above {high} {most}, so no {kind} is valid",
                low,
            )


def _undeclared(sub: Subschema) -> Iterator[Finding]:
    schema = sub.schema
    names, declared = schema.get("required"), schema.get("properties")
    if not isinstance(names, list) or not isinstance(declared, dict) or sub.is_aside:
        return
    if schema.get("patternProperties") or isinstance(schema.get("additionalProperties"), dict):
        return
    missing = [name for name in names if isinstance(name, str) and name not in declared]
    if not missing:
        return
    known = _declared_in_place(schema)
    for outer in islice(sub.around(), _MAX_AROUND):
        known |= _declared_in_place(outer.schema)
    if _UNKNOWN in known:
        return
    for name in missing:
        if name not in known:
            close = difflib.get_close_matches(name, list(declared), 1, 0.75)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            yield Finding(
                "undeclared-required",
                sub.pointer,
                f"{name!r} is required but not among the properties{hint}",
                "required",
            )


_UNKNOWN = "\0anything"
_MAX_AROUND = 24


def _declared_in_place(schema: dict[str, Any]) -> set[str]:
    """The names that `properties` of a schema and of what applies in place declare."""
    found: set[str] = set()
    todo: list[object] = [schema]
    while todo:
        at = todo.pop()
        if not isinstance(at, dict):
            continue
        if any(k in at for k in ("$ref", "$dynamicRef", "$recursiveRef", "patternProperties")):
            found.add(_UNKNOWN)
        if isinstance(at.get("properties"), dict):
            found |= set(at["properties"])
        for keyword in ("allOf", "anyOf", "oneOf"):
            if isinstance(at.get(keyword), list):
                todo += at[keyword]
        todo += [at.get(keyword) for keyword in ("if", "then", "else")]
        for keyword in ("dependentSchemas", "dependencies"):
            if isinstance(at.get(keyword), dict):
                todo += at[keyword].values()
    return found


def _anchors(sub: Subschema, keyword: str, pattern: str) -> Iterator[Finding]:
    branches = _branches(pattern)
    if len(branches) > 1:
        starts = [branch.startswith("^") for branch in branches]
        ends = [branch.endswith("$") and not branch.endswith("\\$") for branch in branches]
        if starts[0] and ends[-1] and not any(starts[1:]) and not any(ends[:-1]):
            inner = pattern[1:-1]
            yield Finding(
                "partly-anchored-pattern",
                sub.pointer,
                f"in `{pattern}` the anchors bind to the first and the last alternative only; "
                f"`^({inner})$` anchors all of them",
                keyword,
            )
        return
    if pattern.startswith("^") or pattern.endswith("$") or "(^" in pattern or "$)" in pattern:
        return
    if pattern.startswith((".*", "(?", "\\b")) or pattern.endswith((".*", "\\b", ".+")):
        return
    # A text is looked for; a class with a count or a shape in itself is meant to be the whole.
    if re.search(r"(\]|\\[dwsDWS]|\))([+*?]|\{\d)", pattern) or re.fullmatch(r"\[.*\]", pattern):
        yield Finding(
            "unanchored-pattern",
            sub.pointer,
            f"`{pattern}` may match anywhere in the string; `^{pattern}$` matches the whole of it",
            keyword,
        )


def _branches(pattern: str) -> list[str]:
    """The alternatives of a pattern outside of groups and classes."""
    result, start, depth, in_class, index = [], 0, 0, False, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            result.append(pattern[start:index])
            start = index + 1
        index += 1
    return [*result, pattern[start:]]


# -- what the translation noted -----------------------------------------------------------------


def noted(entries: Iterable[ReportEntry], subs: Iterable[Subschema]) -> Iterator[Finding]:
    """The findings that translation made on its way, and the policies."""
    drafts = {}
    values: dict[str, dict[str, Any]] = {}
    for sub in subs:
        drafts[sub.pointer] = sub.draft
        values[sub.pointer] = sub.schema
    for entry in entries:
        where, keyword, detail = entry.pointer, entry.keyword, entry.detail
        if entry.status == "narrowed":
            yield Finding("narrowed", where, detail, keyword)
        elif entry.status == "surprise":
            text = f"{keyword}: {detail}"
            if detail.startswith(("has ", "occurs")):
                text = f"{keyword} {detail}"
            elif detail.startswith("ignored"):
                text = f"{keyword} is {detail}"
            yield Finding(_code_of(keyword, detail), where, text, keyword)
        elif entry.status == "unknown" and keyword == "format":
            name = values.get(where, {}).get("format")
            close = difflib.get_close_matches(str(name), _formats(), 1, 0.7)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            severity = "info" if name in _OPENAPI_FORMATS else ""
            yield Finding("unknown-format", where, f"format {detail}{hint}", keyword, severity)
        elif entry.status == "unknown":
            yield _unknown(where, keyword, values.get(where, {}), drafts.get(where, 2020))


def _code_of(keyword: str, detail: str) -> str:
    if detail.startswith("ignored beside $ref"):
        return "ref-sibling-ignored"
    if detail.startswith("occurs twice"):
        return "duplicate-key"
    if "no meaning in draft" in detail or "read as" in detail or "draft 3" in detail:
        return "draft-mismatch"
    if detail.startswith("has no meaning without"):
        return "keyword-without-effect"
    return "surprise"


def _unknown(where: str, keyword: str, schema: dict[str, Any], draft: int) -> Finding:
    if keyword in _OTHER:
        return Finding("unknown-keyword", where, f"{keyword} {_OTHER[keyword]}", keyword)
    meant = _MEANT.get(keyword) or _near(keyword, draft)
    if meant is not None and meant not in schema:
        text = f"{keyword} is unknown and ignored; did you mean {meant!r}?"
        return Finding("unknown-keyword", where, text, keyword)
    value = schema.get(keyword)
    if isinstance(value, dict) and ("type" in value or "$ref" in value) and keyword.isidentifier():
        text = f"{keyword} is unknown and ignored; it looks like a property: put it in 'properties'"
        return Finding("unknown-keyword", where, text, keyword)
    return Finding("unknown-keyword", where, f"{keyword} is unknown and ignored", keyword, "info")


def _near(keyword: str, draft: int) -> str | None:
    """The keyword that was probably meant."""
    if keyword.startswith(("_", "x-", "@")):
        return None  # set aside on purpose
    names = _keywords(draft)
    bare = keyword.lower().lstrip("$").replace("_", "").replace("-", "")
    close = [bare] if bare in names else []
    if not close and len(bare) > 4:
        close = difflib.get_close_matches(bare, list(names), 1, 0.82)
    if not close:
        return None
    found = names[close[0]]
    return found if found.startswith("$") or not keyword.startswith("$") else None


@lru_cache(maxsize=8)
def _keywords(draft: int) -> dict[str, str]:
    return {name.lower().lstrip("$"): name for name in handlers_of(Dialect(draft))}


@lru_cache(maxsize=1)
def _formats() -> list[str]:
    from constrain.regex import formats

    return sorted(formats.FORMATS)
