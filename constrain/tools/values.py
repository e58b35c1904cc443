"""Values that formats write otherwise than as JSON, read by the types that the schema allows.

A tagged value is raw text where the schema wants a string, and JSON (or a Python literal) where it
does not.  Where it allows both, text that is a value of another allowed type is that value, and
anything else is a string.  Literals of Python are read by a reader of our own, since models mix
the spellings (``True`` and ``true``) and break lines inside strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from constrain.errors import ConstrainError
from constrain.tools.partial import JsonReader, JsonReadError

__all__ = [
    "ValueReadError",
    "declared_names",
    "json_types",
    "property_schema",
    "read_python",
    "read_text_value",
]

ALL_TYPES = frozenset({"string", "number", "boolean", "null", "array", "object"})
_MAX_DEPTH = 100
_MAX_REFERENCES = 64


class ValueReadError(ConstrainError):
    """A value that is not written as its format and schema say."""


def resolve(schema: Any, root: Mapping[str, Any]) -> Any:
    """`schema` or what its local ``$ref`` leads to in `root`."""
    for _ in range(_MAX_REFERENCES):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            return schema
        reference = schema["$ref"]
        if not reference.startswith("#"):
            return True
        target: Any = root
        for part in reference[1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and part in target:
                target = target[part]
            elif isinstance(target, list) and part.isdigit() and int(part) < len(target):
                target = target[int(part)]
            else:
                return True
        schema = target
    return True


def json_types(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """The JSON types (integers are numbers) that a schema may allow; a superset where unsure."""
    schema = resolve(schema, root)
    if schema is False:
        return frozenset()
    if not isinstance(schema, Mapping) or depth > 20:
        return ALL_TYPES
    types = ALL_TYPES
    named = schema.get("type")
    if isinstance(named, str):
        named = [named]
    if isinstance(named, list):
        types = frozenset("number" if one == "integer" else str(one) for one in named) & ALL_TYPES
    if "const" in schema:
        types &= {type_of(schema["const"])}
    if isinstance(schema.get("enum"), list):
        types &= {type_of(one) for one in schema["enum"]}
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches:
            union: frozenset[str] = frozenset()
            for one in branches:
                union |= json_types(one, root, depth + 1)
            types &= union
    for one in schema.get("allOf") or ():
        types &= json_types(one, root, depth + 1)
    return types


def type_of(value: Any) -> str:
    """The JSON type of a Python value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def property_schema(schema: Any, key: str, root: Mapping[str, Any]) -> Any:
    """What a schema says of one property (True where it says nothing)."""
    schema = resolve(schema, root)
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    for keyword in ("allOf", "anyOf", "oneOf"):
        found = [property_schema(one, key, root) for one in schema.get(keyword) or ()]
        found = [one for one in found if one is not True]
        if found:
            return found[0] if len(found) == 1 else {"anyOf": found}
    for pattern, one in (schema.get("patternProperties") or {}).items():
        try:
            if re.search(pattern, key):
                return one
        except re.error:
            continue
    extra = schema.get("additionalProperties", True)
    return extra if isinstance(extra, Mapping) else True


def declared_names(parameters: Mapping[str, Any]) -> list[str] | None:
    """The names of the arguments, or None where the schema may have others."""
    open_keys = {"patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}
    if open_keys & set(parameters) or parameters.get("additionalProperties", False) is not False:
        return None
    return list(parameters.get("properties") or {})


def item_schema(schema: Any, root: Mapping[str, Any]) -> Any:
    """What a schema says of the items of an array."""
    schema = resolve(schema, root)
    items = schema.get("items", True) if isinstance(schema, Mapping) else True
    return items if isinstance(items, Mapping) else True


def read_text_value(text: str, types: frozenset[str]) -> Any:
    """The value of a tagged argument that is not only a string.

    Raises ValueReadError where the text is no value of an allowed type.
    """
    stripped = text.strip()
    value: Any = None
    read = True
    try:
        value = _read_json(stripped)
    except JsonReadError:
        try:
            value = read_python(stripped)
        except ValueReadError:
            read = False
    if read and type_of(value) in types and not ("string" in types and isinstance(value, str)):
        return value
    if "string" in types:
        return text
    wanted = " or ".join(sorted(types)) or "nothing"
    raise ValueReadError(f"expected {wanted}, found {stripped[:60]!r}")


def _read_json(text: str) -> Any:
    reader = JsonReader()
    end = reader.feed(text)
    reader.finish()
    if end < len(text):
        raise JsonReadError("something follows the value")
    return reader.value


# -- literals of Python ------------------------------------------------------------------------

_WORD = re.compile(r"[A-Za-z_]+")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"True": True, "true": True, "False": False, "false": False}
_NONE = ("None", "null")
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "b": "\b", "f": "\f",
    "v": "\v", "a": "\a", "0": "\0", "\n": "",
}  # fmt: skip
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}


def read_python(text: str) -> Any:
    """The value of a Python literal (or JSON value): str, numbers, True, None, list, tuple, dict.

    Raises ValueReadError.
    """
    value, end = _python_value(text, _skip(text, 0), 0)
    if _skip(text, end) != len(text):
        raise ValueReadError(f"something follows the value: {text[end : end + 40]!r}")
    return value


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _python_value(text: str, at: int, depth: int) -> tuple[Any, int]:
    if at >= len(text):
        raise ValueReadError("a value is missing")
    if depth > _MAX_DEPTH:
        raise ValueReadError(f"nested deeper than {_MAX_DEPTH} levels")
    char = text[at]
    if char in "'\"":
        return read_python_string(text, at)
    if char in "[(":
        return _python_items(text, at + 1, "]" if char == "[" else ")", depth)
    if char == "{":
        return _python_members(text, at + 1, depth)
    word = _WORD.match(text, at)
    if word:
        if word.group() in _WORDS:
            return _WORDS[word.group()], word.end()
        if word.group() in _NONE:
            return None, word.end()
        raise ValueReadError(f"{word.group()!r} is not a value")
    number = _NUMBER.match(text, at)
    if not number:
        raise ValueReadError(f"expected a value, found {text[at : at + 20]!r}")
    digits = number.group()
    try:
        value: Any = float(digits) if re.search(r"[.eE]", digits) else int(digits)
    except ValueError as error:
        raise ValueReadError(str(error)) from None
    return value, number.end()


def _python_items(text: str, at: int, close: str, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = _skip(text, at)
    while not text.startswith(close, at):
        value, at = _python_value(text, at, depth + 1)
        items.append(value)
        at = _skip(text, at)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith(close, at):
            raise ValueReadError(f"expected ',' or {close!r}, found {text[at : at + 20]!r}")
    return items, at + 1


def _python_members(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    at = _skip(text, at)
    while not text.startswith("}", at):
        key, at = _python_value(text, at, depth + 1)
        if not isinstance(key, str):
            raise ValueReadError(f"a key must be a string, found {key!r}")
        if key in members:
            raise ValueReadError(f"the key {key!r} occurs twice")
        at = _skip(text, at)
        if not text.startswith(":", at):
            raise ValueReadError(f"expected ':' after {key!r}")
        members[key], at = _python_value(text, _skip(text, at + 1), depth + 1)
        at = _skip(text, at)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith("}", at):
            raise ValueReadError(f"expected ',' or '}}', found {text[at : at + 20]!r}")
    return members, at + 1


def read_python_string(text: str, at: int) -> tuple[str, int]:
    """The string literal that begins at `at`, and the index behind it."""
    quote = text[at]
    at += 1
    parts: list[str] = []
    while at < len(text):
        char = text[at]
        if char == quote:
            value = "".join(parts)
            try:
                # JSON's spelling of characters beyond the BMP: two escapes
                value = value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                raise ValueReadError("a lone surrogate escape") from None
            return value, at + 1
        if char != "\\" or at + 1 >= len(text):
            parts.append(char)
            at += 1
            continue
        escape = text[at + 1]
        if escape in _HEX_ESCAPES:
            digits = text[at + 2 : at + 2 + _HEX_ESCAPES[escape]]
            if len(digits) == _HEX_ESCAPES[escape] and all(
                c in "0123456789abcdefABCDEF" for c in digits
            ):
                code = int(digits, 16)
                if code > 0x10FFFF:
                    raise ValueReadError(f"no character \\{escape}{digits}")
                parts.append(chr(code))
                at += 2 + len(digits)
                continue
        parts.append(_ESCAPES.get(escape, "\\" + escape))
        at += 2
    raise ValueReadError("a string without end")


def to_json(value: Any) -> str:
    """Compact and readable JSON, characters as they are; numbers beyond floats as one of them."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        pass
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(k)}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    return "1e999" if value > 0 else "-1e999"
