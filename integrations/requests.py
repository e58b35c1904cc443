"""Constraints as plain data: what a request over HTTP or a dict of arguments can carry.

A constraint is a mapping with exactly one *kind* and the options of that kind::

    {"json_schema": {...} or "JSON text", "whitespace": "compact"}
    {"json_object": true}
    {"regex": "[0-9]+"}
    {"choice": ["yes", "no"]}
    {"lark": "start: ...", "start": "start"}
    {"gbnf": "root ::= ...", "root": "root"}
    {"response_format": {"type": "json_schema", "json_schema": {"schema": {...}}}}
    {"tools": [...], "tool_choice": "required", "format": "hermes"}

or the JSON text of such a mapping (engines that pass scalars only), or a spec itself.  Nothing is
guessed and nothing is ignored: an unknown key is an error that lists the known ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from constrain.errors import ConstrainError

__all__ = ["KINDS", "grammar_syntax", "parse_constraint"]

_SCHEMA_OPTIONS = (
    "content",
    "draft",
    "escapes",
    "extra_properties",
    "formats",
    "numbers",
    "property_order",
    "resources",
    "whitespace",
)


_TOOL_OPTIONS = (
    "answer",
    "arguments_order",
    "escapes",
    "format",
    "parallel",
    "prompt",
    "reasoning",
    "tool_choice",
    "whitespace",
)


@dataclass(frozen=True)
class _Context:
    """What the engine adds to a request."""

    defaults: Mapping[str, Any]
    tokenizer: Any


def parse_constraint(
    data: Any, *, defaults: Mapping[str, Any] | None = None, tokenizer: Any = None
) -> Any:
    """The spec that `data` describes, or None for "no constraint".

    Args:
        data: None, a spec, a mapping as above, or the JSON text of one.
        defaults: options for JSON Schemas that the request does not give, for instance
            ``{"extra_properties": "forbid"}``.
        tokenizer: where tool calls do not name their format, it is read from this tokenizer's chat
            template.

    Raises:
        ConstrainError: the data does not describe a constraint, and what was expected; or a
            subclass where the constraint itself is malformed.
    """
    if data is None or callable(getattr(data, "program", None)):
        return data
    if isinstance(data, (str, bytes)):
        try:
            data = json.loads(data)
        except ValueError as error:
            raise ConstrainError(
                f"a constraint as text is a JSON object such as {_EXAMPLE}: {error}"
            ) from None
    if not isinstance(data, Mapping):
        raise ConstrainError(
            f"a constraint is a mapping such as {_EXAMPLE}, found {type(data).__name__}"
        )
    kinds = [kind for kind in KINDS if data.get(kind) is not None]
    if len(kinds) != 1:
        found = " and ".join(kinds) if kinds else "none of them"
        raise ConstrainError(
            f"a constraint has exactly one of {', '.join(KINDS)}; found {found}"
            + (f" (keys: {', '.join(map(repr, data))})" if not kinds else "")
        )
    kind = kinds[0]
    make, allowed = KINDS[kind]
    options = {key: value for key, value in data.items() if value is not None and key not in KINDS}
    for key in options:
        if key not in allowed:
            known = ", ".join(allowed) if allowed else "it has none"
            raise ConstrainError(f"{key!r} is not an option of {kind} (options: {known})")
    return make(data[kind], options, _Context(defaults or {}, tokenizer))


def grammar_syntax(text: str) -> str:
    """ "gbnf" or "lark", for engines whose requests carry a grammar without naming its language.

    A line that begins with ``name ::=`` is in every GBNF grammar and in no Lark grammar, so this
    is not a guess.
    """
    for line in text.splitlines():
        name, separator, _ = line.partition("::=")
        name = name.strip()
        if separator and name and name.replace("-", "").replace("_", "").isalnum():
            return "gbnf"
    return "lark"


_EXAMPLE = '{"json_schema": {...}}'


def _json_schema(value: Any, options: dict[str, Any], context: _Context) -> Any:
    from constrain.specs import JsonSchema

    return JsonSchema(value, **{**context.defaults, **options})


def _json_object(value: Any, options: dict[str, Any], context: _Context) -> Any:
    if value is not True:
        raise ConstrainError(f"json_object must be true if it is given, found {value!r}")
    return _json_schema({"type": "object"}, options, context)


def _regex(value: Any, options: dict[str, Any], context: _Context) -> Any:
    from constrain.specs import Regex

    return Regex(value)


def _choice(value: Any, options: dict[str, Any], context: _Context) -> Any:
    from constrain.specs import Choice

    return Choice(value)


def _lark(value: Any, options: dict[str, Any], context: _Context) -> Any:
    from constrain.specs import Lark

    return Lark(value, **options)


def _gbnf(value: Any, options: dict[str, Any], context: _Context) -> Any:
    from constrain.specs import Gbnf

    return Gbnf(value, **options)


def _response_format(value: Any, options: dict[str, Any], context: _Context) -> Any:
    """OpenAI's ``response_format``; ``{"type": "text"}`` is no constraint."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return _json_object(True, options, context)
    if kind == "json_schema":
        inner = value.get("json_schema", value)  # the Responses API has no inner object
        schema = inner.get("schema") if isinstance(inner, Mapping) else None
        if schema is None:
            raise ConstrainError("response_format has no json_schema.schema")
        return _json_schema(schema, options, context)
    raise ConstrainError(
        f"response_format has type {kind!r}, expected text, json_object or json_schema"
    )


def _tools(value: Any, options: dict[str, Any], context: _Context) -> Any:
    from constrain.tools.constraint import ToolCalls

    return ToolCalls(value, tokenizer=context.tokenizer, **options)


_Maker = Callable[[Any, dict[str, Any], _Context], Any]

# Each kind: what makes its spec, and the options that it takes.
KINDS: dict[str, tuple[_Maker, tuple[str, ...]]] = {
    "json_schema": (_json_schema, _SCHEMA_OPTIONS),
    "json_object": (_json_object, _SCHEMA_OPTIONS),
    "regex": (_regex, ()),
    "choice": (_choice, ()),
    "lark": (_lark, ("start",)),
    "gbnf": (_gbnf, ("root",)),
    "response_format": (_response_format, _SCHEMA_OPTIONS),
    "tools": (_tools, _TOOL_OPTIONS),
}
