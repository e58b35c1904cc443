"""What constraints made of constraints mean, read literally: all places where a part may end."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from constrain import Choice, JsonSchema, OneOf, Regex, Repeat, Sequence, Text
from tests.reference.program_semantics import holds

__all__ = ["accepts", "ends"]


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
        if program.whitespace == "compact" and json.dumps(value, separators=(",", ":")) != text:
            return False
        return holds(program, value)
    if isinstance(part, Text):
        return _is_free_text(part, text)
    raise TypeError(part)


def _is_free_text(part: Text, text: str) -> bool:
    if any(one in text for one in part.excluding):
        return False
    if not part.until:
        return part.max_chars is None or len(text) <= part.max_chars
    for stop in part.until:
        if not isinstance(stop, str):
            raise TypeError(stop)
        before = text[: len(text) - len(stop)]
        if not text.endswith(stop) or (part.max_chars is not None and len(before) > part.max_chars):
            continue
        # No stop ends earlier.
        if not any(one in text[:-1] for one in part.until if isinstance(one, str)):
            return True
    return False
