"""Hypothesis strategies for JSON Schemas and for instances that come near them.

Keys, values and patterns are few, so that keywords meet: the same property is declared, required,
matched by a pattern and forbidden. Schemas are draft 2020-12 and well formed, not always
satisfiable.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

KEYS = ["a", "b", "c", "ab", "é"]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 5, -1, 10, 1.5, 0.1, "", "a", "b", "ab", "xyz", "é", "😀"),
    *([], [1], ["a", 1], [1, 1], {}, {"a": 1}, {"b": "a"}, {"a": 1, "b": [True]}),
]
PATTERNS = ["^a", "b$", "^[ab]*$", "..", "^(a|b)$", "[^a]", "^.{2,3}$", "é", "^(?!b)", "^\\w+$"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
_small = st.integers(0, 3)


def _some(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A dict of any of these keywords."""
    return st.fixed_dictionaries({}, optional=choices)


def _leaves() -> st.SearchStrategy[Any]:
    numbers = st.sampled_from([-2, -1, 0, 1, 2, 3, 5, 10, 0.5, 1.5, 100])
    return st.one_of(
        st.booleans(),
        st.just({}),
        st.builds(lambda kind: {"type": kind}, st.sampled_from(TYPES)),
        st.builds(
            lambda kinds: {"type": kinds},
            st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        ),
        st.builds(lambda value: {"const": value}, st.sampled_from(VALUES)),
        st.builds(
            lambda values: {"enum": values},
            st.lists(st.sampled_from(VALUES), min_size=1, max_size=4, unique_by=json.dumps),
        ),
        _some(minLength=_small, maxLength=_small, pattern=st.sampled_from(PATTERNS)).map(
            lambda schema: {"type": "string", **schema}
        ),
        _some(
            minimum=numbers,
            maximum=numbers,
            exclusiveMinimum=numbers,
            exclusiveMaximum=numbers,
            multipleOf=st.sampled_from([1, 2, 3, 0.5, 0.1, 1.5]),
        ).flatmap(
            lambda schema: st.sampled_from(["integer", "number"]).map(
                lambda kind: {"type": kind, **schema}
            )
        ),
    )


def _branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    key = st.sampled_from(KEYS)
    keys = st.lists(key, max_size=2, unique=True)
    lists = st.lists(inner, min_size=1, max_size=3)
    objects = _some(
        properties=st.dictionaries(key, inner, max_size=3),
        patternProperties=st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
        additionalProperties=inner,
        propertyNames=inner,
        required=keys,
        minProperties=_small,
        maxProperties=_small,
        dependentRequired=st.dictionaries(key, keys, max_size=2),
        dependentSchemas=st.dictionaries(key, inner, max_size=1),
        unevaluatedProperties=inner,
    )
    arrays = _some(
        prefixItems=lists,
        items=inner,
        contains=inner,
        minContains=_small,
        maxContains=_small,
        minItems=_small,
        maxItems=_small,
        uniqueItems=st.booleans(),
        unevaluatedItems=inner,
    )
    combined = _some(
        allOf=lists, anyOf=lists, oneOf=lists, **{"not": inner, "if": inner, "then": inner}
    )
    typed = st.sampled_from(["object", "array", ["object", "array"], ["array", "string"]])
    return st.one_of(
        objects.map(lambda schema: {"type": "object", **schema}),
        arrays.map(lambda schema: {"type": "array", **schema}),
        combined,
        st.tuples(objects, combined).map(lambda pair: {**pair[0], **pair[1]}),
        st.tuples(typed, objects, arrays).map(lambda t: {"type": t[0], **t[1], **t[2]}),
        st.just({"$ref": "#"}),
    )


def schemas() -> st.SearchStrategy[Any]:
    """Schemas of some ten keywords, nested, now and then recursive."""
    return st.recursive(_leaves(), _branches, max_leaves=8)


def _values(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    )


def instances() -> st.SearchStrategy[Any]:
    """JSON values over the same keys and scalars."""
    return st.recursive(st.sampled_from(VALUES), _values, max_leaves=6)


def is_cyclic(schema: Any, at_root: bool = True) -> bool:
    """Whether `$ref: "#"` is reached in place, without passing a member or an item."""
    if not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        return True
    inner = [schema[key] for key in ("not", "if", "then", "else") if key in schema]
    for key in ("allOf", "anyOf", "oneOf"):
        inner.extend(schema.get(key, ()))
    inner.extend(schema.get("dependentSchemas", {}).values())
    return any(is_cyclic(item, False) for item in inner)
