"""Tools in one normal form, and what is refused."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
import types
from typing import Any, Optional

import pydantic
import pytest
import typing_extensions

from constrain.tools.definitions import Tool, make_tools, resolve_choice
from constrain.tools.docstrings import parse_docstring
from constrain.tools.errors import ToolArgumentsError, ToolChoiceError, ToolError

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclasses.dataclass
class Place:
    """A place.

    Args:
        city: the city's name
    """

    city: str
    code: int = 0


class Node(pydantic.BaseModel):
    """A tree."""

    children: list[Node] = []


class Record(typing_extensions.TypedDict):
    a: int
    b: typing_extensions.NotRequired[str]


def weather(city: str, unit: Unit = Unit.C, where: Optional[Place] = None) -> Any:  # noqa: UP045
    """Look at the weather.

    Args:
        city (str): The city,
            by name.
        unit: The unit.

    Returns:
        nothing that matters
    """
    return city, unit, where


def _only(source: object) -> Tool:
    (tool,) = make_tools([source])
    return tool


def test_function() -> None:
    tool = _only(weather)
    assert (tool.name, tool.description) == ("weather", "Look at the weather.")
    properties = tool.parameters["properties"]
    assert properties["city"] == {"type": "string", "description": "The city, by name."}
    assert properties["unit"]["default"] == "celsius"
    assert tool.parameters["required"] == ["city"]


def test_function_is_called_with_its_own_types() -> None:
    assert _only(weather).call(
        '{"city": "Oslo", "unit": "fahrenheit", "where": {"city": "X"}}'
    ) == (
        "Oslo",
        Unit.F,
        Place("X"),
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "expected"),
        ({"city": 1}, "a string"),
        ({"city": "Oslo", "extra": 1}, "property name"),
        ('{"city": "Oslo"', "incomplete"),
        ({"city": float("nan")}, "not JSON"),
        ({"city": "\ud800"}, "surrogate"),
    ],
)
def test_arguments_that_do_not_fit(arguments: Any, reason: str) -> None:
    with pytest.raises(ToolArgumentsError, match=reason) as caught:
        _only(weather).validate(arguments)
    assert caught.value.tool == "weather"


def test_python_types() -> None:
    assert _only(Place).description == "A place."
    assert _only(Place).parameters["properties"]["city"]["description"] == "the city's name"
    assert _only(Place).call({"city": "Oslo"}) == Place("Oslo", 0)
    assert _only(Record).parameters["required"] == ["a"]
    assert _only(Node).call({"children": [{"children": []}]}) == Node(children=[Node()])


@pytest.mark.parametrize(
    "source",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA},
        {"name": "f", "description": "d", "input_schema": SCHEMA},
        {"name": "f", "description": "d", "inputSchema": SCHEMA},
        types.SimpleNamespace(name="f", description="d", inputSchema=SCHEMA),
        types.SimpleNamespace(name="f", description="d", args_schema=SCHEMA),
        types.SimpleNamespace(name="f", description="d", parameters=SCHEMA, fn=lambda a: a),
    ],
)
def test_descriptions_of_every_kind(source: object) -> None:
    tool = _only(source)
    assert (tool.name, tool.description, tool.parameters) == ("f", "d", SCHEMA)
    assert tool.validate({"a": 1}) == {"a": 1}
    assert tool.to_openai()["function"]["parameters"] == SCHEMA


def test_object_that_can_be_invoked() -> None:
    tool = _only(
        types.SimpleNamespace(name="f", args_schema=SCHEMA, invoke=lambda given: given["a"])
    )
    assert tool.call({"a": 3}) == 3


def test_list_objects() -> None:
    listed = [{"name": "f", "inputSchema": SCHEMA}]
    assert [one.name for one in make_tools({"tools": listed})] == ["f"]
    assert [one.name for one in make_tools(types.SimpleNamespace(tools=listed))] == ["f"]


def test_custom_tool_with_a_grammar() -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[0-9]+"}}
    tool = _only({"type": "custom", "custom": {"name": "n", "format": grammar}})
    assert tool.custom is not None
    assert (tool.custom.syntax, tool.custom.definition) == ("regex", "[0-9]+")
    assert tool.validate({"input": "42"}) == {"input": "42"}
    with pytest.raises(ToolArgumentsError):
        tool.validate({"input": "x"})


def test_definitions_of_two_tools_stay_apart() -> None:
    inner: Any = {"type": "integer"}
    other: Any = {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}
    schemas = [
        {"type": "object", "properties": {"v": {"$ref": "#/$defs/I"}}, "$defs": {"I": one}}
        for one in (inner, other)
    ]
    first, second = make_tools(
        [{"name": name, "input_schema": one} for name, one in zip("ab", schemas)]
    )
    first.validate({"v": 3})
    second.validate({"v": {"k": "b"}})
    for tool, value in ((first, {"k": "b"}), (second, 3)):
        with pytest.raises(ToolArgumentsError):
            tool.validate({"v": value})


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"description": "d", "parameters": SCHEMA}, "needs a name"),
        ({"type": "function", "function": {"name": ""}}, "needs a name"),
        ({"name": "f\n", "input_schema": SCHEMA}, "printable"),
        ({"name": "f" * 300, "input_schema": SCHEMA}, "at most"),
        ({"name": "f", "input_schema": {"type": "array"}}, "of type object"),
        ({"name": "f", "input_schema": True}, "not a JSON Schema object"),
        ({"name": "f", "input_schema": {"enum": [1]}}, "of type object"),
        ({"name": "f", "input_schema": SCHEMA, "parameters": SCHEMA}, "both"),
        ({"name": "f", "type": "web_search_20250305"}, "vendor"),
        ({"name": "f", "description": 3}, "not a text"),
        ({"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": "x"}}, "syntax"),
        (lambda x: x, "without a name"),
        (int, "no model"),
        (3, "not a tool definition"),
    ],
)
def test_refused(source: object, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        make_tools([source])


def test_refused_signatures() -> None:
    def many(*items: int) -> None: ...

    def first(a: int, /) -> None: ...

    for function in (many, first):
        with pytest.raises(ToolError, match=function.__name__):
            make_tools([function])


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(ToolError, match="duplicate tool name 'x'"):
        make_tools([{"name": "x"}, {"name": "x"}])


def test_malformed_schema_names_the_tool() -> None:
    tool = _only({"name": "f", "input_schema": {"type": "object", "properties": 3}})
    with pytest.raises(ToolError, match="f: its parameters"):
        tool.validate({})


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ("auto", "auto", ("a", "b")),
        (None, "auto", ("a", "b")),
        ("none", "none", ()),
        ("required", "required", ("a", "b")),
        ("any", "required", ("a", "b")),
        ("b", "required", ("b",)),
        (["b", "a"], "required", ("b", "a")),
        ({"type": "function", "function": {"name": "a"}}, "required", ("a",)),
        ({"type": "tool", "name": "a"}, "required", ("a",)),
        ({"type": "any"}, "required", ("a", "b")),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "b"}]},
            },
            "auto",
            ("b",),
        ),
    ],
)
def test_choices(choice: object, mode: str, names: tuple[str, ...]) -> None:
    found = resolve_choice(make_tools([{"name": "a"}, {"name": "b"}]), choice)
    assert (found.mode, found.names) == (mode, names)


def test_choices_that_name_nobody() -> None:
    tools = make_tools([{"name": "w"}])
    with pytest.raises(ToolChoiceError, match="tool_choice names unknown function 'weather'"):
        resolve_choice(tools, {"type": "function", "function": {"name": "weather"}})
    for choice in ("x", ["w", "x"], {"type": "strange"}, 3):
        with pytest.raises(ToolChoiceError):
            resolve_choice(tools, choice)
    with pytest.raises(ToolChoiceError, match="no tool"):
        resolve_choice((), "required")


def test_docstring_styles() -> None:
    numpy = "Do.\n\nParameters\n----------\nx : int\n    The x.\ny, z\n    Both.\n\nReturns\n-------\nint\n"
    rest = "Do.\n\n:param int x: The x,\n    more.\n:param y: The y.\n:returns: it\n"
    assert parse_docstring(numpy) == ("Do.", {"x": "The x.", "y": "Both.", "z": "Both."})
    assert parse_docstring(rest) == ("Do.", {"x": "The x, more.", "y": "The y."})
    assert parse_docstring(None) == ("", {})


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, constrain.tools.parser, constrain.tools.inference, constrain.tools.language;"
        "import constrain.tools.chat_templates, constrain.tools.sources;"
        "heavy = {'jinja2', 'transformers', 'torch', 'pydantic', 'jsonschema'} & set(sys.modules);"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
