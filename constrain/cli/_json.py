"""Strict JSON reading for files that users hand over, and exact rewriting of generated JSON.

Python's ``json`` reads more than JSON (NaN), forgets (the first of two equal keys) and gives up
with errors of other kinds (RecursionError, the limit on digits).  Here all of that is one typed
error that names the place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

__all__ = ["JsonInputError", "decode_utf8", "parse_json", "tidy_json"]

_BOM = b"\xef\xbb\xbf"
# The pieces of a JSON text that rewriting or searching must tell apart: whole strings first, so
# that nothing inside one is taken for structure.
_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|[ \t\r\n]+|[,:]|NaN|-?Infinity', re.DOTALL)
_MAX_DIGITS = 4000  # below the limit at which Python refuses to convert an integer


class JsonInputError(ValueError):
    """A text that is not the JSON it should be; the message is a sentence part with the place."""


def decode_utf8(data: bytes, offset: int = 0) -> str:
    """The text of UTF-8 `data`, without a byte order mark at the start of a file.

    `offset` is the position of `data` in its file, in bytes, for the error message.
    Raises JsonInputError that names the byte offset of the first byte that is not UTF-8.
    """
    if offset == 0 and data.startswith(_BOM):
        data = data[len(_BOM) :]
        offset = len(_BOM)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = offset + error.start
        hint = ""
        if place == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hint = "; it looks like UTF-16"
        raise JsonInputError(
            f"byte 0x{data[error.start]:02x} at byte offset {place} is not UTF-8{hint}"
        ) from error


def _place(text: str, position: int, line: int) -> str:
    last = text.rfind("\n", 0, position)
    return f"line {line + text.count(chr(10), 0, position)}, column {position - last}"


def parse_json(text: str, line: int = 1) -> Any:
    """The value of a JSON text whose first line is number `line` of its file.

    Raises JsonInputError with line and column for anything that RFC 8259 does not allow, and for
    an object that has a key twice (of which Python would silently keep one).
    """

    def constant(name: str) -> Any:
        found = next(m for m in _PIECES.finditer(text) if m.group() == name)
        raise JsonInputError(f"{_place(text, found.start(), line)}: {name} is not JSON")

    def integer(digits: str) -> int:
        if len(digits) > _MAX_DIGITS:
            position = max(text.find(digits), 0)
            raise JsonInputError(
                f"{_place(text, position, line)}: a number of {len(digits)} digits is too long"
            )
        return int(digits)

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                place = "" if "\n" in text.strip() else f"line {line}: "
                raise JsonInputError(f"{place}the key {key!r} occurs twice in one object")
            result[key] = value
        return result

    hook: Callable[[list[tuple[str, Any]]], dict[str, Any]] = members
    try:
        return json.loads(text, parse_constant=constant, parse_int=integer, object_pairs_hook=hook)
    except json.JSONDecodeError as error:
        raise JsonInputError(f"{_place(text, error.pos, line)}: {error.msg}") from error
    except RecursionError:
        raise JsonInputError(f"line {line}: the JSON is nested too deeply to be read") from None


def tidy_json(text: str) -> str:
    """A JSON text on one line with ``", "`` and ``": "``, strings without needless escapes.

    Numbers stay as they are spelled; going through Python values would change them (1e999 becomes
    Infinity).
    """

    def piece(match: re.Match[str]) -> str:
        found = match.group()
        if found[0] in " \t\r\n":
            return ""
        if found[0] == '"':
            return json.dumps(json.loads(found), ensure_ascii=False)
        return found + " " if found in ",:" else found

    return _PIECES.sub(piece, text)
