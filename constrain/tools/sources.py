"""Each kind of tool definition to a `Tool`.

Objects of libraries are recognised by their attributes: MCP by ``inputSchema``, LangChain by
``args_schema``, others by ``parameters``; pydantic is imported for Python types and functions only.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

from constrain.errors import ConstrainError
from constrain.tools.definitions import CustomInput, Tool
from constrain.tools.docstrings import parse_docstring
from constrain.tools.errors import ToolArgumentsError, ToolError

__all__ = ["make_tool"]

_EMPTY = {"type": "object", "properties": {}}
_CUSTOM_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def make_tool(source: object, place: str = "tool") -> Tool:
    """One tool; `place` names it in errors for as long as it has no name.

    Raises ToolError.
    """
    if isinstance(source, Tool):
        return source
    if isinstance(source, Mapping):
        return _from_mapping(source, place)
    if isinstance(source, type):
        return _from_type(source, place)
    if isinstance(getattr(source, "name", None), str):
        return _from_object(source, place)
    if callable(source):
        return _from_function(source, place)
    dump = getattr(source, "model_dump", None)
    if dump is not None:
        return _from_mapping(dump(exclude_none=True), place)
    raise ToolError(f"a {type(source).__name__} is not a tool definition", tool=place)


# -- dicts -------------------------------------------------------------------------------------


def _from_mapping(source: Mapping[str, Any], place: str) -> Tool:
    kind = source.get("type")
    if kind == "custom" and "input_schema" not in source:
        return _custom(source.get("custom", source), place)
    inner = source.get("function", source)
    if not isinstance(inner, Mapping):
        raise ToolError(f"its function is not an object: {inner!r:.60}", tool=place)
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise ToolError("a tool needs a name", tool=place)
    keys = [key for key in ("parameters", "input_schema", "inputSchema") if key in inner]
    if len(keys) > 1:
        raise ToolError(f"it has both {keys[0]} and {keys[1]}", tool=name)
    if not keys and kind not in (None, "function", "custom"):
        raise ToolError(f"a {kind!r} tool runs at its vendor and cannot be constrained", tool=name)
    schema = inner[keys[0]] if keys else _EMPTY
    return Tool(
        name,
        _description(inner.get("description"), name),
        _object_schema(schema if schema is not None else _EMPTY, name),
        strict=bool(inner.get("strict", source.get("strict", False))),
    )


def _custom(source: object, place: str) -> Tool:
    if not isinstance(source, Mapping):
        raise ToolError(f"its custom part is not an object: {source!r:.60}", tool=place)
    name = source.get("name")
    if not isinstance(name, str) or not name:
        raise ToolError("a tool needs a name", tool=place)
    form = source.get("format") or {"type": "text"}
    if not isinstance(form, Mapping) or form.get("type") not in ("text", "grammar"):
        raise ToolError(f"its format must be text or grammar, found {form!r:.80}", tool=name)
    custom = CustomInput("text")
    if form["type"] == "grammar":
        grammar = form.get("grammar", form)
        syntax = grammar.get("syntax") if isinstance(grammar, Mapping) else None
        definition = grammar.get("definition") if isinstance(grammar, Mapping) else None
        if syntax not in ("lark", "regex") or not isinstance(definition, str):
            raise ToolError("a grammar has a syntax (lark or regex) and a definition", tool=name)
        custom = CustomInput(syntax, definition)
    return Tool(name, _description(source.get("description"), name), _CUSTOM_SCHEMA, custom=custom)


def _description(value: object, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ToolError(f"its description is not a text: {value!r:.60}", tool=name)
    return inspect.cleandoc(value)


def _object_schema(schema: object, name: str) -> Mapping[str, Any]:
    """`schema` with its type said, where only ``properties`` say it."""
    if isinstance(schema, Mapping) and "type" not in schema:
        says_otherwise = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"} & set(schema)
        if not says_otherwise:
            return {"type": "object", **schema}
        if {"enum", "const"} & says_otherwise:
            raise ToolError("its parameters must be of type object", tool=name)
        target = _root(schema)
        if target.get("type", "object") != "object":
            raise ToolError(
                f"its parameters must be of type object, found type {target['type']!r}", tool=name
            )
    return schema  # type: ignore[return-value]


def _root(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a root ``$ref`` into ``$defs`` leads to, as pydantic writes for recursive models."""
    seen: set[str] = set()
    while isinstance(schema.get("$ref"), str) and schema["$ref"] not in seen:
        reference = schema["$ref"]
        seen.add(reference)
        found = re.fullmatch(r"#/(\$defs|definitions)/([^/~]+)", reference)
        target = schema.get(found[1], {}).get(found[2]) if found else None
        if not isinstance(target, Mapping):
            break
        schema = target
    return schema


# -- objects of libraries ----------------------------------------------------------------------


def _from_object(source: Any, place: str) -> Tool:
    name = source.name
    if not name:
        raise ToolError("a tool needs a name", tool=place)
    description = _description(getattr(source, "description", None), name)
    for attribute in ("inputSchema", "input_schema", "args_schema", "parameters"):
        schema = getattr(source, attribute, None)
        if schema is not None:
            break
    if schema is None:
        arguments = getattr(source, "args", None)
        if not isinstance(arguments, Mapping):
            raise ToolError(f"a {type(source).__name__} without a schema is not a tool", tool=name)
        schema = {"type": "object", "properties": arguments, "required": list(arguments)}
    convert = None
    if isinstance(schema, type):
        model = schema
        schema = _type_schema(model, name)
        convert = _type_converter(model, name)
    return Tool(
        name,
        description,
        _object_schema(schema, name),
        target=_object_target(source),
        convert=convert,
    )


def _object_target(source: Any) -> Callable[[dict[str, Any]], Any] | None:
    invoke = getattr(source, "invoke", None)
    if callable(invoke):
        return lambda arguments: invoke(arguments)
    for attribute in ("fn", "func", "function"):
        function = getattr(source, attribute, None)
        if callable(function):
            return lambda arguments, f=function: f(**arguments)  # type: ignore[misc]
    return None


# -- Python types and functions ----------------------------------------------------------------


def _from_type(source: type, place: str) -> Tool:
    is_record = (
        hasattr(source, "model_json_schema")
        or dataclasses.is_dataclass(source)
        or typing.is_typeddict(source)
        or hasattr(source, "__required_keys__")
    )
    name = source.__name__
    if not is_record:
        raise ToolError(f"the class {name} is no model, dataclass or TypedDict", tool=place)
    schema = _type_schema(source, name)
    documented = source.__dict__.get("__doc__") or ""
    if dataclasses.is_dataclass(source) and documented.startswith(f"{name}("):
        documented = ""  # the signature that dataclasses write themselves
    description, parameters = parse_docstring(documented)
    schema = _with_descriptions(schema, parameters)
    convert = _type_converter(source, name)
    return Tool(name, description, _object_schema(schema, name), target=convert, convert=convert)


def _type_schema(source: type, name: str) -> dict[str, Any]:
    from constrain.schema.python_types import schema_of_type

    try:
        schema = schema_of_type(source)
    except ConstrainError as error:
        raise ToolError(str(error), tool=name) from error
    if not isinstance(schema, dict):
        raise ToolError("its schema is not an object", tool=name)
    schema = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return schema


def _type_converter(source: type, name: str) -> Callable[[dict[str, Any]], Any]:
    def convert(arguments: dict[str, Any]) -> Any:
        import pydantic

        adapter: Any = pydantic.TypeAdapter(source)
        try:
            return adapter.validate_python(arguments)
        except pydantic.ValidationError as error:
            raise ToolArgumentsError(str(error), tool=name) from error

    return convert


def _with_descriptions(schema: dict[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not texts:
        return schema
    described = {
        key: {**value, "description": texts[key]}
        if key in texts and isinstance(value, dict) and "description" not in value
        else value
        for key, value in properties.items()
    }
    return {**schema, "properties": described}


def _from_function(source: Callable[..., Any], place: str) -> Tool:
    inner = source.func if isinstance(source, functools.partial) else source
    name = getattr(inner, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise ToolError("a function without a name is not a tool", tool=place)
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError) as error:
        raise ToolError(f"its signature cannot be read: {error}", tool=name) from error
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ToolError(f"*{parameter.name} cannot be an argument by name", tool=name)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ToolError(f"{parameter.name} is positional-only", tool=name)
    adapter = _function_adapter(source, signature, name)
    schema = adapter[0]
    description, parameters = parse_docstring(inspect.getdoc(inner))
    schema = _with_descriptions(schema, parameters)
    convert = adapter[1]
    return Tool(
        name,
        description,
        _object_schema(schema, name),
        target=lambda arguments: source(**convert(arguments)),
        convert=convert,
    )


def _function_adapter(
    source: Callable[..., Any], signature: inspect.Signature, name: str
) -> tuple[dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]]:
    """The schema of a function's parameters, and what turns arguments into their types."""
    try:
        import pydantic
        from pydantic.errors import PydanticUserError
        from pydantic.json_schema import GenerateJsonSchema
        from pydantic_core import ArgsKwargs
    except ImportError:
        raise ConstrainError(
            "a tool from a Python function needs pydantic 2: pip install 'constrain[types]'"
        ) from None

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def get_title_from_name(self, name: str) -> str:
            return name

    inner = source.func if isinstance(source, functools.partial) else source

    def collect(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        result: dict[str, Any] = {}
        for key, value in bound.arguments.items():
            if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
                result.update(value)
            else:
                result[key] = value
        return result

    try:
        hints = typing.get_type_hints(inner, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolError(f"its annotations cannot be read: {error}", tool=name) from error
    hints.pop("return", None)
    collect.__annotations__ = hints
    collect.__name__ = name
    collect.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(annotation=hints.get(key, parameter.annotation))
            for key, parameter in signature.parameters.items()
        ],
        return_annotation=inspect.Signature.empty,
    )
    try:
        make_adapter: Any = pydantic.TypeAdapter
        adapter = make_adapter(collect)
        schema = adapter.json_schema(schema_generator=Untitled)
    except (PydanticUserError, NameError, TypeError) as error:
        reason = str(error).split("\n", 1)[0]
        raise ToolError(
            f"there is no JSON Schema for its signature: {reason}", tool=name
        ) from error
    schema = {key: value for key, value in schema.items() if key != "title"}
    for key, value in schema.get("properties", {}).items():
        if isinstance(value, dict):
            # pydantic names each parameter once more as its title
            titleless = {k: v for k, v in value.items() if k != "title" or not isinstance(v, str)}
            schema["properties"][key] = titleless

    def convert(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return adapter.validate_python(ArgsKwargs((), arguments))
        except pydantic.ValidationError as error:
            raise ToolArgumentsError(str(error), tool=name) from error

    return schema, convert
