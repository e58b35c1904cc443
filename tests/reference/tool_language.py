"""Which texts a tree of `constrain.tools.language` has: the set of places where a part may end.

Special tokens are their texts here.  Slow: every place is tried, arguments byte by byte.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import constrain
from constrain.errors import ConstrainError, TokenRejectedError
from constrain.tools.definitions import Tool
from constrain.tools.formats import ToolFormat
from constrain.tools.language import (
    Calls,
    Chain,
    Choice,
    Embedded,
    Free,
    Json,
    Keywords,
    Node,
    Repeat,
    Space,
    Symbols,
    Tagged,
    Text,
)
from constrain.tools.matching import Names, Status, match, skip_space
from constrain.tools.readers import ArgumentReadError, make_reader
from constrain.tools.templates import strip_spaces

_SPACE = " \t\r\n"


@cache
def bytes_vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary([bytes([one]) for one in range(256)], eos_token_ids=[256])


class Reference:
    """The language of a tree, for one format."""

    def __init__(self, form: ToolFormat, tree: Node) -> None:
        self._form = form
        self._tree = tree
        self._compiled: dict[int, Any] = {}

    def accepts(self, text: str) -> bool:
        """Whether the whole text, what the prompt has written put before it, is a message."""
        whole = self._form.prompted + text
        return len(whole) in self._ends(self._tree, whole, frozenset({0}))

    def _ends(self, node: Node, text: str, starts: frozenset[int]) -> frozenset[int]:
        if not starts:
            return starts
        if isinstance(node, Chain):
            for part in node.parts:
                starts = self._ends(part, text, starts)
            return starts
        if isinstance(node, Choice):
            return frozenset().union(*(self._ends(one, text, starts) for one in node.options))
        if isinstance(node, Repeat):
            return self._repeated(node, text, starts)
        return frozenset().union(*(self._from(node, text, at) for at in starts))

    def _repeated(self, node: Repeat, text: str, starts: frozenset[int]) -> frozenset[int]:
        found = starts if node.least == 0 else frozenset()
        count = 0
        while starts and (node.most is None or count < node.most):
            starts = self._ends(node.part, text, starts)
            count += 1
            if count >= node.least:
                starts = starts - found if node.most is None else starts
                found |= starts
        return found

    def _from(self, node: Node, text: str, at: int) -> frozenset[int]:
        if isinstance(node, Text):
            return frozenset({at + len(node.text)} if text.startswith(node.text, at) else ())
        if isinstance(node, Space):
            ends = {at}
            while at < len(text) and text[at] in _SPACE:
                at += 1
                ends.add(at)
            return frozenset(ends)
        if isinstance(node, Symbols):
            count = 0
            while at + count < len(text) and text[at + count] in node.characters:
                count += 1
            return frozenset(at + n for n in range(node.least, min(node.most, count) + 1))
        if isinstance(node, Free):
            return frozenset(
                end
                for end in range(at, len(text) + 1)
                if not any(stop in text[at:end] for stop in node.stops)
                and (text[at:end].strip(_SPACE)[:1] or "\0") not in node.first
            )
        if isinstance(node, Embedded):
            return self._spelled(node, node.spec, text, at)
        if isinstance(node, Calls):
            found: frozenset[int] = frozenset()
            for case in node.cases:
                ends = self._ends(Chain((Text(case.name), case.middle)), text, frozenset({at}))
                for place in ends:
                    for end in self._arguments(case.arguments, case.closing, text, place):
                        found |= self._ends(case.closing, text, frozenset({end}))
            return found
        raise TypeError(node)

    def _arguments(self, node: Node, closing: Chain, text: str, at: int) -> frozenset[int]:
        if isinstance(node, Json) and node.style.is_plain:
            spec = constrain.JsonSchema(node.tool.closed_parameters, extra_properties="forbid")
            return self._spelled(node, spec, text, at)
        tool = node.tool  # type: ignore[union-attr]
        found = set()
        for end in range(at, len(text) + 1):
            if self._ends(closing, text, frozenset({end})) and self._reads(
                node, tool, text, at, end
            ):
                found.add(end)
        return frozenset(found)

    def _reads(self, node: Node, tool: Tool, text: str, at: int, end: int) -> bool:
        """Whether the format's reader takes these arguments, and the tool's schema does."""
        atoms = strip_spaces(self._form.closing())
        reader = make_reader(self._form, tool, atoms)
        try:
            stopped, _ = reader.feed(text, at, True)
            after = skip_space(text, stopped)
            rest = match(atoms, text, after, Names((tool.name,)), True)
            if not reader.done or rest.status is not Status.YES or stopped > end:
                return False
            if text[stopped:end].strip():
                return False
            tool.validate(reader.arguments)
        except (ArgumentReadError, ConstrainError):
            return False
        if isinstance(node, Tagged):
            closed = "".join(getattr(one, "text", "") for one in node.tail).strip()
            count = text[at:end].count(closed)
            return node.style.values == "nested" or count == len(reader.arguments)
        return isinstance(node, (Json, Keywords))

    def _spelled(self, node: Node, spec: Any, text: str, at: int) -> frozenset[int]:
        compiled = self._compiled.get(id(node))
        if compiled is None:
            compiled = self._compiled[id(node)] = constrain.compile(spec, bytes_vocabulary())
        matcher = compiled.matcher()
        found = {at} if matcher.is_accepting else set()
        for place in range(at, len(text)):
            try:
                for byte in text[place].encode("utf-8"):
                    matcher.advance(byte)
            except TokenRejectedError:
                break
            if matcher.is_accepting:
                found.add(place + 1)
        return frozenset(found)
