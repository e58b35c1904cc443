"""What texts of arguments say that are not JSON: a strict reading of each spelling, by descent.

Independent of `constrain.tools` and of the core: the readers there forgive what a constraint does not
write, so that only this can say what a constraint must allow.  None: left open (a string that looks
like a number where both may stand, say).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_JSON_WORDS = {"null": None, "true": True, "false": False}
_PYTHON_WORDS = {**_JSON_WORDS, "None": None, "True": True, "False": False}
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "'": 39, '"': 34, "\\": 92}
_BLANKS = " \t\r\n"


class WrongError(Exception):
    """Not a text of the spelling."""


class Spelled:
    """A reader of values: how words, strings and keys are written."""

    def __init__(
        self, words: dict[str, Any], string: Callable[[str, int], tuple[str, int]], bare: bool
    ) -> None:
        self.words, self.string, self.bare = words, string, bare

    def value(self, text: str, at: int) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""
        for word in sorted(self.words, key=len, reverse=True):
            if text.startswith(word, at):
                return self.words[word], at + len(word)
        if text[at : at + 1] in ("[", "{"):
            return self._items(text, at)
        number = _NUMBER.match(text, at)
        if number:
            found = number.group()
            return (float(found) if re.search("[.eE]", found) else int(found)), number.end()
        return self.string(text, at)

    def _items(self, text: str, at: int) -> tuple[Any, int]:
        close = "]" if text[at] == "[" else "}"
        items: list[Any] = []
        members: dict[str, Any] = {}
        at = blanks(text, at + 1)
        if text.startswith(close, at):
            return ([] if close == "]" else {}), at + 1
        while True:
            if close == "]":
                value, at = self.value(text, at)
                items.append(value)
            else:
                key, at = self._key(text, at)
                if key in members:
                    raise WrongError("a key twice")
                members[key], at = self.value(text, blanks(text, at))
            at = blanks(text, at)
            if text.startswith(close, at):
                return (items if close == "]" else members), at + 1
            if not text.startswith(",", at):
                raise WrongError("no comma")
            at = blanks(text, at + 1)

    def _key(self, text: str, at: int) -> tuple[str, int]:
        if self.bare:
            end = text.find(":", at)
            if end <= at:
                raise WrongError("no key")
            return text[at:end], end + 1
        key, at = self.string(text, at)
        at = blanks(text, at)
        if not text.startswith(":", at):
            raise WrongError("no colon")
        return key, at + 1


def blanks(text: str, at: int) -> int:
    """Behind the blanks that begin here."""
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def json_string(text: str, at: int) -> tuple[str, int]:
    """A string of JSON."""
    if not text.startswith('"', at):
        raise WrongError("no string")
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except ValueError as error:
        raise WrongError(str(error)) from None


def python_string(text: str, at: int) -> tuple[str, int]:
    """A string of Python, with escapes that all its readers know."""
    quote, out, at = text[at : at + 1], "", at + 1
    if quote not in ("'", '"') or not quote:
        raise WrongError("no string")
    while at < len(text) and text[at] != quote:
        char = text[at]
        if char in "\n\r\0":
            raise WrongError("a line end in a string")
        if char != "\\":
            out, at = out + char, at + 1
            continue
        letter = text[at + 1 : at + 2]
        size = {"x": 2, "u": 4, "U": 8}.get(letter)
        if size:
            digits = text[at + 2 : at + 2 + size]
            if not re.fullmatch(f"[0-9a-fA-F]{{{size}}}", digits):
                raise WrongError("a bad escape")
            code, at = int(digits, 16), at + 2 + size
        else:
            code, at = _ESCAPES.get(letter, -1), at + 2
        if not 0 <= code <= 0x10FFFF:
            raise WrongError("a bad escape")
        out += chr(code)
    if at >= len(text):
        raise WrongError("a string without end")
    try:
        out = out.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise WrongError("a lone surrogate") from None
    return out, at + 1


def quoted(mark: str) -> Callable[[str, int], tuple[str, int]]:
    """Strings as they are, between two marks."""

    def read(text: str, at: int) -> tuple[str, int]:
        end = text.find(mark, at + len(mark))
        if not text.startswith(mark, at) or end < 0:
            raise WrongError("no string")
        return text[at + len(mark) : end], end + len(mark)

    return read


def marked_arguments(text: str, mark: str) -> Any:
    """An object in brackets, its keys bare; behind it a line may end."""
    value, at = Spelled(_JSON_WORDS | _PYTHON_WORDS, quoted(mark), True).value(
        text, blanks(text, 0)
    )
    if text[at:] not in ("", "\n"):
        raise WrongError("more text")
    return value


def keyword_arguments(text: str) -> dict[str, Any]:
    """Keywords of Python."""
    found: dict[str, Any] = {}
    reader = Spelled(_PYTHON_WORDS, python_string, False)
    at = 0
    while at < len(text):
        name = re.compile(r"[^\W\d]\w*=").match(text, at)
        if not name or name.group()[:-1] in found:
            raise WrongError("no keyword")
        key = name.group()[:-1]
        found[key], at = reader.value(text, blanks(text, name.end()))
        at = blanks(text, at)
        if at == len(text):
            return found
        if not text.startswith(",", at):
            raise WrongError("no comma")
        at = blanks(text, at + 1)
        if at == len(text):
            raise WrongError("a comma at the end")
    if text:
        raise WrongError("no keyword")
    return found


def tagged_arguments(
    text: str, begin: str, behind: str, end: str, schema: dict[str, Any], python: bool
) -> dict[str, Any] | None:
    """Arguments written ``begin key behind value end``; None where a string is not only that.

    Blanks are free between arguments, and around values that are no strings.
    """
    string = python_string if python else json_string
    reader = Spelled(_PYTHON_WORDS if python else _JSON_WORDS, string, False)
    found: dict[str, Any] = {}
    at, sure = 0, True
    while at < len(text):
        middle = text.find(behind, at)
        stop = text.find(end, middle + len(behind))
        if not text.startswith(begin, at) or middle < 0 or stop < 0:
            raise WrongError("no argument")
        key = text[at + len(begin) : middle]
        if key in found or key not in schema["properties"]:
            raise WrongError("no such key")
        raw = text[middle + len(behind) : stop]
        found[key], is_sure = _tagged_value(raw, reader, schema["properties"][key])
        sure = sure and is_sure
        at = blanks(text, stop + len(end))
    return found if sure else None


def _tagged_value(raw: str, reader: Spelled, schema: Any) -> tuple[Any, bool]:
    """The value, and whether there is no doubt about it."""
    lenient = Spelled(_PYTHON_WORDS, python_string, False)
    others = [one for one in (None, True, 1, 0.5, [], {}) if _typed(schema, one)]
    is_string = _typed(schema, "")
    stripped = raw.strip(_BLANKS)
    if others:
        for one in (reader, lenient):
            try:
                value, end = one.value(stripped, 0)
            except (WrongError, IndexError):
                continue
            if end == len(stripped) and not isinstance(value, str) and _typed(schema, value):
                return value, one is reader
    if not is_string:
        raise WrongError("not a value")
    # what begins like a value of another type is left open
    return raw, not others or not re.match(r"\s*[-+.0-9\[({tfnTFN]", raw)


def _typed(schema: Any, value: Any) -> bool:
    """The type of the value is one that the schema names."""
    if "enum" in schema:
        kinds = {_kind(one) for one in schema["enum"]}
        return _kind(value) in kinds
    named = schema.get("type", [])
    return _kind(value) in {
        "number" if one == "integer" else one
        for one in ([named] if isinstance(named, str) else named)
    }


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def satisfies(value: Any, schema: dict[str, Any]) -> bool:
    """By jsonschema; other properties than the declared ones are forbidden."""
    closed = {"type": "object", "additionalProperties": False, **schema}
    return jsonschema.Draft202012Validator(closed).is_valid(value)
