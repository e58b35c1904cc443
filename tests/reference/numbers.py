"""Number languages the slow, obvious way: fractions, texts and brute force.

A formula is a nested tuple: ``("true",)``, ``("false",)``, ``("int",)``, ``("lex",)``,
``("min", value, strict)``, ``("max", value, strict)``, ``("mult", value)``, ``("in", (value, ...))``,
``("not", f)``, ``("and", (f, ...))``, ``("or", (f, ...))``, ``("one", (f, ...))``; values are decimal
texts.  Membership is exact.  Whether a formula holds everywhere, or only of integers, is decided on
a grid of sample values (``SAMPLES``), which is right for constants that are multiples of 1/4 of
absolute value at most 50 and small divisors; keep formulas within that.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

Formula = tuple

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

# Multiples of 1/40 within +-61, and points beside them that are multiples of nothing.
SAMPLES = [
    Fraction(k, 40) + shift for k in range(-2440, 2441) for shift in (0, Fraction(137, 1_000_000))
]


def value_of(text: str) -> Fraction | None:
    """The value of a JSON number, None if the text is not one."""
    if not NUMBER.fullmatch(text):
        return None
    mantissa, _, exponent = text.lower().partition("e")
    return Fraction(mantissa) * Fraction(10) ** int(exponent or "0")


def is_lexical_integer(text: str) -> bool:
    """Written without fraction and exponent."""
    return re.fullmatch(r"-?[0-9]+", text) is not None


@cache
def _fraction(text: str) -> Fraction:
    value = value_of(text)
    if value is None:
        raise ValueError(f"not a number: {text!r}")
    return value


def holds(formula: Formula, value: Fraction, lexical: bool) -> bool:
    """Is the value, written lexically as an integer or not, in the language?"""
    op = formula[0]
    if op == "true":
        return True
    if op == "false":
        return False
    if op == "int":
        return value.denominator == 1
    if op == "lex":
        return lexical
    if op == "min":
        bound = _fraction(formula[1])
        return value > bound if formula[2] else value >= bound
    if op == "max":
        bound = _fraction(formula[1])
        return value < bound if formula[2] else value <= bound
    if op == "mult":
        divisor = _fraction(formula[1])
        return divisor != 0 and (value / divisor).denominator == 1
    if op == "in":
        return any(value == _fraction(text) for text in formula[1])
    if op == "not":
        return not holds(formula[1], value, lexical)
    truths = [holds(part, value, lexical) for part in formula[1]]
    if op == "and":
        return all(truths)
    if op == "or":
        return any(truths)
    if op == "one":
        return sum(truths) == 1
    raise ValueError(f"unknown operator {op!r}")


def text_in(formula: Formula, text: str) -> bool:
    """Is the text a number of the language, whatever the policy of spelling?"""
    value = value_of(text)
    return value is not None and holds(formula, value, is_lexical_integer(text))


@cache
def policy(formula: Formula, plain: bool) -> str:
    """What may be written: "free", "decimal" (no exponent) or "integer" (no fraction either)."""
    if not plain:
        return "free"
    other = [v for v in SAMPLES if holds(formula, v, False)]
    lexical = [v for v in SAMPLES if v.denominator == 1 and holds(formula, v, True)]
    integers = sum(v.denominator == 1 for v in SAMPLES)
    if len(other) == len(SAMPLES) and len(lexical) == integers:
        return "free"
    if all(v.denominator == 1 for v in other) and lexical:
        return "integer"
    return "decimal"


def spelling_allowed(text: str, mode: str) -> bool:
    """May a text be written under a policy?"""
    if mode == "free":
        return True
    if "e" in text or "E" in text:
        return False
    return mode == "decimal" or ("." not in text and text != "-0")


@cache
def texts(alphabet: str, length: int) -> tuple[tuple[str, Fraction], ...]:
    """All JSON numbers over an alphabet of at most `length` characters, with their values."""

    def grow() -> Iterator[tuple[str, Fraction]]:
        for size in range(1, length + 1):
            for letters in itertools.product(alphabet, repeat=size):
                text = "".join(letters)
                value = value_of(text)
                if value is not None:
                    yield text, value

    return tuple(grow())


def accepted(formula: Formula, plain: bool, alphabet: str, length: int) -> set[str]:
    """All admissible texts over an alphabet of at most `length` characters."""
    mode = policy(formula, plain)
    return {
        text
        for text, value in texts(alphabet, length)
        if spelling_allowed(text, mode) and holds(formula, value, is_lexical_integer(text))
    }


def viable_prefixes(formula: Formula, plain: bool, alphabet: str, length: int) -> set[str]:
    """All prefixes of the admissible texts of at most `length` characters."""
    found = accepted(formula, plain, alphabet, length)
    return {text[:end] for text in found for end in range(1, len(text) + 1)}


def notation(formula: Formula) -> str:
    """The formula in the prefix notation of the native test driver."""
    op = formula[0]
    if op in ("true", "false", "int", "lex"):
        return op
    if op in ("min", "max"):
        return f"{op} {formula[1]} {int(formula[2])}"
    if op == "mult":
        return f"mult {formula[1]}"
    if op == "in":
        return " ".join(["in", str(len(formula[1])), *formula[1]])
    if op == "not":
        return "not " + notation(formula[1])
    return " ".join([op, str(len(formula[1])), *map(notation, formula[1])])
