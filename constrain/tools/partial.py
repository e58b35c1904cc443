"""Reading JSON as it arrives: one strict, incremental reader that always knows what is certain.

`JsonReader` takes a JSON value in chunks of any size, stops exactly at its end, refuses what is not
JSON at the first wrong character, and has the value of everything that is complete so far.  A
number, literal or key that may still grow is not part of that value; a string that is still being
written is, as far as it can be decoded (never half an escape, never half a surrogate pair).

`partial_json` is the same for one text.  Cost: linear in the text, whatever the chunks.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from constrain.errors import ConstrainError

__all__ = ["JsonReadError", "JsonReader", "PartialValue", "partial_json"]

_MAX_DEPTH = 512
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_PREFIX = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE](?:[+-]?[0-9]*)?)?)?|[eE](?:[+-]?[0-9]*)?)?)?"
)
_NUMBER_CHARS = frozenset("-+.eE0123456789")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_LITERALS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_SPACE = " \t\r\n"
_HEX = frozenset("0123456789abcdefABCDEF")


class JsonReadError(ConstrainError):
    """Not JSON; `position` is the index of the wrong character in the chunk that was fed."""

    position: int = 0


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


class JsonReader:
    """One JSON value, fed in chunks.

    ``done``: the value is complete.  A number at the top level is complete only when something
    follows it or `finish` was called.  Equal keys of one object are refused.
    """

    __slots__ = ("_escape", "_key", "_literal", "_piece", "_root", "_stack", "_state", "done")

    def __init__(self) -> None:
        self.done = False
        self._root: Any = MISSING
        self._stack: list[Any] = []
        self._key: list[Any] = []  # the key of the member being read, per open object
        self._state = "value"
        self._piece: list[str] = []
        self._escape = 0  # 1: after a backslash, 2 to 5: hexadecimal digits to come, plus one
        self._literal: tuple[str, Any] = ("", None)

    def feed(self, text: str, start: int = 0) -> int:
        """Read from `start`; the index behind what belongs to the value.

        Raises JsonReadError at the first character that no JSON value has there.
        """
        at, end = start, len(text)
        try:
            while at < end and not self.done:
                at = self._step(text, at)
        except JsonReadError as error:
            error.position = at
            raise
        return at

    def _step(self, text: str, at: int) -> int:
        state = self._state
        if state in ("string", "key string"):
            return self._in_string(text, at)
        if state == "number":
            if text[at] not in _NUMBER_CHARS:
                self._end_number()
                return at
            self._piece.append(text[at])
            # long numbers are looked at when they end, so that reading them stays linear
            short = len(self._piece) <= 40
            if short and not _NUMBER_PREFIX.fullmatch("".join(self._piece)):
                raise JsonReadError(f"{''.join(self._piece)!r} begins no number")
            return at + 1
        if state == "literal":
            return self._in_literal(text, at)
        if text[at] not in _SPACE:
            self._structure(text[at])
        return at + 1

    def finish(self) -> None:
        """Nothing more follows.  Raises JsonReadError if the value is not complete."""
        if self._state == "number" and not self._stack:
            self._end_number()
        if not self.done:
            raise JsonReadError("the value is incomplete")

    @property
    def value(self) -> Any:
        """The value as far as it is certain; `MISSING` where nothing is."""
        if self._state == "string" and not self.done:
            text = self._decoded_so_far()
            if not self._stack:
                return text
            parent = self._stack[-1]
            if isinstance(parent, list):
                return self._with_tail(lambda copy: copy.append(text))
            return self._with_tail(lambda copy: copy.__setitem__(self._key[-1], text))
        return self._root

    @property
    def unfinished(self) -> tuple[str | int, ...] | None:
        """The path to what is still growing, None when the value is complete."""
        if self.done:
            return None
        path: list[str | int] = []
        keys = iter(self._key)
        for container in self._stack:
            if isinstance(container, dict):
                key = next(keys)
                if key is not None:
                    path.append(key)
            elif container is self._stack[-1]:
                if self._state in ("string", "number", "literal"):
                    path.append(len(container))
            else:
                path.append(len(container) - 1)
        return tuple(path)

    def _with_tail(self, change: Any) -> Any:
        """A copy of the root in which the innermost container was changed."""
        copies: list[Any] = [dict(c) if isinstance(c, dict) else list(c) for c in self._stack]
        keys = [key for key in self._key]
        at = 0
        for level, copy in enumerate(copies[:-1]):
            if isinstance(copy, dict):
                copy[keys[at]] = copies[level + 1]
                at += 1
            else:
                copy[-1] = copies[level + 1]
        change(copies[-1])
        return copies[0]

    # -- the states ----------------------------------------------------------------------------

    def _structure(self, char: str) -> None:
        state = self._state
        if state in ("value", "first item"):
            if char == "]" and state == "first item":
                self._close()
            else:
                self._begin_value(char)
        elif state in ("key", "first key"):
            if char == '"':
                self._state = "key string"
            elif char == "}" and state == "first key":
                self._close()
            else:
                raise JsonReadError(f"expected a key, found {char!r}")
        elif state == "colon":
            if char != ":":
                raise JsonReadError(f"expected ':', found {char!r}")
            self._state = "value"
        else:  # after a member or item
            container = self._stack[-1]
            if char == ",":
                self._state = "key" if isinstance(container, dict) else "value"
                if isinstance(container, dict):
                    self._key[-1] = None
            elif char == ("}" if isinstance(container, dict) else "]"):
                self._close()
            else:
                raise JsonReadError(f"expected ',' or the end, found {char!r}")

    def _begin_value(self, char: str) -> None:
        if char == '"':
            self._state = "string"
        elif char in "{[":
            if len(self._stack) >= _MAX_DEPTH:
                raise JsonReadError(f"nested deeper than {_MAX_DEPTH} levels")
            container: Any = {} if char == "{" else []
            self._attach(container)
            self._stack.append(container)
            if char == "{":
                self._key.append(None)
            self._state = "first key" if char == "{" else "first item"
        elif char in "-0123456789":
            self._state = "number"
            self._piece = [char]
        elif char in _LITERALS:
            self._state = "literal"
            self._literal = _LITERALS[char]
            self._piece = [char]
        else:
            raise JsonReadError(f"expected a value, found {char!r}")

    def _in_literal(self, text: str, at: int) -> int:
        word, value = self._literal
        position = len(self._piece)
        if text[at] != word[position]:
            raise JsonReadError(f"expected {word}, found {text[at]!r}")
        self._piece.append(text[at])
        if position + 1 == len(word):
            self._end_value(value)
        return at + 1

    def _in_string(self, text: str, at: int) -> int:
        if self._escape == 0:
            found = _PLAIN.match(text, at)
            if found:
                self._piece.append(found.group())
                return found.end()
        char = text[at]
        if self._escape > 1:
            if char not in _HEX:
                raise JsonReadError(f"expected a hexadecimal digit, found {char!r}")
            self._escape = self._escape - 1 if self._escape > 2 else 0
        elif self._escape == 1:
            if char not in '"\\/bfnrtu':
                raise JsonReadError(f"there is no escape \\{char}")
            self._escape = 5 if char == "u" else 0
        elif char == "\\":
            self._escape = 1
        elif char == '"':
            self._end_string()
            return at + 1
        else:
            raise JsonReadError(f"a control character in a string: {char!r}")
        self._piece.append(char)
        return at + 1

    def _end_string(self) -> None:
        value = json.loads(f'"{"".join(self._piece)}"')
        self._piece = []
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise JsonReadError("a lone surrogate escape") from None
        if self._state == "key string":
            if value in self._stack[-1]:
                raise JsonReadError(f"the key {value!r} occurs twice")
            self._key[-1] = value
            self._state = "colon"
        else:
            self._end_value(value)

    def _end_number(self) -> None:
        text = "".join(self._piece)
        if not _NUMBER.fullmatch(text):
            raise JsonReadError(f"{text[:40]!r} is not a number")
        try:
            value = json.loads(text)
        except ValueError as error:
            raise JsonReadError(str(error)) from None
        self._end_value(value)

    def _end_value(self, value: Any) -> None:
        self._attach(value)
        self._piece = []
        self._after_value()

    def _attach(self, value: Any) -> None:
        if not self._stack:
            self._root = value
        elif isinstance(self._stack[-1], list):
            self._stack[-1].append(value)
        else:
            self._stack[-1][self._key[-1]] = value

    def _close(self) -> None:
        if isinstance(self._stack.pop(), dict):
            self._key.pop()
        self._after_value()

    def _after_value(self) -> None:
        self._state = "after"
        self.done = not self._stack

    def _decoded_so_far(self) -> str:
        raw = "".join(self._piece)
        if self._escape:
            raw = raw[: raw.rfind("\\")]
        text = json.loads(f'"{raw}"')
        # the first half of a pair waits for the second
        return text[:-1] if text and "\ud800" <= text[-1] <= "\udbff" else text


@dataclass(frozen=True, slots=True)
class PartialValue:
    """What the beginning of a JSON text says for certain.

    ``value`` is `MISSING` where nothing is certain yet; ``complete`` whether it is the whole value;
    ``unfinished`` the path (keys and indices) to what is still growing, None if nothing is.
    """

    value: Any
    complete: bool
    unfinished: tuple[str | int, ...] | None


def partial_json(text: str) -> PartialValue:
    """The value of the beginning of a JSON text.

    Raises JsonReadError where `text` is the beginning of no JSON value.
    """
    reader = JsonReader()
    end = reader.feed(text)
    if text[end:].strip(_SPACE):
        raise JsonReadError(f"something follows the value: {text[end : end + 40]!r}")
    return PartialValue(reader.value, reader.done, reader.unfinished)
