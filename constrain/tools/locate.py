"""Taking rendered calls apart: where the parts of a probe are, and what stands between them.

A family of texts ``begin head mark tail (separator head mark tail)* end`` is known by two members:
with one mark ``before = begin head`` and ``after = tail end``, with two also
``between = tail separator head``.  Every way to cut `between` that agrees with both is the same
family, so the longest head and tail are taken.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Marks", "Span", "common_prefix", "common_suffix", "cut", "find_calls", "find_json"]

INDEX = "\ue001"  # stands for a running number in what is taken apart
KEY = "\ue002"  # stands for the key of a tagged argument


def common_prefix(left: str, right: str) -> int:
    """How many characters both begin with."""
    count = 0
    for a, b in zip(left, right):
        if a != b:
            break
        count += 1
    return count


def common_suffix(left: str, right: str) -> int:
    """How many characters both end with."""
    return common_prefix(left[::-1], right[::-1])


def cut(before: str, between: str, after: str) -> tuple[int, int]:
    """The lengths of the longest head and, of what that leaves, the longest tail."""
    head = common_suffix(before, between)
    rest = before[: len(before) - head]
    if rest.rfind("<") > rest.rfind(">"):
        # the end of a tag before the head looks like the end of one between the calls
        closed = before.find(">", len(rest))
        head = len(before) - closed - 1 if closed >= 0 else head
    tail = common_prefix(between[: len(between) - head], after)
    opened = between[:tail].rfind("<")
    if opened > between[:tail].rfind(">"):
        tail = opened  # two tags that begin alike are two tags
    return head, tail


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the text."""

    kind: str  # name, id or arguments
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The parts of one call in order."""

    spans: tuple[Span, ...]

    @property
    def start(self) -> int:
        return self.spans[0].start

    @property
    def end(self) -> int:
        return self.spans[-1].end

    def kinds(self) -> list[str]:
        return [one.kind for one in self.spans]

    def literals(self, text: str) -> list[str]:
        """What stands between the parts."""
        return [text[a.end : b.start] for a, b in zip(self.spans, self.spans[1:])]


def find_json(text: str, start: int, value: Any) -> tuple[int, int] | None:
    """Where a JSON text of exactly `value` is."""
    decoder = json.JSONDecoder()
    at = text.find("{", start)
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found, end = None, -1
        if end > 0 and found == value:
            return at, end
        at = text.find("{", at + 1)
    return None


def occurrences(text: str, word: str, start: int) -> list[int]:
    """All places of a word."""
    return [one.start() for one in re.compile(re.escape(word)).finditer(text, start)]


def find_calls(
    text: str, start: int, calls: list[tuple[str, str, tuple[int, int] | None]]
) -> list[Marks] | None:
    """The parts of each call: ``(name, id, span of its arguments)``; None where a part is missing."""
    result: list[Marks] = []
    for name, identity, arguments in calls:
        if arguments is None:
            return None
        spans = [Span("arguments", *arguments)]
        for kind, word in (("name", name), ("id", identity)):
            for at in occurrences(text, word, start):
                if not arguments[0] <= at < arguments[1]:
                    spans.append(Span(kind, at, at + len(word)))
        spans.sort(key=lambda one: one.start)
        if not any(one.kind == "name" for one in spans):
            return None
        result.append(Marks(tuple(spans)))
    return result
