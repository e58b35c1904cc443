"""`extra_properties="forbid"`: what is closed, what stays open, and that nothing is added."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.program import Op, Program
from constrain.schema import JsonSchema
from tests.reference.program_semantics import holds

A: dict[str, Any] = {"properties": {"a": {}}}
B: dict[str, Any] = {"properties": {"b": {}}}


def closed(schema: Any) -> Program:
    return JsonSchema(schema, extra_properties="forbid").program()


def needs_general_node(program: Program) -> bool:
    return Op.UNEVALUATED_PROPERTIES in program.nodes[::3]


CASES: list[tuple[Any, list[Any], list[Any]]] = [
    # an object that declares properties
    (A, [{}, {"a": 1}, 3], [{"b": 1}]),
    ({"properties": {"c": A}}, [{"c": {"a": 1}}], [{"c": {"b": 1}}, {"d": 1}]),
    ({"items": A}, [[{"a": 1}]], [[{"b": 1}]]),
    ({"additionalProperties": A}, [{"k": {"a": 1}}], [{"k": {"b": 1}}]),
    ({"$ref": "#/$defs/A", "$defs": {"A": A}}, [{"a": 1}], [{"b": 1}]),
    # inheritance
    ({"allOf": [A, B]}, [{"a": 1, "b": 2}], [{"c": 1}]),
    ({"allOf": [{"$ref": "#/$defs/A"}], **B, "$defs": {"A": A}}, [{"a": 1, "b": 2}], [{"c": 1}]),
    ({"$ref": "#/$defs/A", **B, "$defs": {"A": A}}, [{"a": 1, "b": 2}], [{"c": 1}]),
    ({"allOf": [{"allOf": [A]}, {"allOf": [B]}]}, [{"a": 1, "b": 2}], [{"c": 1}]),
    # unions: each alternative on its own
    (
        {"anyOf": [{**A, "required": ["a"]}, {**B, "required": ["b"]}, {"type": "null"}]},
        [{"a": 1}, {"b": 1}, None],
        [{"a": 1, "b": 2}, {"a": 1, "c": 1}],
    ),
    (
        {"oneOf": [{**A, "required": ["a"]}, {**B, "required": ["b"]}]},
        [{"a": 1}, {"b": 1}],
        [{"a": 1, "b": 2}, {"a": 1, "c": 1}],
    ),
    # closing must not make the second match of a oneOf go away
    ({"oneOf": [A, {"properties": {"a": {}, "b": {}}}]}, [], [{"a": 1}, {"a": 1, "b": 1}]),
    # required but not declared
    ({**A, "required": ["a", "z"]}, [{"a": 1, "z": 1}], [{"a": 1}, {"a": 1, "z": 1, "y": 1}]),
    (
        {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["z"]}], "$defs": {"A": A}},
        [{"z": 1}],
        [{"a": 1}, {"z": 1, "y": 1}],
    ),
    (
        {**A, "anyOf": [{"required": ["a"]}, {"required": ["z"]}]},
        [{"a": 1}, {"z": 1}, {"a": 1, "z": 1}],
        [{}, {"a": 1, "c": 1}],
    ),
    # conditions
    (
        {**A, "if": {"properties": {"a": {"const": 1}}}, "then": B},
        [{"a": 1, "b": 1}, {"a": 2}],
        [{"a": 1, "c": 1}, {"a": 2, "b": 1}],
    ),
    (
        {**A, "dependentSchemas": {"a": B}},
        [{"a": 1, "b": 1}, {"a": 1}, {}],
        [{"b": 1}, {"a": 1, "c": 1}],
    ),
    # never under not, nor in what contains counts
    ({"not": {**A, "required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}, {"a": 1, "b": 2}]),
    ({"properties": {"c": {"not": A}}}, [{}], [{"c": {"b": 1}}]),
    ({"contains": A}, [[{"b": 1}]], [[]]),
    # what says something about others stays as it is
    ({**A, "additionalProperties": True}, [{"a": 1, "b": 2}], []),
    ({**A, "patternProperties": {"^x": {}}}, [{"a": 1, "b": 2}], []),
    ({**A, "unevaluatedProperties": True}, [{"a": 1, "b": 2}], []),
    ({"allOf": [A, {"additionalProperties": {"type": "string"}}]}, [{"b": "2"}], [{"b": 2}]),
    ({"allOf": [A, {"patternProperties": {"^x": {}}}]}, [{"b": "2"}], []),
    # free maps
    ({"type": "object"}, [{"b": 1}], []),
    ({"required": ["a"]}, [{"a": 1, "b": 1}], []),
    ({"properties": {}}, [{"b": 1}], []),
    ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1, "b": 1, "c": 1}], []),
    ({"anyOf": [{**A, "required": ["a"]}, {"type": "object"}]}, [{"a": 1, "b": 1}], []),
]


@pytest.mark.parametrize(("schema", "yes", "no"), CASES, ids=lambda x: str(x)[:70])
def test_closing(schema: Any, yes: list[Any], no: list[Any]) -> None:
    program = closed(schema)
    for value in yes:
        assert holds(program, value), value
    for value in no:
        assert not holds(program, value), value


def test_inheritance_needs_no_general_node() -> None:
    assert not needs_general_node(closed({"allOf": [A, B], "anyOf": [{"required": ["a"]}]}))
    assert needs_general_node(closed({**A, "if": {"required": ["a"]}, "then": B}))


def test_the_report_names_what_was_closed() -> None:
    report = JsonSchema({"items": A}, extra_properties="forbid").report()
    assert [(e.pointer, e.keyword) for e in report.of_status("narrowed") if e.keyword] == [
        ("/items", "properties")
    ]
    assert not [e for e in JsonSchema({"items": A}).report().of_status("narrowed") if e.keyword]


KEYS = ("a", "b", "c")
LEAVES = st.sampled_from(
    [True, {"type": "string"}, {"type": "integer"}, {"const": 1}, {"minimum": 2}]
)


def object_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
            "required": st.lists(st.sampled_from(KEYS), unique=True, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentSchemas": st.dictionaries(st.sampled_from(KEYS), inner, max_size=1),
            "items": inner,
            "contains": inner,
            "$ref": st.just("#/$defs/x"),
        },
    )


SCHEMAS = st.recursive(LEAVES, object_schemas, max_leaves=8)
VALUES = st.recursive(
    st.sampled_from([None, 1, 2, "a"]),
    lambda inner: (
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=3) | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(
    SCHEMAS,
    LEAVES | object_schemas(LEAVES.filter(lambda s: s is not True)),
    st.lists(VALUES, min_size=1, max_size=8),
)
def test_closing_only_takes_away(schema: Any, shared: Any, values: list[Any]) -> None:
    if isinstance(shared, dict):
        shared = {k: v for k, v in shared.items() if k != "$ref"}
    document = {"allOf": [schema], "$defs": {"x": shared}}
    schema_program = JsonSchema(document).program()
    forbid_program = closed(document)
    for value in values:
        if holds(forbid_program, value):
            assert holds(schema_program, value)
