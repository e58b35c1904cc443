"""Where in a JSON value the end of an unfinished JSON text stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["JsonPlace", "json_place"]

_SPACES = b" \t\r\n"
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARE = re.compile(rb"[^\s,:\]}\[{\"]+")


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """The end of a JSON text.

    ``role``: "value" (before or inside the value at `path`; the end of a number counts as inside),
    "key" (before or inside a property name of the object at `path`), "colon" (behind the name of the
    value at `path`), "next" (behind a member of the container at `path`) or "end" (behind
    everything).  ``starts``: the offsets at which the values on the way to `path` begin, the root's
    first; len(path) + 1 of them.  ``begun``: where the name or value that is being read begins; the
    end of the text where none is.
    """

    path: tuple[str | int, ...]
    role: str
    starts: tuple[int, ...]
    begun: int


class _Frame:
    __slots__ = ("index", "is_object", "key", "start")

    def __init__(self, is_object: bool, start: int) -> None:
        self.is_object = is_object
        self.start = start
        self.key = ""
        self.index = 0

    @property
    def step(self) -> str | int:
        return self.key if self.is_object else self.index


def json_place(text: bytes) -> JsonPlace:
    """The place at the end of `text`, which begins a JSON text."""
    frames: list[_Frame] = []
    at, size = 0, len(text)
    expect = "value"

    def place(role: str, start: int = size, *, inside: bool = True) -> JsonPlace:
        """`inside`: the value of the last frame's step is meant, not the frame itself."""
        path = [frame.step for frame in (frames if inside else frames[:-1])]
        starts = [frame.start for frame in frames]
        return JsonPlace(tuple(path), role, tuple([*starts, start] if inside else starts), start)

    while True:
        while at < size and text[at] in _SPACES:
            at += 1
        if at == size:
            if expect == "end":
                return JsonPlace((), "end", (0,), size)
            inside = expect in ("value", "item", "colon")
            role = {"item": "value", "name": "key", "key": "key"}.get(expect, expect)
            return place(role, inside=inside)
        byte = text[at : at + 1]
        if expect in ("value", "item") and byte in (b"{", b"["):
            frames.append(_Frame(byte == b"{", at))
            expect = "name" if byte == b"{" else "item"
            at += 1
            continue
        if byte in (b"}", b"]") and expect in ("name", "item", "next") and frames:
            frames.pop()
            expect = "next" if frames else "end"
            at += 1
            continue
        if expect == "next" and byte == b",":
            frames[-1].index += 1
            expect = "key" if frames[-1].is_object else "value"
            at += 1
            continue
        if expect == "colon" and byte == b":":
            expect = "value"
            at += 1
            continue
        found = (_STRING if byte == b'"' else _BARE).match(text, at)
        is_key = expect in ("name", "key")
        if found is None or (found.end() == size and byte != b'"'):
            return place("key", at, inside=False) if is_key else place("value", at)
        if is_key:
            frames[-1].key = _decoded(found.group())
            expect = "colon"
        else:
            expect = "next" if frames else "end"
        at = found.end()


def _decoded(text: bytes) -> str:
    import json

    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1].decode(errors="replace")
