"""Why nothing satisfies a schema: the few keywords that are enough to exclude each other.

The schema is weakened piece by piece (a keyword dropped, a subschema replaced by `true`) for as
long as nothing satisfies it, under a budget; what is left is minimal, or close to it where the
budget ran out.  The same search says why a text is the beginning of no valid one (`text`).  Only changes that admit more values are made, so that what is left is really the
reason: nothing inside `not`, `if` and `oneOf`, no member of `anyOf`, no name that
`additionalProperties` would then speak of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from constrain import _native
from constrain._programs import begun, native_program
from constrain.errors import ConstrainError
from constrain.schema.dialects import Dialect
from constrain.schema.documents import Registry
from constrain.schema.loading import copy_schema, pointer_of, schema_text
from constrain.schema.translate import Translator

__all__ = ["Contradiction", "explain"]

_KEPT = frozenset(
    ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary")
)
_DEFINITIONS = frozenset(("$defs", "definitions"))
_DECLARING = frozenset(
    ("properties", "patternProperties", "prefixItems", "items", "additionalItems", "$ref")
)
_SOURCES = frozenset(
    ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies", "$ref")
)
_MAPS = (
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "dependentRequired",
)
_CHILDREN = (
    "additionalProperties",
    "items",
    "additionalItems",
    "contains",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
)
_SAID_BY_PARTS = frozenset((*_MAPS, *_DEFINITIONS, "allOf", "prefixItems", "then", "else"))

_LISTED = 10

_Path = tuple[str | int, ...]


class Contradiction:
    """``clauses``: (pointer of the schema, keyword, value) of each keyword that is needed."""

    def __init__(self, clauses: list[tuple[_Path, str, Any]]) -> None:
        self.clauses = clauses

    @property
    def pointers(self) -> tuple[str, ...]:
        """The pointers of the keywords."""
        return tuple(pointer_of((*path, keyword)) for path, keyword, _ in self.clauses)

    @property
    def pointer(self) -> str:
        """The innermost schema that contains all of it."""
        paths = [path for path, _, _ in self.clauses]
        if not paths:
            return ""
        common = 0
        while all(len(p) > common and p[common] == paths[0][common] for p in paths):
            common += 1
        path = list(paths[0][:common])
        while path and path[-1] in _SAID_BY_PARTS | {"anyOf", "oneOf"}:
            path.pop()
        return pointer_of(path)

    def __str__(self) -> str:
        places: dict[_Path, list[str]] = {}
        for path, keyword, value in self.clauses[:_LISTED]:
            text = _text(value)
            text = text if len(text) <= 100 else text[:97] + "..."
            places.setdefault(path, []).append(f"{keyword} {text}")
        parts = [
            f"{pointer_of(path) or 'the root'} has {_and(keywords)}"
            for path, keywords in places.items()
        ]
        if len(self.clauses) > _LISTED:
            parts.append(f"{len(self.clauses) - _LISTED} more keywords are needed")
        return "; ".join(parts)


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return schema_text(value)


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def explain(
    schema: object,
    *,
    draft: int,
    resources: Mapping[str, object],
    formats: bool,
    content: bool,
    forbid: bool,
    numbers: str,
    at: tuple[str, ...] = (),
    text: bytes | None = None,
    spelling: Mapping[str, str] | None = None,
    max_work: int = 150_000,
) -> Contradiction | None:
    """What makes the subschema at the path `at` of `schema` unsatisfiable.

    With `text`: what makes it the beginning of no text of `schema`, written under the policies
    `spelling` (``whitespace``, ``property_order``, ``escapes``).

    None where it is satisfiable as far as is known, or where nothing but the whole is to blame.
    ``max_work`` bounds the formulas that are built over all attempts.
    """
    options = {"formats": formats, "content": content, "forbid": forbid}
    policies = {**(spelling or {}), "numbers": numbers}
    search = _Search(schema, draft, resources, options, policies, at, text, max_work)
    try:
        if not search.is_impossible():
            return None
        search.weaken()
    except _SpentError:
        if not search.began:
            return None
    clauses = list(search.clauses())
    return Contradiction(clauses) if clauses else None


class _SpentError(Exception):
    pass


def _count_unevaluated(schema: object) -> int:
    count, todo = 0, [schema]
    while todo:
        at = todo.pop()
        if isinstance(at, dict):
            count += sum(key.startswith("unevaluated") for key in at)
            todo += at.values()
        elif isinstance(at, list):
            todo += at
    return count


class _Search:
    def __init__(
        self,
        schema: object,
        draft: int,
        resources: Mapping[str, object],
        options: dict[str, bool],
        policies: dict[str, str],
        at: tuple[str, ...],
        text: bytes | None,
        max_work: int,
    ) -> None:
        self.document = copy_schema(schema)
        self.draft, self.resources = draft, dict(resources)
        self.options, self.policies = options, policies
        self.text = text
        self.at: _Path = ()
        target: Any = self.document
        for token in at:
            step: str | int = int(token) if isinstance(target, list) else token
            target = target[step]
            self.at = (*self.at, step)
        self.target = target
        # Schemas that exclude what no other evaluates: while there are any (closing counts as
        # one), what declares names or items stays.
        self.evaluating = _count_unevaluated(self.document) + options["forbid"]
        self.left = max_work
        self.began = False

    # -- one attempt -----------------------------------------------------------------------

    def is_impossible(self) -> bool:
        """Whether nothing (nothing that begins with the text) satisfies what is left."""
        document = self.document
        resources = self.resources
        if self.at:
            uri = "constrain:explained"
            resources = {**resources, uri: document}
            document = {"$ref": f"{uri}#{pointer_of(self.at)}"}
        try:
            registry = Registry(document, resources, Dialect(self.draft, declared=False))
            translator = Translator(registry, **self.options)
            program = translator.run(**self.policies)
            self.left -= 20 + len(program.nodes) // 3
            if self.left < 0:
                raise _SpentError
            if self.text is not None:
                return begun(program, self.text) < len(self.text)
            analyzer = _native.Analyzer(native_program(program))
            return analyzer.satisfiable([[program.root]]) is False
        except ConstrainError:
            return False

    # -- weakening -------------------------------------------------------------------------

    def weaken(self) -> None:
        """Weaken the target, from the outside to the inside."""
        self.began = True
        todo: list[Any] = [self.target]
        seen: set[int] = set()
        while todo:
            schema = todo.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            self._drop_keywords(schema)
            for keyword in _MAPS:
                if isinstance(schema.get(keyword), dict):
                    self._relax(schema[keyword], list(schema[keyword]))
            for keyword in ("allOf", "prefixItems", "items"):
                if keyword == "allOf" and self.evaluating > 0:
                    continue
                if isinstance(schema.get(keyword), list):
                    self._relax(schema[keyword], list(range(len(schema[keyword]))))
            if isinstance(schema.get("required"), list):
                self._drop_required(schema)
            todo += self._inner(schema)

    def _drop_keywords(self, schema: dict) -> None:
        if "$ref" in schema and self.draft <= 7:
            return
        # what says that others are excluded goes first, then what it speaks of
        for keyword in sorted(schema, key=lambda k: k in _DECLARING or k in _SOURCES):
            if keyword in _KEPT or keyword in _DEFINITIONS or not self._may_drop(keyword, schema):
                continue
            value = schema.pop(keyword)
            if not self.is_impossible():
                schema[keyword] = value
            elif keyword.startswith("unevaluated"):
                self.evaluating -= 1

    def _may_drop(self, keyword: str, schema: dict) -> bool:
        """Whether dropping a keyword can only admit more values."""
        if keyword in ("minContains", "if"):
            return False
        if self.evaluating > 0 and keyword in _DECLARING | _SOURCES:
            return False
        if keyword in ("properties", "patternProperties"):
            return "additionalProperties" not in schema
        if keyword in ("prefixItems", "items"):
            return "additionalItems" not in schema and (keyword == "items" or "items" not in schema)
        return True

    def _relax(self, members: Any, keys: list) -> None:
        """Replace as many members as possible by `true`: by halves, then one by one."""
        keys = [key for key in keys if isinstance(members[key], (dict, bool, list))]
        weakest: Any = True if self.draft >= 6 else {}
        size = len(keys)
        while size >= 1:
            rest = []
            for start in range(0, len(keys), size):
                chunk = keys[start : start + size]
                before = {key: members[key] for key in chunk}
                for key in chunk:
                    members[key] = [] if isinstance(members[key], list) else weakest
                if not self.is_impossible():
                    for key, value in before.items():
                        members[key] = value
                    rest += chunk
            keys = rest
            size = min(size, len(keys)) // 2 if size > 1 else 0

    def _drop_required(self, schema: dict) -> None:
        """Drop as many required names as possible: by halves, then one by one."""
        names = schema["required"]
        size = len(names)
        while size >= 1:
            at = 0
            while at < len(names):
                schema["required"] = names[:at] + names[at + size :]
                if self.is_impossible():
                    names = schema["required"]
                else:
                    at += size
            size = min(size, len(names)) // 2 if size > 1 else 0
        schema["required"] = names

    def _inner(self, schema: dict) -> Iterator[Any]:
        for keyword in (*_CHILDREN, *_MAPS, "allOf", "anyOf", "prefixItems"):
            value = schema.get(keyword)
            if isinstance(value, list):
                yield from value
            elif isinstance(value, dict):
                yield from value.values() if keyword in _MAPS else (value,)
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/"):
            target: Any = self.document
            for token in ref[2:].split("/"):
                token = token.replace("~1", "/").replace("~0", "~")
                if not isinstance(target, dict) or token not in target:
                    return
                target = target[token]
            yield target

    # -- the result ------------------------------------------------------------------------

    def clauses(self) -> Iterator[tuple[_Path, str, Any]]:
        """What is left, as keywords at places."""
        todo: list[tuple[_Path, Any]] = [(self.at, self.target)]
        seen: set[int] = set()
        while todo:
            path, schema = todo.pop()
            if schema is False:
                yield path[:-1], str(path[-1]) if path else "", False
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            inner: list[tuple[_Path, Any]] = []
            for keyword, value in schema.items():
                if keyword in _KEPT or keyword in _DEFINITIONS:
                    continue
                if keyword in _MAPS and isinstance(value, dict):
                    for key, member in value.items():
                        if isinstance(member, list):  # the names of `dependencies`
                            if member:
                                yield (*path, keyword), key, member
                        else:
                            inner.append(((*path, keyword, key), member))
                elif keyword in ("allOf", "prefixItems", "anyOf") and isinstance(value, list):
                    inner += [((*path, keyword, i), member) for i, member in enumerate(value)]
                elif keyword in _CHILDREN and isinstance(value, dict):
                    inner.append(((*path, keyword), value))
                elif keyword == "$ref" and isinstance(value, str) and value.startswith("#/"):
                    tokens = tuple(
                        token.replace("~1", "/").replace("~0", "~")
                        for token in value[2:].split("/")
                    )
                    target = self.document
                    for token in tokens:
                        target = target.get(token) if isinstance(target, dict) else None
                    if target is None:
                        yield path, keyword, value
                    else:
                        inner.append((tokens, target))
                elif keyword not in ("then", "else") or not isinstance(value, dict):
                    yield path, keyword, value
            todo += reversed(inner)
