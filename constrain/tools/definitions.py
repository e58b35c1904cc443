"""Tools in one normal form, from everything that people have.

`Tool` is a name, a description and a JSON Schema of the arguments, and knows how to check arguments
and, where it came from something that can be called, how to call it.  `make_tools` takes a list (or
one object that holds one) of Python functions, pydantic models, dataclasses, TypedDicts, OpenAI
tool dicts (chat and Responses, function and custom), Anthropic dicts, MCP tools and LangChain
tools; libraries are recognised by the shape of their objects and never imported.

Invariants: names are unique, non-empty and printable; `parameters` is an object schema; a schema
stays local to its tool, so equal names in ``$defs`` of two tools never meet.  Arguments that a tool
does not declare are refused unless its schema asks for them, as for the constraint.

Cost: no schema is translated before arguments are first checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from constrain.errors import ConstrainError, TokenRejectedError
from constrain.tools.errors import ToolArgumentsError, ToolChoiceError, ToolError

__all__ = ["CustomInput", "Tool", "ToolChoice", "make_tools", "resolve_choice"]

_MAX_NAME = 256
# What may allow an object's properties beside ``properties``.
_OPENING = frozenset(
    {
        *("additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames"),
        *("minProperties", "required", "dependentSchemas", "dependencies", "dependentRequired"),
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "not"),
    }
)


@dataclass(frozen=True, slots=True)
class CustomInput:
    """What a custom tool takes instead of arguments: a text, free or in a language.

    ``syntax`` is "text", "lark" or "regex"; ``definition`` is the grammar or expression.
    """

    syntax: str
    definition: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool.

    ``parameters`` is a JSON Schema whose root is an object.  A custom tool has ``custom`` and takes
    one string argument, ``input``.  ``target`` is what `call` calls, ``convert`` what turns checked
    arguments into the tool's own types; both are None where there is nothing of the kind.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    strict: bool = False
    custom: CustomInput | None = None
    target: Callable[[dict[str, Any]], Any] | None = field(default=None, repr=False)
    convert: Callable[[dict[str, Any]], Any] | None = field(default=None, repr=False)
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_parameters(self.name, self.parameters)

    @property
    def closed_parameters(self) -> dict[str, Any]:
        """The schema of the arguments; without any that is declared or asked for, there are none.

        Objects that declare properties are closed by ``extra_properties="forbid"``.
        """
        schema = dict(self.parameters)
        if not schema.get("properties") and _OPENING.isdisjoint(schema):
            schema["additionalProperties"] = False
        return schema

    @property
    def schema(self) -> Any:
        """The arguments as a `JsonSchema` that forbids what is not declared; made once."""
        if "schema" not in self._cache:
            from constrain.schema.spec import JsonSchema

            try:
                self._cache["schema"] = JsonSchema(
                    self.closed_parameters,
                    extra_properties="forbid",
                    whitespace="any",
                    numbers="any",
                )
            except ConstrainError as error:
                raise ToolError(f"its parameters: {error}", tool=self.name) from error
        return self._cache["schema"]

    def validate(self, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """The arguments as a dict, checked against the schema exactly as a constraint would.

        Args:
            arguments: a mapping of JSON values, or their JSON text.

        Raises:
            ToolArgumentsError: what was expected where.
            ToolError: the tool's schema itself is malformed.
        """
        if isinstance(arguments, str):
            text = arguments
        else:
            try:
                text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise ToolArgumentsError(f"not JSON: {error}", tool=self.name) from error
        self._check_text(text, self._checker())
        value = json.loads(text)
        if self.custom is not None and self.custom.syntax != "text":
            self._check_text(value["input"], self._custom_checker())
        return value

    def _check_text(self, text: str, compiled: Any) -> None:
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolArgumentsError("a lone surrogate is not text", tool=self.name) from error
        matcher = compiled.matcher()
        for at, byte in enumerate(data):
            try:
                matcher.advance(byte)
            except TokenRejectedError as error:
                before = data[:at].decode("utf-8", "replace")[-60:]
                raise ToolArgumentsError(
                    f"expected {error.expected or 'something else'} after {before!r}, "
                    f"found {data[at : at + 20].decode('utf-8', 'replace')!r}",
                    tool=self.name,
                ) from None
        if not matcher.is_accepting:
            raise ToolArgumentsError(
                f"incomplete: expected {matcher.expected()} after {text[-60:]!r}", tool=self.name
            )

    def _checker(self) -> Any:
        if "checker" not in self._cache:
            from constrain.compile import compile

            try:
                self._cache["checker"] = compile(self.schema, _byte_vocabulary())
            except ConstrainError as error:
                raise ToolError(f"its parameters: {error}", tool=self.name) from error
        return self._cache["checker"]

    def _custom_checker(self) -> Any:
        if "custom" not in self._cache:
            import constrain

            kind = {"regex": "Regex", "lark": "Lark"}[self.custom.syntax if self.custom else ""]
            spec = getattr(constrain, kind, None)
            if spec is None or self.custom is None:
                raise ToolError(f"{kind} input cannot be checked here", tool=self.name)
            self._cache["custom"] = constrain.compile(
                spec(self.custom.definition), _byte_vocabulary()
            )
        return self._cache["custom"]

    def call(self, arguments: Mapping[str, Any] | str) -> Any:
        """Check the arguments and call the tool with them, converted into its own types.

        Raises ToolArgumentsError for arguments that do not fit, ToolError where there is nothing to
        call, and whatever the tool itself raises.
        """
        checked = self.validate(arguments)
        if self.target is None:
            raise ToolError("it was described, not given: there is nothing to call", tool=self.name)
        return self.target(checked)

    def to_openai(self) -> dict[str, Any]:
        """The tool as an OpenAI function tool, which is what chat templates take."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": json.loads(json.dumps(self.parameters)),
            },
        }


_BYTES: list[Any] = []


def _byte_vocabulary() -> Any:
    """A vocabulary whose token i is the byte i: constraints over it check texts."""
    if not _BYTES:
        from constrain.vocabulary import Vocabulary

        tokens: list[bytes | None] = [bytes([i]) for i in range(256)]
        _BYTES.append(Vocabulary([*tokens, None], eos_token_ids=[256]))
    return _BYTES[0]


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise ToolError(f"a tool needs a name, found {name!r}", tool=repr(name))
    if len(name) > _MAX_NAME:
        raise ToolError(f"a name has at most {_MAX_NAME} characters", tool=repr(name[:40]))
    if name != name.strip() or not name.isprintable():
        raise ToolError("a name is printable and has no space at its ends", tool=repr(name))


def _check_parameters(name: str, schema: object) -> None:
    if not isinstance(schema, Mapping):
        raise ToolError(f"its parameters are not a JSON Schema object: {schema!r:.60}", tool=name)
    kind = schema.get("type", "object")
    if kind != "object" and kind != ["object"]:
        raise ToolError(f"its parameters must be of type object, found type {kind!r}", tool=name)


# -- tool_choice -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether calls are possible ("none"), optional ("auto") or a must ("required"), and which."""

    mode: str
    names: tuple[str, ...]


def resolve_choice(tools: Sequence[Tool], choice: object = "auto") -> ToolChoice:
    """A tool choice in normal form.

    Args:
        tools: the tools that there are.
        choice: "auto", "required" (or Anthropic's "any"), "none", a tool's name, a list of names,
            or the dicts of OpenAI (``function``, ``custom``, ``allowed_tools``) and Anthropic.

    Raises ToolChoiceError for anything else, for a name that no tool has, and for a required call
    of no tool.
    """
    names = tuple(tool.name for tool in tools)
    mode, wanted = "required", names
    if choice is None or choice in ("auto", "none", "required", "any"):
        mode = {"None": "auto", "any": "required"}.get(str(choice), str(choice))
    elif isinstance(choice, str):
        wanted = (choice,)
    elif isinstance(choice, Mapping):
        return _mapping_choice(tools, choice)
    elif isinstance(choice, Iterable):
        wanted = tuple(choice)
    else:
        raise ToolChoiceError(f"tool_choice is not a choice: {choice!r:.80}", choice=choice)
    for name in wanted:
        if name not in names:
            known = ", ".join(map(repr, names[:20])) or "none"
            raise ToolChoiceError(
                f"tool_choice names unknown function {name!r} (there are: {known})", choice=choice
            )
    if mode == "required" and not wanted:
        raise ToolChoiceError("tool_choice requires a call, but there is no tool", choice=choice)
    return ToolChoice(mode, () if mode == "none" else tuple(dict.fromkeys(wanted)))


def _mapping_choice(tools: Sequence[Tool], choice: Mapping[str, Any]) -> ToolChoice:
    kind = choice.get("type")
    if kind in ("auto", "none", "any", "required"):
        return resolve_choice(tools, kind)
    if kind in ("function", "custom", "tool"):
        inner = choice.get(kind)
        name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name")
        if isinstance(name, str):
            return resolve_choice(tools, [name])
    if kind == "allowed_tools":
        inner = choice.get("allowed_tools", choice)
        listed = inner.get("tools") if isinstance(inner, Mapping) else None
        mode = inner.get("mode", "auto") if isinstance(inner, Mapping) else None
        if isinstance(listed, Sequence) and mode in ("auto", "required"):
            chosen: list[str] = []
            for one in listed:
                chosen.extend(_mapping_choice(tools, one).names)
            return ToolChoice(mode, resolve_choice(tools, chosen).names)
    raise ToolChoiceError(f"tool_choice is not understood: {choice!r:.120}", choice=choice)


# -- making tools ------------------------------------------------------------------------------


def make_tools(tools: object) -> tuple[Tool, ...]:
    """Tools in normal form, in the given order.

    Args:
        tools: an iterable of tool definitions of any kind, or an object with a ``tools`` list (an
            MCP ``ListToolsResult`` or its dict).

    Raises ToolError for a definition that is not understood, has no name, whose schema is not one
    of an object, and for two tools with one name.
    """
    from constrain.tools.sources import make_tool

    if isinstance(tools, Mapping) and "name" not in tools and "function" not in tools:
        tools = tools.get("tools")
    elif not isinstance(tools, (Mapping, type)) and hasattr(tools, "tools"):
        tools = tools.tools
    if isinstance(tools, (str, bytes, Mapping, type)) or not isinstance(tools, Iterable):
        raise ToolError(f"expected a list of tools, found {type(tools).__name__}", tool="tools")
    result: list[Tool] = []
    seen: set[str] = set()
    for position, source in enumerate(tools):
        tool = make_tool(source, f"tools[{position}]")
        if tool.name in seen:
            raise ToolError(f"duplicate tool name {tool.name!r}", tool=f"tools[{position}]")
        seen.add(tool.name)
        result.append(tool)
    return tuple(result)
