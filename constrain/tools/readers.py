"""Readers of a call's arguments: text of a format in, JSON text out, piece by piece.

Each reader has ``feed(text, at, final)``, which consumes what it is sure of and returns the index
behind it and the JSON text of it; ``done`` when the arguments are complete; and ``arguments``.  All
raise `ArgumentReadError` at the first place that cannot be read.  What `feed` does not consume it
wants to see again with more text behind it.
"""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from constrain.errors import ConstrainError
from constrain.tools.definitions import Tool
from constrain.tools.formats import JsonArguments, PythonArguments, ToolFormat
from constrain.tools.matching import Names, Status, match, partial_end, skip_space
from constrain.tools.partial import JsonReader, JsonReadError
from constrain.tools.templates import Atom, Hole, Literal, split_at, strip_spaces
from constrain.tools.values import (
    ValueReadError,
    json_types,
    property_schema,
    read_python,
    read_text_value,
    to_json,
)

__all__ = ["ArgumentReadError", "ArgumentReader", "make_reader"]


class ArgumentReadError(ConstrainError):
    """Arguments that are not written as their format says.

    ``end`` and ``delta`` are what the failing `feed` had read before, as it would have returned
    them: what is read does not depend on the chunks, also where it fails.
    """

    def __init__(self, message: str) -> None:
        self.end = 0
        self.delta = ""
        super().__init__(message)

    def after(self, end: int, delta: str) -> ArgumentReadError:
        """The same error with what was read before it."""
        self.end, self.delta = end, delta
        return self


class ArgumentReader(Protocol):
    """What reads the arguments of one call."""

    done: bool

    @property
    def arguments(self) -> dict[str, Any]: ...

    def feed(self, text: str, at: int, final: bool) -> tuple[int, str]: ...


def make_reader(form: ToolFormat, tool: Tool, closing: tuple[Atom, ...]) -> ArgumentReader:
    """The reader for a call of `tool`; `closing` is what follows the arguments."""
    style = form.arguments
    if isinstance(style, JsonArguments):
        return JsonArgumentsReader() if style.is_plain else MarkedReader(style.quote)
    if isinstance(style, PythonArguments):
        return PythonReader(style, strip_spaces(closing))
    from constrain.tools.tagged import TaggedReader

    return TaggedReader(form, tool, strip_spaces(closing))


class JsonArgumentsReader:
    """A JSON object, passed on as it is written."""

    def __init__(self) -> None:
        self._reader = JsonReader()
        self._begun = False
        self.done = False

    @property
    def arguments(self) -> dict[str, Any]:
        return self._reader.value

    def feed(self, text: str, at: int, final: bool) -> tuple[int, str]:
        if not self._begun:
            at = skip_space(text, at)
            if at == len(text):
                return at, ""
            if text[at] != "{":
                error = ArgumentReadError(f"expected an object of arguments, found {text[at]!r}")
                raise error.after(at, "")
            self._begun = True
        try:
            end = self._reader.feed(text, at)
        except JsonReadError as wrong:
            end = wrong.position
            raise ArgumentReadError(str(wrong)).after(end, text[at:end]) from None
        self.done = self._reader.done
        return end, text[at:end]


class MarkedReader:
    """An object whose strings are raw text between two marks, and whose keys are bare."""

    def __init__(self, quote: str) -> None:
        self._quote = quote
        self._reader = JsonReader()
        self._stack: list[str] = []
        self._in_string = False
        self._wants_key = False
        self.done = False

    @property
    def arguments(self) -> dict[str, Any]:
        return self._reader.value

    def feed(self, text: str, at: int, final: bool) -> tuple[int, str]:
        out: list[str] = []
        while not self.done:
            before = at
            try:
                end, piece = self._string(text, at) if self._in_string else self._plain(text, at)
                self._reader.feed(piece)
            except (ArgumentReadError, JsonReadError) as wrong:
                at = skip_space(text, at)
                raise ArgumentReadError(str(wrong)).after(at, "".join(out)) from None
            at = end
            out.append(piece)
            self.done = self._reader.done
            if at == before:
                break
        return at, "".join(out)

    def _string(self, text: str, at: int) -> tuple[int, str]:
        end = text.find(self._quote, at)
        if end >= 0:
            self._in_string = False
            return end + len(self._quote), json.dumps(text[at:end], ensure_ascii=False)[1:]
        end = partial_end(text, at, self._quote)
        return end, json.dumps(text[at:end], ensure_ascii=False)[1:-1]

    def _plain(self, text: str, at: int) -> tuple[int, str]:
        at = skip_space(text, at)
        if at >= len(text):
            return at, ""
        if not self._stack and text[at] != "{":
            raise ArgumentReadError(f"expected an object of arguments, found {text[at]!r}")
        if text.startswith(self._quote, at):
            self._in_string = True
            self._wants_key = False
            return at + len(self._quote), '"'
        if self._quote.startswith(text[at:]):
            return at, ""
        char = text[at]
        if self._wants_key and char not in "},":
            end = text.find(":", at)
            bad = re.search(r"[{}\[\],\n]", text[at : end if end >= 0 else len(text)])
            if bad:
                raise ArgumentReadError("expected a key and ':'")
            if end < 0:
                return at, ""
            self._wants_key = False
            return end, json.dumps(text[at:end].strip(), ensure_ascii=False)
        if char in "{[":
            self._stack.append(char)
        elif char in "}]" and self._stack:
            self._stack.pop()
        self._wants_key = char in "{," and bool(self._stack) and self._stack[-1] == "{"
        return at + 1, ", " if char == "," else ": " if char == ":" else char


_KEYWORD = re.compile(r"([^\W\d]\w*)\s*=")
_KEYWORD_PREFIX = re.compile(r"[^\W\d]\w*\s*")


class PythonReader:
    """Python keywords; each value is passed on when it is complete."""

    def __init__(self, style: PythonArguments, closing: tuple[Atom, ...]) -> None:
        self._raw = style.strings == "raw"
        self._closing = closing
        self._values: dict[str, Any] = {}
        self._key: str | None = None
        self._scanned = 0  # how much of the value was looked through, and in which state
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self.done = False

    @property
    def arguments(self) -> dict[str, Any]:
        return self._values

    def feed(self, text: str, at: int, final: bool) -> tuple[int, str]:
        out: list[str] = []
        while not self.done:
            before = at
            try:
                step = self._keyword if self._key is None else self._value
                at, piece = step(text, at, final)
            except ArgumentReadError as wrong:
                raise wrong.after(at, "".join(out)) from None
            out.append(piece)
            if at == before and not self.done:
                break
        return at, "".join(out)

    def _keyword(self, text: str, at: int, final: bool) -> tuple[int, str]:
        start = skip_space(text, at)
        if self._values and text.startswith(",", start):
            start = skip_space(text, start + 1)
        elif self._values or not _KEYWORD_PREFIX.match(text, start):
            closing = match(self._closing, text, start, Names(), final)
            if closing.status is Status.YES:
                self.done = True
                return start, "}" if self._values else "{}"
            if closing.status is Status.MORE or (start == len(text) and not final):
                return at, ""
            raise ArgumentReadError("expected ',' or the end of the call")
        found = _KEYWORD.match(text, start)
        if not found:
            name = _KEYWORD_PREFIX.match(text, start)
            if not final and (start == len(text) or (name and name.end() == len(text))):
                return at, ""
            raise ArgumentReadError("expected a keyword and '='")
        self._key = found.group(1)
        if self._key in self._values:
            raise ArgumentReadError(f"the keyword {self._key!r} occurs twice")
        self._scanned, self._depth, self._quote, self._escaped = 0, 0, "", False
        return skip_space(text, found.end()), ""

    def _value(self, text: str, at: int, final: bool) -> tuple[int, str]:
        if at == len(text):
            return at, ""
        if self._scanned == 0 and text[at].isspace():
            return skip_space(text, at), ""
        if self._raw and text[at] in "'\"":
            end, value = self._raw_string(text, at, final)
        else:
            end = self._scan(text, at)
            value = None
            if end >= 0:
                try:
                    value = read_python(text[at:end])
                except ValueReadError as error:
                    raise ArgumentReadError(f"{self._key}: {error}") from None
        if end < 0:
            return at, ""
        lead = ", " if self._values else "{"
        key, self._key = self._key or "", None
        self._values[key] = value
        return end, f"{lead}{to_json(key)}: {to_json(value)}"

    def _scan(self, text: str, at: int) -> int:
        """The end of the value: a comma or closing bracket outside of it; -1 where none is yet."""
        position = at + self._scanned
        while position < len(text):
            char = text[position]
            if self._quote:
                if self._escaped:
                    self._escaped = False
                elif char == "\\":
                    self._escaped = True
                elif char == self._quote:
                    self._quote = ""
            elif char in "'\"":
                self._quote = char
            elif char in "([{":
                self._depth += 1
            elif self._depth:
                self._depth -= char in ")]}"
            elif char in ",)]}":
                return position
            position += 1
        self._scanned = position - at
        return -1

    def _raw_string(self, text: str, at: int, final: bool) -> tuple[int, str | None]:
        """A string without escapes: it ends at a quote followed by what may follow a value."""
        quote = text[at]
        position = text.find(quote, at + max(self._scanned, 1))
        while position >= 0:
            behind = skip_space(text, position + 1)
            status = match(self._closing, text, behind, Names(), final).status
            if status is Status.NO and text.startswith(",", behind):
                behind = skip_space(text, behind + 1)
                name = _KEYWORD_PREFIX.match(text, behind)
                if _KEYWORD.match(text, behind):
                    status = Status.YES
                elif not final and (behind == len(text) or (name and name.end() == len(text))):
                    status = Status.MORE
            if status is Status.YES:
                return position + 1, text[at + 1 : position]
            if status is Status.MORE:
                self._scanned = position - at
                return -1, None
            position = text.find(quote, position + 1)
        self._scanned = len(text) - at
        return -1, None


def head_and_tail(form: ToolFormat) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
    """The atoms of a tagged argument before and after its value."""
    return split_at(form.parameter_atoms(), "value")


def filled(atoms: tuple[Atom, ...], key: str) -> str:
    """The text of atoms whose only holes are the key."""
    return "".join(
        key if isinstance(atom, Hole) else atom.text
        for atom in atoms
        if isinstance(atom, (Hole, Literal))
    )


def value_types(tool: Tool, key: str, holes: dict[str, str]) -> tuple[Any, frozenset[str]]:
    """The schema of an argument, and the types it may have here: what the tags say counts."""
    schema = property_schema(tool.parameters, key, tool.parameters)
    types = json_types(schema, tool.parameters)
    if holes.get("string") == "true":
        types = frozenset({"string"})
    elif holes.get("string") == "false":
        types = types - {"string"} or frozenset({"number", "boolean", "null", "array", "object"})
    elif "type" in holes:
        said = "number" if holes["type"] in ("integer", "float") else holes["type"]
        types = frozenset({said})
    return schema, types


def read_value(text: str, types: frozenset[str], key: str) -> Any:
    """`read_text_value` with the key in its error."""
    try:
        return read_text_value(text, types)
    except ValueReadError as error:
        raise ArgumentReadError(f"{key}: {error}") from None
