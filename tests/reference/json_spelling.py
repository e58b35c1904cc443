"""How JSON is spelled under ``escapes="plain"`` and ``whitespace="spaced"``, slowly and obviously.

`allows` decides whether a beginning of a text can be continued, from an automaton that allows any
spelling of the same values, one text at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
ESCAPES = [
    json.dumps(chr(code), ensure_ascii=False)[1:-1].encode() for code in (*range(0x20), 0x22, 0x5C)
]


def pieces(text: bytes) -> tuple[list[bytes], bytes | None]:
    """Strings and what stands between them in turn; the string that is not at its end, or None."""
    found, at = [], 0
    while (start := text.find(b'"', at)) >= 0:
        found.append(text[at:start])
        string = STRING.match(text, start)
        if string is None:
            return found, text[start:]
        found.append(string.group())
        at = string.end()
    return [*found, text[at:]], None


def rests(string: bytes) -> list[bytes]:
    """What may end the character at the end of a string that has no end, in plain escapes.

    Empty if the string has another escape in it.
    """
    escapes = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
    if any(found.group() not in ESCAPES for found in escapes.finditer(string)):
        return []
    tail = escapes.sub(b"", string)
    if b"\\" not in tail:
        return [b""]
    begun = tail[tail.index(b"\\") :]
    return [escape[len(begun) :] for escape in ESCAPES if escape.startswith(begun)]


def blanks_fit(between: bytes, *, last: bool) -> bool:
    """One blank behind each colon and comma, none elsewhere; at the end it may be still to come."""
    if last and between[-1:] in (b",", b":"):
        between += b" "
    return re.sub(rb"([,:]) ", rb"\1", between) == re.sub(rb"\s", b"", between) and not re.search(
        rb"[,:](?! )", between
    )


def allows(text: bytes, allowed: Callable[[bytes], bool], *, spaced: bool, plain: bool) -> bool:
    """Whether some text goes on like this; `allowed` says so for any spelling."""
    found, open_string = pieces(text)
    if spaced:
        outside = found[::2]
        for number, between in enumerate(outside):
            last = open_string is None and number == len(outside) - 1
            if not blanks_fit(between, last=last):
                return False
    if not plain:
        return allowed(text)
    if any(rests(string[:-1]) != [b""] for string in found[1::2]):
        return False
    return any(
        allowed(text + rest) for rest in ([b""] if open_string is None else rests(open_string))
    )


def respelled(text: str) -> str:
    """A whole text with plain escapes."""
    found, open_string = pieces(text.encode())
    if open_string is not None:
        raise ValueError("a string has no end")
    for at in range(1, len(found), 2):
        found[at] = json.dumps(json.loads(found[at]), ensure_ascii=False).encode()
    return b"".join(found).decode()
