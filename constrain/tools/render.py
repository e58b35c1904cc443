"""Writing calls in a format: what the parser reads back.

For tests, for few-shot prompts and for showing what a description means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from constrain.tools.errors import ToolFormatError
from constrain.tools.formats import JsonArguments, PythonArguments, TaggedArguments, ToolFormat
from constrain.tools.templates import Atom, Hole
from constrain.tools.values import to_json, type_of

__all__ = ["render_arguments", "render_message"]


def render_message(
    form: ToolFormat,
    calls: Iterable[tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str]] = (),
    *,
    text: str = "",
    reasoning: str = "",
) -> str:
    """A message as a model would write it in `form`, without the end of the message.

    Args:
        calls: name and arguments of each call, and its id where the format writes one.
        text: prose before the calls.
        reasoning: a thinking section before both.

    Raises ToolFormatError for what the format cannot write.
    """
    parts: list[str] = []
    if reasoning:
        if form.reasoning is None:
            raise ToolFormatError("it has no thinking section", field="reasoning")
        parts += [form.reasoning.begin, reasoning, form.reasoning.end]
    listed = list(calls)
    if text:
        if listed and not form.prose:
            raise ToolFormatError("calls follow no prose", field="prose")
        section = form.text
        parts += [section.begin, text, section.end] if section else [text]
    if len(listed) > 1 and not form.parallel:
        raise ToolFormatError("it has one call per message", field="parallel")
    for number, (name, arguments, *rest) in enumerate(listed):
        holes = {
            "name": name,
            "id": rest[0] if rest else f"call{number:05d}",
            "index": str(form.first_index + number),
        }
        if number == 0 and text:
            parts.append(form.after_text)
        parts.append(_write(form.opening(number == 0), holes))
        parts.append(render_arguments(form, arguments))
        parts.append(_write(form.closing(), holes))
    if listed:
        parts.append(form.end)
    whole = "".join(parts)
    return whole[len(form.prompted) :] if whole.startswith(form.prompted) else whole


def _write(atoms: tuple[Atom, ...], holes: Mapping[str, str]) -> str:
    result = ""
    for atom in atoms:
        if isinstance(atom, Hole):
            value = holes[atom.kind]
            result += json.dumps(value, ensure_ascii=False)[1:-1] if atom.json else value
        else:
            result += atom.text
    return result


def render_arguments(form: ToolFormat, arguments: Mapping[str, Any]) -> str:
    """The arguments of one call.  Raises ToolFormatError."""
    style = form.arguments
    if isinstance(style, JsonArguments):
        if style.is_plain:
            compact = style.whitespace == "compact"
            separators = (",", ":") if compact else None
            return json.dumps(dict(arguments), ensure_ascii=False, separators=separators)
        return _marked(dict(arguments), style.quote, style.sorted_keys)
    if isinstance(style, PythonArguments):
        return ", ".join(f"{key}={_python(value, style)}" for key, value in arguments.items())
    return style.separator.join(
        _tagged(form, style, key, value) for key, value in arguments.items()
    )


def _marked(value: Any, quote: str, sort: bool) -> str:
    if isinstance(value, str):
        if quote in value:
            raise ToolFormatError(f"a string cannot contain {quote!r}", field="arguments")
        return f"{quote}{value}{quote}"
    if isinstance(value, Mapping):
        keys = sorted(value) if sort else list(value)
        return "{" + ",".join(f"{key}:{_marked(value[key], quote, sort)}" for key in keys) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_marked(one, quote, sort) for one in value) + "]"
    return to_json(value)


def _python(value: Any, style: PythonArguments) -> str:
    if isinstance(value, str) and style.strings == "raw":
        return f"'{value}'"
    return repr(value)


def _tagged(form: ToolFormat, style: TaggedArguments, key: str, value: Any) -> str:
    holes = {
        "key": key,
        "value": _tagged_value(form, style, value),
        "type": type_of(value),
        "string": "true" if isinstance(value, str) else "false",
    }
    return "".join(
        holes[atom.kind] if isinstance(atom, Hole) else atom.text for atom in form.parameter_atoms()
    )


def _tagged_value(form: ToolFormat, style: TaggedArguments, value: Any) -> str:
    if isinstance(value, str):
        if style.cdata and any(char in value for char in "<&\n"):
            return f"<![CDATA[{value}]]>"
        return value
    if style.values == "python":
        return repr(value)
    if style.values == "nested" and isinstance(value, Mapping):
        return style.separator.join(_tagged(form, style, k, v) for k, v in value.items())
    if style.values == "nested" and isinstance(value, (list, tuple)):
        return style.separator.join(_tagged(form, style, "item", one) for one in value)
    return to_json(value)
