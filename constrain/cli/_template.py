"""Prompt templates: ``{record}``, ``{schema}``, ``{outline}`` and the fields of the record.

``{name}`` is the record's field `name`, ``{a.b}`` the field `b` of its object field `a`, ``{record}``
the whole record (a text file's text, or a line ``field: value`` for each field), ``{schema}`` the JSON Schema and
``{outline}`` its shape in short; the record's own fields come first where names collide.
``{{`` and ``}}`` are braces.  Strings are inserted as they are, other values as JSON.  Python's
``str.format`` is not used: it reaches attributes of objects and reads colons as format codes.
"""

from __future__ import annotations

import json
import re
from typing import Any

from constrain.cli._errors import CliError, ExitCode

__all__ = ["Template", "TemplateFieldError"]

_PARTS = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class TemplateFieldError(ValueError):
    """A record lacks a field that the template names."""


class Template:
    """A parsed template.  Raises CliError (usage) with the column of a lone brace."""

    def __init__(self, text: str, option: str = "--prompt") -> None:
        self.text = text
        self._parts: list[tuple[bool, str]] = []  # (is a field, literal text or field name)
        end = 0
        for match in _PARTS.finditer(text):
            self._parts.append((False, text[end : match.start()]))
            end = match.end()
            if match.group() in ("{{", "}}"):
                self._parts.append((False, match.group()[0]))
            elif match.group(1):
                self._parts.append((True, match.group(1).strip()))
            else:
                raise CliError(
                    f"{option}: the brace at character {match.start() + 1} has no field name; "
                    "write {{ or }} for a brace",
                    ExitCode.USAGE,
                )
        self._parts.append((False, text[end:]))

    @property
    def fields(self) -> list[str]:
        """The names between braces, in order."""
        return [text for is_field, text in self._parts if is_field]

    def render(self, record: dict[str, Any] | str, extras: dict[str, str]) -> str:
        """The prompt of one record; `extras` are names that hold for all.  Raises TemplateFieldError for a field it lacks."""
        pieces: list[str] = []
        for is_field, text in self._parts:
            pieces.append(_lookup(text, record, extras) if is_field else text)
        return "".join(pieces)


def _lookup(name: str, record: dict[str, Any] | str, extras: dict[str, str]) -> str:
    if isinstance(record, dict) and name in record:
        return _shown(record[name])
    if name == "record":
        if isinstance(record, str):
            return record
        return "\n".join(f"{key}: {_shown(value)}" for key, value in record.items())
    if name in extras:
        return extras[name]
    value: Any = record
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            raise TemplateFieldError(f"the prompt names the field {name!r}, which the record lacks")
        value = value[part]
    return _shown(value)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
