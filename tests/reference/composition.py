"""What constraints made of constraints mean, read literally: all places where a part may end.

In the texts here a special token is one character, `special` of its id, which no part reads but
those that ask for the token.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from constrain import Choice, JsonSchema, OneOf, Regex, Repeat, Sequence, Text, Token, TokenRange
from tests.reference.program_semantics import holds

__all__ = ["accepts", "ends", "special"]

_FIRST, _LAST = 0xF0000, 0xFFFFD


def special(token_id: int) -> str:
    """What stands for a special token."""
    return chr(_FIRST + token_id)


def _has_special(text: str) -> bool:
    return any(_FIRST <= ord(char) <= _LAST for char in text)


def accepts(spec: Any, text: str) -> bool:
    """The whole text is one of the constraint."""
    return len(text) in ends(spec, text, 0)


@lru_cache(maxsize=100_000)
def ends(part: Any, text: str, begin: int) -> frozenset[int]:
    """Every `end` such that ``text[begin:end]`` is a text of the part."""
    if isinstance(part, str):
        return frozenset({begin + len(part)} if text.startswith(part, begin) else ())
    if isinstance(part, Sequence):
        places = frozenset({begin})
        for one in part.parts:
            places = _through(one, text, places)
        return places
    if isinstance(part, OneOf):
        return frozenset().union(*(ends(one, text, begin) for one in part.parts))
    if isinstance(part, Repeat):
        return _repeated(part, text, begin)
    if isinstance(part, Token):
        return ends(special(int(part.reference)), text, begin)
    if isinstance(part, TokenRange):
        ids = range(part.first, part.last + 1)
        return frozenset().union(*(ends(special(one), text, begin) for one in ids))
    whole = range(begin, len(text) + 1)
    return frozenset(end for end in whole if _is_text_of(part, text[begin:end]))


def _through(part: Any, text: str, places: frozenset[int]) -> frozenset[int]:
    return frozenset(end for place in places for end in ends(part, text, place))


def _repeated(part: Repeat, text: str, begin: int) -> frozenset[int]:
    found: set[int] = set()
    places = frozenset({begin})
    seen: set[tuple[int, frozenset[int]]] = set()
    count = 0
    while places and (part.max is None or count <= part.max):
        if count >= part.min:
            found |= places
        key = (min(count, max(part.min, 1)), places)
        if key in seen:
            break
        seen.add(key)
        if count and part.separator is not None:
            places = _through(part.separator, text, places)
        places = _through(part.part, text, places)
        count += 1
    return frozenset(found)


def _is_text_of(part: Any, text: str) -> bool:
    if isinstance(part, Text):
        return _is_free_text(part, text)
    if _has_special(text):
        return False
    if isinstance(part, Regex):
        return re.fullmatch(part.pattern, text, part.flags) is not None
    if isinstance(part, Choice):
        return text in part.options
    if isinstance(part, JsonSchema):
        try:
            value = json.loads(text)
        except ValueError:
            return False
        program = part.program()
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        if program.whitespace == "compact" and compact != text:
            return False
        return holds(program, value)
    raise TypeError(part)


def _is_free_text(part: Text, text: str) -> bool:
    if any(one in text for one in part.excluding):
        return False
    if not part.until:
        if _has_special(text):
            return False
        return part.max_chars is None or len(text) <= part.max_chars
    stops = [one if isinstance(one, str) else special(int(one.reference)) for one in part.until]
    for stop in stops:
        before = text[: len(text) - len(stop)]
        if not text.endswith(stop) or _has_special(before):
            continue
        if part.max_chars is not None and len(before) > part.max_chars:
            continue
        # No stop ends earlier.
        if not any(one in text[:-1] for one in stops):
            return True
    return False
