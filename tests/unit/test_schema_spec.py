"""The specification objects: inputs, value semantics, Python types, legacy spellings, report."""

from __future__ import annotations

import dataclasses
import enum
import json
import pickle
import subprocess
import sys
import types
from typing import Any, Literal, TypedDict, Union

import pydantic
import pytest

from constrain.errors import ConstrainError, SchemaError, UnsatisfiableError
from constrain.program import Op, Program
from constrain.schema import JsonSchema
from constrain.specs import Choice, Regex
from tests.reference.program_semantics import holds, holds_text

# -- inputs and value semantics ----------------------------------------------------------------


def test_texts_dicts_and_booleans() -> None:
    schema = {"type": "array", "items": [1, 2] and {"enum": [1, None, "é"]}}
    text = json.dumps(schema, ensure_ascii=False)
    specs = [
        JsonSchema(schema),
        JsonSchema(text),
        JsonSchema(text.encode()),
        JsonSchema(b"\xef\xbb\xbf" + text.encode()),
        JsonSchema(bytearray(text.encode())),
        JsonSchema(types.MappingProxyType(schema)),
    ]
    for spec in specs:
        assert spec == specs[0]
        assert hash(spec) == hash(specs[0])
        assert spec.schema == schema
        assert spec.program() == specs[0].program()
    assert holds(JsonSchema(True).program(), 1)
    assert not holds(JsonSchema(False).program(), 1)


def test_content_decides_equality() -> None:
    base = JsonSchema({"const": 1})
    others = [
        JsonSchema({"const": True}),
        JsonSchema({"const": "1"}),
        JsonSchema({"const": 1}, draft="7"),
        JsonSchema({"const": 1}, numbers="any"),
        JsonSchema({"const": 1}, escapes="plain"),
        JsonSchema({"const": 1}, resources={"u": {}}),
        {"const": 1},
    ]
    assert all(base != other for other in others)
    assert JsonSchema({"a": 1, "b": 2}) != JsonSchema({"b": 2, "a": 1})  # order may matter
    assert len({base, JsonSchema('{"const":1}'), JsonSchema({"const": True})}) == 2


def test_specs_cannot_be_changed() -> None:
    spec = JsonSchema({})
    with pytest.raises(AttributeError):
        spec.draft = "7"
    with pytest.raises(AttributeError):
        del spec.draft


def test_specs_and_programs_can_be_pickled() -> None:
    spec = JsonSchema(
        {"$ref": "u"}, resources={"u": {"pattern": "^a"}}, whitespace="any", draft="7"
    )
    copy = pickle.loads(pickle.dumps(spec))
    assert copy == spec
    assert copy.program() == spec.program()
    program = pickle.loads(pickle.dumps(spec.program()))
    assert program == spec.program()
    assert isinstance(program, Program)


def test_policies_reach_the_program() -> None:
    program = JsonSchema(
        {}, whitespace="compact", numbers="any", property_order="declared", escapes="plain"
    ).program()
    assert (program.whitespace, program.numbers, program.property_order, program.escapes) == (
        "compact",
        "any",
        "declared",
        "plain",
    )
    assert program.kind == "json"


def test_the_program_is_kept() -> None:
    spec = JsonSchema({"type": "string"})
    assert spec.program() is spec.program()


def test_repr_is_short_and_says_what_differs() -> None:
    assert repr(JsonSchema({"type": "null"})) == 'JsonSchema({"type":"null"})'
    assert "numbers='any'" in repr(JsonSchema({}, numbers="any"))
    assert len(repr(JsonSchema({"enum": list(range(10_000))}))) < 200


def test_formats_can_be_ignored() -> None:
    schema = {"format": "date"}
    assert not holds(JsonSchema(schema).program(), "x")
    assert holds(JsonSchema(schema, formats="ignore").program(), "x")


def test_shared_objects_are_not_multiplied() -> None:
    schema: Any = {"type": "string"}
    for _ in range(60):
        schema = {"properties": {"a": schema, "b": schema}}
    assert len(JsonSchema(schema).program().refs) == 59


# -- Python types ------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(pydantic.BaseModel):
    pet: Union[Cat, Dog] = pydantic.Field(discriminator="kind")  # noqa: UP007
    color: Color = Color.RED


class Open(pydantic.BaseModel):
    model_config = {"extra": "allow"}
    a: int


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str
    cast: list[Point]


class Node(pydantic.BaseModel):
    value: int
    children: list[Node] = []


TYPE_CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (Color, ["red"], ["green", 1]),
    (Point, [{"x": 1}, {"x": 1, "y": 2}], [{}, {"x": 1, "z": 2}, {"x": "1"}]),
    (Movie, [{"title": "a", "cast": [{"x": 1}]}], [{"title": "a"}, {"title": "a", "cast": [1]}]),
    (list[Movie], [[]], [[{}], {}]),
    (
        Owner,
        [{"pet": {"kind": "cat", "lives": 9}, "color": "blue"}],
        [{"pet": {"kind": "cat", "name": "x"}}, {"pet": {"kind": "cat", "lives": 9, "name": "x"}}],
    ),
    (Open, [{"a": 1, "b": 2}], [{"b": 2}]),
    (Node, [{"value": 1, "children": [{"value": 2}]}], [{"value": 1, "children": [{}]}]),
    (Literal["a", 3], ["a", 3], ["b", 4]),
    (Union[int, str], [1, "a"], [None, 1.5]),  # noqa: UP007
    (int | None, [1, None], ["a"]),
    (str, ["a"], [1]),
    (float, [1.5, 1], ["a"]),
    (bool, [True], [1]),
    (list[int], [[1]], [["a"]]),
    (dict[str, int], [{"any": 1}], [{"any": "x"}]),
    (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2]]),
    (Any, [1, {"a": []}], []),
    (pydantic.TypeAdapter(list[int]), [[1]], [["a"]]),
]


@pytest.mark.parametrize(("kind", "yes", "no"), TYPE_CASES, ids=lambda x: str(x)[:40])
def test_types(kind: Any, yes: list[Any], no: list[Any]) -> None:
    spec = JsonSchema(kind)
    assert spec.extra_properties == "forbid"
    for value in yes:
        assert holds(spec.program(), value), value
    for value in no:
        assert not holds(spec.program(), value), value


def test_types_can_be_left_open() -> None:
    assert holds(JsonSchema(Point, extra_properties="schema").program(), {"x": 1, "z": 2})
    assert JsonSchema({}).extra_properties == "schema"


def test_types_without_a_schema() -> None:
    class Plain:
        pass

    with pytest.raises(SchemaError, match="Plain"):
        JsonSchema(Plain)


def test_types_need_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(ConstrainError, match="pip install"):
        JsonSchema(Point)


def test_no_heavy_imports() -> None:
    code = (
        "import sys; from constrain.schema import JsonSchema; from constrain.specs import Choice;"
        "JsonSchema({'type': 'object', 'properties': {'a': {'$ref': '#'}}}).program();"
        "bad = {'pydantic', 'jsonschema', 'torch', 'transformers', 'rich'} & set(sys.modules);"
        "sys.exit(repr(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- legacy spellings --------------------------------------------------------------------------

LEGACY: list[tuple[Any, str, list[Any], list[Any]]] = [
    ({"minimum": 1, "exclusiveMinimum": True}, "exclusiveMinimum", [2], [1]),
    ({"maximum": 1, "exclusiveMaximum": True}, "exclusiveMaximum", [0], [1]),
    ({"items": [{"type": "null"}], "additionalItems": False}, "items", [[None]], [[1], [None, 1]]),
    ({"dependencies": {"a": ["b"]}}, "dependencies", [{"a": 1, "b": 1}, {}], [{"a": 1}]),
    ({"dependencies": {"a": "b"}}, "dependencies", [{"a": 1, "b": 1}, {}], [{"a": 1}]),
    ({"dependencies": {"a": {"maxProperties": 1}}}, "dependencies", [{"a": 1}], [{"a": 1, "b": 1}]),
    ({"properties": {"a": {"required": True}}}, "required", [{"a": 1}], [{}]),
    ({"properties": {"a": {"required": False}}}, "required", [{"a": 1}, {}], []),
    ({"type": "any"}, "type", [1, None, {}], []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "keyword", "yes", "no"), LEGACY, ids=lambda x: str(x)[:60])
def test_legacy_spellings(schema: Any, keyword: str, yes: list[Any], no: list[Any]) -> None:
    spec = JsonSchema(schema)
    for value in yes:
        assert holds(spec.program(), value), value
    for value in no:
        assert not holds(spec.program(), value), value
    assert keyword in [entry.keyword for entry in spec.report().of_status("surprise")]


def test_a_declared_dialect_is_read_as_declared() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}
    assert holds(JsonSchema(schema).program(), 2)
    assert [e.keyword for e in JsonSchema(schema).report().of_status("surprise")] == ["const"]


def test_unknown_dialects_are_reported() -> None:
    spec = JsonSchema({"$schema": "http://x.test/mine", "type": "null"})
    assert not holds(spec.program(), 1)
    assert "unknown dialect" in spec.report().of_status("surprise")[0].detail


# -- report ------------------------------------------------------------------------------------


def test_report() -> None:
    spec = JsonSchema(
        '{"type": "object", "title": "t", "x-mine": 1, "x-mine": 2, "properties":'
        ' {"a": {"format": "no-such-format", "minLength": 1}}}'
    )
    report = spec.report()
    found = {(e.pointer, e.keyword): e.status for e in report}
    assert found["", "type"] == "enforced"
    assert found["", "title"] == "annotation"
    assert found["", "properties"] == "enforced"
    assert found["/properties/a", "minLength"] == "enforced"
    assert found["/properties/a", "format"] == "unknown"
    statuses = [e.status for e in report if e.keyword == "x-mine"]
    assert sorted(statuses) == ["surprise", "unknown"]
    details = [e.detail for e in report.of_status("narrowed")]
    assert any("whitespace" in d for d in details)
    assert any("numbers" in d for d in details)
    assert not any("escapes" in d for d in details)
    plain = JsonSchema(spec.schema, escapes="plain", whitespace="spaced").report()
    details = [e.detail for e in plain.of_status("narrowed")]
    assert any("escapes='plain'" in d for d in details)
    assert any("whitespace='spaced'" in d for d in details)
    data = report.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["counts"]["enforced"] == 3
    text = str(report)
    assert "no-such-format" in text
    assert "x-mine" in text


def test_report_without_narrowing() -> None:
    report = JsonSchema(
        {"format": "date"}, whitespace="any", numbers="any", formats="ignore"
    ).report()
    assert [(e.keyword, e.status) for e in report] == [("format", "annotation")]
    entries = JsonSchema({"format": "email"}).report().of_status("narrowed")
    assert "format" in [e.keyword for e in entries]


# -- Regex and Choice --------------------------------------------------------------------------


def test_regex() -> None:
    spec = Regex("ab+|c")
    assert spec == Regex("ab+|c")
    assert hash(spec) == hash(Regex("ab+|c"))
    assert spec != Regex("ab+|c", 2)
    assert spec.program().kind == "text"
    assert spec.program() is spec.program()
    assert holds_text(spec.program(), "abb")
    assert not holds_text(spec.program(), "abbc")
    assert repr(spec) == "Regex(pattern='ab+|c', flags=0)"


@pytest.mark.parametrize("arguments", [(b"a",), (None,), ("a", "i"), ("a", True)])
def test_regex_arguments(arguments: tuple) -> None:
    with pytest.raises(ConstrainError):
        Regex(*arguments)


def test_choice() -> None:
    spec = Choice(["yes", "no", "yes", ""])
    assert spec.options == ("yes", "no", "")
    assert spec == Choice(("yes", "no", ""))
    assert hash(spec) == hash(Choice(iter(["yes", "no", ""])))
    program = spec.program()
    assert program.kind == "text"
    assert program.nodes[3 * program.root] == Op.STRINGS
    assert [holds_text(program, t) for t in ("yes", "", "maybe")] == [True, True, False]
    assert repr(spec) == "Choice(options=('yes', 'no', ''))"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], UnsatisfiableError),
        ("yes", ConstrainError),
        (b"yes", ConstrainError),
        (3, ConstrainError),
        (["a", 1], ConstrainError),
        ([None], ConstrainError),
        (["\ud800"], ConstrainError),
    ],
)
def test_choice_arguments(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Choice(options)
