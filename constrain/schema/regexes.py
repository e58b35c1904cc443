"""Regexes of schemas, compiled once per process: the same few patterns occur again and again."""

from __future__ import annotations

from array import array
from functools import lru_cache

__all__ = ["named_format", "narrowed_format", "pattern"]


@lru_cache(maxsize=1024)
def pattern(text: str) -> array:
    """The regex program of an ECMA-262 pattern, unanchored as `pattern` is."""
    from constrain.regex import compile_ecma

    return compile_ecma(text)


@lru_cache(maxsize=256)
def named_format(name: str, draft: str) -> array | None:
    """The regex program of a `format` in a draft, or None where nothing is known of it."""
    from constrain.regex import compile_format

    return compile_format(name, draft)


def narrowed_format(name: str) -> str | None:
    """What of a known format is never generated although it is valid, or None."""
    from constrain.regex import NARROWED

    return NARROWED.get(name)
