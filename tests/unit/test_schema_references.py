"""References: resources, anchors, dynamic scope, depth and cycles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from constrain import limits
from constrain.errors import SchemaError, UnsupportedError
from constrain.schema import JsonSchema
from tests.reference.program_semantics import holds


def valid(schema: Any, value: Any, **options: Any) -> bool:
    return holds(JsonSchema(schema, **options).program(), value)


def test_pointers_are_decoded() -> None:
    schema = {
        "$defs": {"a/b~c%d": {"type": "string"}},
        "properties": {"x": {"$ref": "#/$defs/a~1b~0c%25d"}},
    }
    assert valid(schema, {"x": "s"})
    assert not valid(schema, {"x": 1})


def test_pointers_into_lists_and_unknown_keywords() -> None:
    schema = {
        "allOf": [True, {"type": "object"}],
        "x-shared": {"deep": [{"type": "integer"}]},
        "properties": {"a": {"$ref": "#/x-shared/deep/0"}, "b": {"$ref": "#/allOf/1"}},
    }
    assert valid(schema, {"a": 1, "b": {}})
    assert not valid(schema, {"a": "x"})
    assert not valid(schema, {"b": 1})


def test_resources_by_key_and_by_own_identifier() -> None:
    resources = {
        "http://x.test/a.json": {"$defs": {"s": {"type": "string"}}},
        "key": {"$id": "http://x.test/b.json", "$anchor": "t", "type": "integer"},
        "http://x.test/text": '{"type": "null"}',
    }
    schema = {
        "$id": "http://x.test/root.json",
        "properties": {
            "a": {"$ref": "a.json#/$defs/s"},
            "b": {"$ref": "b.json#t"},
            "c": {"$ref": "text"},
        },
    }
    assert valid(schema, {"a": "x", "b": 1, "c": None}, resources=resources)
    for wrong in ({"a": 1}, {"b": "x"}, {"c": 0}):
        assert not valid(schema, wrong, resources=resources)


def test_resources_without_schema_keyword_follow_the_referrer() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "$ref": "http://x.test/r"}
    resource = {"minimum": 1, "exclusiveMinimum": True}
    assert not valid(schema, 1, resources={"http://x.test/r": resource})
    assert valid(schema, 2, resources={"http://x.test/r": resource})


def test_later_changes_have_no_effect() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"$ref": "r"}}}
    resource: dict[str, Any] = {"type": "string"}
    spec = JsonSchema(schema, resources={"r": resource})
    schema.clear()
    resource["type"] = "null"
    assert not holds(spec.program(), {"a": None})
    copy = spec.schema
    assert isinstance(copy, dict)
    copy.clear()
    assert spec.schema != {}


def test_siblings_of_ref_count_from_2019() -> None:
    schema = {"$ref": "#/definitions/a", "minLength": 2, "definitions": {"a": {"type": "string"}}}
    assert valid(schema, "x", draft="7")
    assert not valid(schema, "x", draft="2019-09")
    assert not valid(schema, "x", draft="2020-12")


def test_embedded_resources_and_anchors() -> None:
    schema = {
        "$id": "http://x.test/",
        "properties": {"a": {"$ref": "inner#/$defs/n"}, "b": {"$ref": "inner#here"}},
        "$defs": {
            "e": {
                "$id": "inner",
                "$defs": {"n": {"$ref": "#here"}},
                "items": {"$anchor": "here", "type": "integer"},
            }
        },
    }
    assert valid(schema, {"a": 1, "b": 2})
    assert not valid(schema, {"a": "x"})
    assert not valid(schema, {"b": "x"})


def test_dynamic_references_follow_the_outermost_anchor() -> None:
    schema = {
        "$id": "http://x.test/strings",
        "$ref": "list",
        "$defs": {
            "item": {"$dynamicAnchor": "T", "type": "string"},
            "list": {
                "$id": "list",
                "items": {"$dynamicRef": "#T"},
                "$defs": {"any": {"$dynamicAnchor": "T"}},
            },
        },
    }
    assert valid(schema, ["a"])
    assert not valid(schema, [1])


def test_one_schema_in_two_dynamic_scopes() -> None:
    def of(kind: str) -> dict[str, Any]:
        return {
            "$id": f"http://x.test/{kind}",
            "$ref": "list",
            "$defs": {"item": {"$dynamicAnchor": "T", "type": kind}},
        }

    generic = {
        "items": {"$dynamicRef": "#T"},
        "$defs": {"any": {"$dynamicAnchor": "T"}},
    }
    schema = {"properties": {"s": of("string"), "n": of("integer")}}
    resources = {"http://x.test/list": generic}
    assert valid(schema, {"s": ["a"], "n": [1]}, resources=resources)
    assert not valid(schema, {"s": [1]}, resources=resources)
    assert not valid(schema, {"n": ["a"]}, resources=resources)


def test_recursive_references_of_2019() -> None:
    tree = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$id": "http://x.test/tree",
        "$recursiveAnchor": True,
        "properties": {"child": {"$recursiveRef": "#"}},
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "$id": "http://x.test/strict",
        "$recursiveAnchor": True,
        "$ref": "tree",
        "required": ["name"],
    }
    resources = {"http://x.test/tree": tree}
    assert valid(schema, {"name": 1, "child": {"name": 2}}, resources=resources)
    assert not valid(schema, {"name": 1, "child": {}}, resources=resources)


def test_official_meta_schemas_resolve() -> None:
    pytest.importorskip("jsonschema_specifications")
    for uri in (
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ):
        assert valid({"$ref": uri}, {"properties": {"a": {"minLength": 1}}}, formats="ignore")
        assert not valid({"$ref": uri}, {"properties": {"a": {"minLength": -1}}}, formats="ignore")


def test_meta_schemas_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_specifications", None)
    with pytest.raises(SchemaError, match="jsonschema-specifications"):
        JsonSchema({"$ref": "http://json-schema.org/draft-07/schema#"}).program()


def test_vocabularies_of_a_custom_dialect() -> None:
    meta = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "http://x.test/meta",
        "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/applicator": True},
    }
    schema = {"$schema": "http://x.test/meta", "properties": {"a": False}, "minimum": 5}
    resources = {"http://x.test/meta": meta}
    assert valid(schema, 1, resources=resources)
    assert not valid(schema, {"a": 1}, resources=resources)


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        ("#/$defs/none", "nothing at 'none'"),
        ("#/allOf/7", "no item 7"),
        ("#/allOf/x", "nothing at 'x'"),
        ("#/title", "not to a schema"),
        ("#/title/x", "nothing at 'x'"),
        ("#anchor", "no anchor 'anchor'"),
        ("http://x.test/none", "nothing is fetched"),
        ("http://[::1/", "not a URI reference"),
        ("$defs/a", "nothing is known under"),
    ],
)
def test_unresolvable_references(ref: str, reason: str) -> None:
    schema = {
        "$id": "http://x.test/s",
        "title": "t",
        "allOf": [{}],
        "$defs": {},
        "properties": {"a": {"$ref": ref}},
    }
    with pytest.raises(SchemaError, match=reason) as caught:
        JsonSchema(schema).program()
    assert caught.value.pointer == "/properties/a"


def test_dialects_before_draft_4_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="drafts before 4") as caught:
        JsonSchema({"$schema": "http://json-schema.org/draft-03/schema#"}).program()
    assert (caught.value.feature, caught.value.pointer) == ("$schema", "/$schema")


def test_a_base_uri_in_the_spelling_of_another_draft() -> None:
    schema = {"id": "http://x.test/s#", "definitions": {"a": {"type": "string"}}}
    spec = JsonSchema({**schema, "items": {"$ref": "http://x.test/s#/definitions/a"}})
    assert holds(spec.program(), ["a"])
    assert not holds(spec.program(), [1])
    assert [e.keyword for e in spec.report().of_status("surprise")] == ["id"]


# -- depth and cycles --------------------------------------------------------------------------


def chain(size: int, link: Callable[[str], Any], end: Any) -> dict[str, Any]:
    defs = {f"d{i}": link(f"#/$defs/d{i + 1}") for i in range(size)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{size}": end}}


def test_long_chains_of_references() -> None:
    schema = chain(2000, lambda ref: {"$ref": ref}, {"type": "string"})
    program = JsonSchema(schema).program()
    assert holds(program, "a")
    assert not holds(program, 1)
    assert len(program.refs) == 0


def test_long_chains_in_place() -> None:
    schema = chain(300, lambda ref: {"allOf": [{"$ref": ref}], "minLength": 1}, {"maxLength": 2})
    program = JsonSchema(schema).program()
    assert holds(program, "ab")
    assert not holds(program, "")
    assert not holds(program, "abc")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: {"allOf": [s]},
        lambda s: {"not": s},
        lambda s: {"items": s},
        lambda s: {"properties": {"a": s}},
        lambda s: {"allOf": [s], "unevaluatedProperties": False},
        lambda s: {"anyOf": [s, {"items": True, "minItems": 3}], "unevaluatedItems": False},
        lambda s: {"if": s, "then": {"minLength": 1}},
        lambda s: {"oneOf": [s, {"properties": {"a": {}}}]},
    ],
)
@pytest.mark.parametrize("extra_properties", ["schema", "forbid"])
def test_nesting_costs_no_stack(wrap: Callable[[Any], Any], extra_properties: str) -> None:
    schema: Any = {"type": "string"}
    for _ in range(1500):
        schema = wrap(schema)
    spec = JsonSchema(schema, extra_properties=extra_properties)
    with limits.applied(limits.MAX_SECONDS, 10_000, limits.MAX_STATES):
        assert len(spec.program().nodes) > 6
    assert isinstance(hash(spec), int)
    assert len(repr(spec)) < 300


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
        {"if": {"$ref": "#"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"anyOf": [{"$ref": "#"}, {}], "unevaluatedProperties": False},
        {"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}]},
        {
            "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}},
        },
        chain(500, lambda ref: {"allOf": [{"$ref": ref}]}, {"anyOf": [{"$ref": "#"}]}),
    ],
)
@pytest.mark.parametrize("extra_properties", ["schema", "forbid"])
def test_cycles_in_place(schema: Any, extra_properties: str) -> None:
    with pytest.raises(SchemaError, match="same value as itself without end"):
        JsonSchema(schema, extra_properties=extra_properties).program()


def test_recursion_through_children_is_fine() -> None:
    schema = {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    program = JsonSchema(schema).program()
    assert holds(program, {"a": {"a": {}}})
    assert not holds(program, {"a": {"b": {}}})
    assert len(program.refs) == 1


def test_schemas_cannot_contain_themselves_in_place() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema
    with pytest.raises(SchemaError):
        JsonSchema(schema).program()
