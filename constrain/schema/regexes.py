"""Regexes of schemas, compiled once per process: the same few patterns occur again and again."""

from __future__ import annotations

from array import array
from functools import lru_cache

__all__ = ["content_encoding", "grammar", "named_format", "narrowed_format", "pattern"]


def _blocks(digit: str, whole: int, tails: str) -> str:
    return f"^(?:{digit}{{{whole}}})*(?:{tails})?$"


# RFC 4648 with padding, in one line, unused bits zero: what every decoder reads alike.
_BASE64 = "[A-Za-z0-9+/]"
_BASE64_URL = "[A-Za-z0-9_-]"
_BASE32 = "[A-Z2-7]"
_ENCODINGS = {
    "base64": _blocks(_BASE64, 4, f"{_BASE64}[AQgw]==|{_BASE64}{{2}}[AEIMQUYcgkosw048]="),
    "base64url": _blocks(
        _BASE64_URL, 4, f"{_BASE64_URL}[AQgw](?:==)?|{_BASE64_URL}{{2}}[AEIMQUYcgkosw048]=?"
    ),
    "base32": _blocks(
        _BASE32,
        8,
        f"{_BASE32}[AEIMQUY4]={{6}}|{_BASE32}{{3}}[AQ]={{4}}"
        f"|{_BASE32}{{4}}[ACEGIKMOQSUWY246]={{3}}|{_BASE32}{{6}}[AIQY]=",
    ),
    "base16": "^(?:[0-9A-F]{2})*$",
}


def content_encoding(name: str) -> array | None:
    """The regex program of a `contentEncoding`, or None where it is not one that is enforced."""
    text = _ENCODINGS.get(name.lower())
    return None if text is None else pattern(text)


@lru_cache(maxsize=1024)
def pattern(text: str) -> array:
    """The regex program of an ECMA-262 pattern, unanchored as `pattern` is."""
    from constrain.regex import compile_ecma

    return compile_ecma(text)


@lru_cache(maxsize=256)
def grammar(kind: str, text: str, start: str) -> array:
    """The regex program of a grammar (or pattern) that whole strings belong to.

    `kind` is "lark", "gbnf" or "regex", whose `start` does not matter.
    """
    from constrain.errors import UnsatisfiableError
    from constrain.grammar import StringGrammarBuilder, read_gbnf, read_lark, string_program
    from constrain.regex import compile_python
    from constrain.regex.program import ProgramBuilder

    if kind == "regex":
        return compile_python(text)
    builder = StringGrammarBuilder()
    read = read_lark if kind == "lark" else read_gbnf
    try:
        return string_program(builder.grammar(read(builder, text, start)))
    except UnsatisfiableError:
        nothing = ProgramBuilder()
        return nothing.finish(nothing.alt([]))


@lru_cache(maxsize=256)
def named_format(name: str, draft: str) -> array | None:
    """The regex program of a `format` in a draft, or None where nothing is known of it."""
    from constrain.regex import compile_format

    return compile_format(name, draft)


def narrowed_format(name: str, draft: str) -> str | None:
    """What of a known format is never generated although it is valid, or None."""
    from constrain.regex import NARROWED

    if name == "hostname" and draft in ("4", "6"):
        return None  # encoded names are names like any other there
    return NARROWED.get(name)
