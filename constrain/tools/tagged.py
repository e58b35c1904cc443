"""The reader of tagged arguments: strings as raw text, everything else by the schema's types.

A value ends at the first closing tag that is followed by another argument or the end of the call.
Strings are passed on as they arrive, other values when they are complete.
"""

from __future__ import annotations

import json
from typing import Any

from constrain.tools.definitions import Tool
from constrain.tools.formats import TaggedArguments, ToolFormat
from constrain.tools.matching import Names, Status, match, partial_end, skip_space
from constrain.tools.readers import (
    ArgumentReadError,
    filled,
    head_and_tail,
    read_value,
    value_types,
)
from constrain.tools.templates import Atom, Literal
from constrain.tools.values import (
    declared_names,
    item_schema,
    json_types,
    property_schema,
    to_json,
)

__all__ = ["TaggedReader"]

_CDATA = "<![CDATA["
_STRING = frozenset({"string"})
_MAX_DEPTH = 60


class TaggedReader:
    """Reads the tagged arguments of one call of `tool`."""

    def __init__(self, form: ToolFormat, tool: Tool, closing: tuple[Atom, ...]) -> None:
        style = form.arguments
        if not isinstance(style, TaggedArguments):
            raise ArgumentReadError("the format has no tagged arguments")
        self._style = style
        self._tool = tool
        self._closing = closing
        self._head, self._tail = head_and_tail(form)
        self._separator = style.separator.strip()
        self._names = Names.of((), declared_names(tool.parameters))
        self._values: dict[str, Any] = {}
        self._key: str | None = None
        self._types = _STRING
        self._schema: Any = True
        self._end = ""  # the text that ends the value
        self._begin = ""  # the text that begins one like it, for nested values
        self._streams = False
        self._parts: list[str] = []  # the value so far: all of it, or what was streamed
        self._value_begun = False
        self._searched = 0  # how much of a buffered value holds no end
        self.done = False

    @property
    def arguments(self) -> dict[str, Any]:
        return self._values

    def feed(self, text: str, at: int, final: bool) -> tuple[int, str]:
        out: list[str] = []
        while not self.done:
            before, key = at, self._key
            step = self._between if key is None else self._value
            try:
                at, piece = step(text, at, final)
            except ArgumentReadError as wrong:
                raise wrong.after(at, "".join(out)) from None
            out.append(piece)
            if at == before and key == self._key and not self.done:
                break
        return at, "".join(out)

    # -- between the arguments -----------------------------------------------------------------

    def _follows(self, text: str, at: int, final: bool, first: bool) -> tuple[Status, int, dict]:
        """Whether an argument begins here, and where its value does."""
        at = skip_space(text, at)
        if not first and self._separator:
            result = match((Literal(self._separator),), text, at, self._names, final)
            if result.status is not Status.YES:
                return result.status, 0, {}
            at = skip_space(text, result.end)
        result = match(self._head, text, at, self._names, final)
        return result.status, result.end, result.holes

    def _closes(self, text: str, at: int, final: bool) -> Status:
        at = skip_space(text, at)
        if at == len(text) and self._closing and not final:
            return Status.MORE
        return match(self._closing, text, at, Names(), final).status

    def _between(self, text: str, at: int, final: bool) -> tuple[int, str]:
        status, end, holes = self._follows(text, at, final, not self._values)
        closing = self._closes(text, at, final)
        # where any key is possible, the closing text may look like one
        if status is Status.YES and closing is not Status.YES:
            return end, self._begin_value(holes)
        if closing is Status.YES and status is not Status.MORE:
            self.done = True
            return at, "}" if self._values else "{}"
        if Status.MORE in (status, closing):
            return at, ""
        raise ArgumentReadError("expected an argument or the end of the call")

    def _begin_value(self, holes: dict[str, str]) -> str:
        key = holes["key"]
        if key in self._values:
            raise ArgumentReadError(f"the argument {key!r} occurs twice")
        self._key = key
        self._schema, self._types = value_types(self._tool, key, holes)
        self._end = filled(self._tail, key).rstrip()
        self._begin = filled(self._head, key).lstrip()
        self._streams = self._types == _STRING
        self._parts, self._searched = [], 0
        self._value_begun = not (self._style.cdata and "string" in self._types)
        lead = ", " if self._values else "{"
        return f"{lead}{to_json(key)}: " + ('"' if self._streams else "")

    # -- in a value ----------------------------------------------------------------------------

    def _value(self, text: str, at: int, final: bool) -> tuple[int, str]:
        if not self._value_begun:
            if len(text) - at < len(_CDATA) and _CDATA.startswith(text[at:]) and not final:
                return at, ""
            self._value_begun = True
            if text.startswith(_CDATA, at):
                self._types, self._end = _STRING, "]]>" + self._end
                opened = "" if self._streams else '"'
                self._streams = True
                return at + len(_CDATA), opened
        position = text.find(self._end, at + self._searched)
        while position >= 0:
            status = self._ends(text, at, position, final)
            if status is Status.YES:
                return self._finish_value(text, at, position)
            if status is Status.MORE:
                return self._keep(text, at, position)
            position = text.find(self._end, position + 1)
        return self._keep(text, at, partial_end(text, at + self._searched, self._end))

    def _ends(self, text: str, at: int, position: int, final: bool) -> Status:
        if self._style.values == "nested" and not self._streams:
            inner = text[at:position]
            if inner.count(self._begin) != inner.count(self._end):
                return Status.NO
        behind = position + len(self._end)
        follows = self._follows(text, behind, final, False)[0]
        return max(follows, self._closes(text, behind, final))

    def _keep(self, text: str, at: int, safe: int) -> tuple[int, str]:
        """No end before `safe`: pass a string on, leave anything else where it is."""
        if not self._streams:
            self._searched = safe - at
            return at, ""
        piece = text[at:safe]
        self._parts.append(piece)
        return safe, json.dumps(piece, ensure_ascii=False)[1:-1]

    def _finish_value(self, text: str, at: int, position: int) -> tuple[int, str]:
        key = self._key or ""
        raw = text[at:position]
        end = position + len(self._end)
        self._key = None
        self._searched = 0
        if self._streams:
            self._values[key] = "".join(self._parts) + raw
            return end, json.dumps(raw, ensure_ascii=False)[1:]
        if self._style.values == "nested":
            value = self._nested(raw, self._schema, self._types, key, 0)
        else:
            value = read_value(raw, self._types, key)
        self._values[key] = value
        return end, to_json(value)

    def _nested(self, text: str, schema: Any, types: frozenset[str], key: str, depth: int) -> Any:
        """A value whose members or items are tagged like arguments."""
        if depth > _MAX_DEPTH:
            raise ArgumentReadError(f"{key}: nested deeper than {_MAX_DEPTH} levels")
        names = Names()
        at = skip_space(text, 0)
        if not types & {"object", "array"} or types == _STRING:
            return read_value(text, types, key)
        members: list[tuple[str, Any]] = []
        while at < len(text):
            head = match(self._head, text, at, names, True)
            if head.status is not Status.YES:
                if not members:
                    return read_value(text, types, key)
                raise ArgumentReadError(f"{key}: expected a member, found {text[at : at + 40]!r}")
            name = head.holes["key"]
            begin, end = filled(self._head, name), filled(self._tail, name).rstrip()
            close = text.find(end, head.end)
            while close >= 0 and text.count(begin, head.end, close) != text.count(
                end, head.end, close
            ):
                close = text.find(end, close + 1)
            if close < 0:
                raise ArgumentReadError(f"{key}: {name!r} is not closed")
            root = self._tool.parameters
            is_item = name == "item" and "array" in types
            inner = item_schema(schema, root) if is_item else property_schema(schema, name, root)
            inner_types = json_types(inner, root)
            value = self._nested(text[head.end : close], inner, inner_types, name, depth + 1)
            members.append((name, value))
            at = skip_space(text, close + len(end))
        if not members:
            return [] if "object" not in types else {}
        if "array" in types and all(name == "item" for name, _ in members):
            return [value for _, value in members]
        result = dict(members)
        if len(result) != len(members):
            raise ArgumentReadError(f"{key}: a member occurs twice")
        return result
