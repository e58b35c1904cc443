"""Sets of code points: sorted tuples of interval bounds, and the sets that escapes name.

A set is a flat tuple ``(first, last, first, last, ...)`` of disjoint intervals in order that do not
touch; equal sets are equal tuples.  The sets of Unicode categories come from `unicodedata` of the
running Python.  They are computed when a pattern first needs one (about 50 ms, once per process),
the sets of ``\\w``, ``\\d`` and ``\\s`` of Python likewise (about 15 ms each).
"""

from __future__ import annotations

import sys
import unicodedata
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby

__all__ = [
    "ANY",
    "DIGITS",
    "ECMA_LINE_TERMINATORS",
    "ECMA_SPACE",
    "MAX_CODE_POINT",
    "WORD",
    "CharSet",
    "complement",
    "fold_case",
    "from_pairs",
    "from_python_class",
    "intersect",
    "property_set",
    "union",
]

CharSet = tuple[int, ...]

MAX_CODE_POINT = 0x10FFFF
ANY: CharSet = (0, MAX_CODE_POINT)
DIGITS: CharSet = (48, 57)
WORD: CharSet = (48, 57, 65, 90, 95, 95, 97, 122)
ECMA_LINE_TERMINATORS: CharSet = (10, 10, 13, 13, 0x2028, 0x2029)
_WHITE = (0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029, 0x202F, 0x202F, 0x205F, 0x205F)
ECMA_SPACE: CharSet = (9, 13, 32, 32, 0xA0, 0xA0, *_WHITE, 0x3000, 0x3000, 0xFEFF, 0xFEFF)


def from_pairs(pairs: Iterable[tuple[int, int]]) -> CharSet:
    """The union of intervals in any order."""
    flat: list[int] = []
    for first, last in sorted(pairs):
        if flat and first <= flat[-1] + 1:
            if last > flat[-1]:
                flat[-1] = last
        else:
            flat += (first, last)
    return tuple(flat)


def union(*sets: CharSet) -> CharSet:
    """Code points in any of the sets."""
    if len(sets) == 1:
        return sets[0]
    return from_pairs(pair for s in sets for pair in zip(s[::2], s[1::2]))


def complement(chars: CharSet) -> CharSet:
    """Code points not in the set."""
    flat: list[int] = []
    after = 0
    for first, last in zip(chars[::2], chars[1::2]):
        if first > after:
            flat += (after, first - 1)
        after = last + 1
    if after <= MAX_CODE_POINT:
        flat += (after, MAX_CODE_POINT)
    return tuple(flat)


def intersect(a: CharSet, b: CharSet) -> CharSet:
    """Code points in both sets."""
    return complement(union(complement(a), complement(b)))


# Planes 4 to 13 are unassigned; 15 and 16 are private, but for their last two code points.
_SCANNED = ((0, 0x40000), (0xE0000, 0xE1000))


def _runs(flags: Callable[[str], Iterable[Hashable]]) -> Iterator[tuple[Hashable, int, int]]:
    """Runs of equal flags: flag, first and last code point, over what is scanned."""
    for first, after in _SCANNED:
        codes = array("I", range(first, after)).tobytes()
        native = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
        at = first
        for flag, run in groupby(flags(codes.decode(native, "surrogatepass"))):
            length = len(list(run))
            yield flag, at, at + length - 1
            at += length


@lru_cache(maxsize=16)
def from_python_class(escape: str, ascii_only: bool = False) -> CharSet:
    """What ``\\d``, ``\\w`` or ``\\s`` (`escape` is its letter) means to the module `re`."""
    if ascii_only:
        return {"d": DIGITS, "w": WORD, "s": (9, 13, 32, 32)}[escape]
    if escape == "d":
        return _scan(str.isdecimal)
    if escape == "s":
        return _scan(str.isspace)
    return union(_scan(str.isalnum), (95, 95))


def _scan(predicate: Callable[[str], bool]) -> CharSet:
    return from_pairs((a, b) for flag, a, b in _runs(lambda text: map(predicate, text)) if flag)


# The general categories by their long names; the short ones are the keys of _categories().
_CATEGORY_NAMES = {
    "Cased_Letter": "LC",
    "Close_Punctuation": "Pe",
    "Combining_Mark": "M",
    "Connector_Punctuation": "Pc",
    "Control": "Cc",
    "Currency_Symbol": "Sc",
    "Dash_Punctuation": "Pd",
    "Decimal_Number": "Nd",
    "Enclosing_Mark": "Me",
    "Final_Punctuation": "Pf",
    "Format": "Cf",
    "Initial_Punctuation": "Pi",
    "Letter": "L",
    "Letter_Number": "Nl",
    "Line_Separator": "Zl",
    "Lowercase_Letter": "Ll",
    "Mark": "M",
    "Math_Symbol": "Sm",
    "Modifier_Letter": "Lm",
    "Modifier_Symbol": "Sk",
    "Nonspacing_Mark": "Mn",
    "Number": "N",
    "Open_Punctuation": "Ps",
    "Other": "C",
    "Other_Letter": "Lo",
    "Other_Number": "No",
    "Other_Punctuation": "Po",
    "Other_Symbol": "So",
    "Paragraph_Separator": "Zp",
    "Private_Use": "Co",
    "Punctuation": "P",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Spacing_Mark": "Mc",
    "Surrogate": "Cs",
    "Symbol": "S",
    "Titlecase_Letter": "Lt",
    "Unassigned": "Cn",
    "Uppercase_Letter": "Lu",
    "cntrl": "Cc",
    "digit": "Nd",
    "punct": "P",
}


@lru_cache(maxsize=1)
def _categories() -> dict[str, CharSet]:
    pairs: dict[str, list[tuple[int, int]]] = {}
    for name, first, last in _runs(lambda text: map(unicodedata.category, text)):
        pairs.setdefault(str(name), []).append((first, last))
    pairs["Cn"] += [(0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xFFFFE, 0xFFFFF)]
    pairs["Cn"].append((0x10FFFE, 0x10FFFF))
    pairs["Co"] += [(0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]
    short = {name: from_pairs(p) for name, p in pairs.items()}
    result = dict(short)
    for major in "CLMNPSZ":
        result[major] = union(*(s for name, s in short.items() if name[0] == major))
    result["LC"] = union(short["Lu"], short["Ll"], short["Lt"])
    return result


@lru_cache(maxsize=256)
def property_set(name: str) -> CharSet | None:
    """The set of ``\\p{name}``; None if there is no exact table for that name here."""
    key, equals, value = name.partition("=")
    if equals:
        if key not in ("General_Category", "gc"):
            return None
        value = _CATEGORY_NAMES.get(value, value)
        return _categories().get(value)
    if name == "Any":
        return ANY
    if name == "ASCII":
        return (0, 127)
    if name in ("ASCII_Hex_Digit", "AHex"):
        return (48, 57, 65, 70, 97, 102)
    if name in ("White_Space", "space"):
        return (9, 13, 32, 32, 0x85, 0x85, 0xA0, 0xA0, *_WHITE, 0x3000, 0x3000)
    if name == "Assigned":
        return complement(_categories()["Cn"])
    if name in ("Lowercase", "Lower"):
        return _scan(str.islower)
    if name in ("Uppercase", "Upper"):
        # A titlecase letter is cased, but neither upper nor lower case.
        return _scan(str.isupper)
    return _categories().get(_CATEGORY_NAMES.get(name, name))


@lru_cache(maxsize=1)
def _case_tables() -> tuple[dict[int, int], dict[int, list[int]], dict[int, tuple[int, ...]]]:
    """Lower case of what has one, its inverse, and the extra equivalences that `re` knows."""
    import _sre

    try:
        from re import _casefix as casefix  # type: ignore[attr-defined]

        extra: dict[int, tuple[int, ...]] = casefix._EXTRA_CASES
    except ImportError:  # Python 3.10
        import sre_compile

        extra = {
            c: tuple(d for d in group if d != c)
            for group in sre_compile._equivalences  # type: ignore[attr-defined]
            for c in group
        }
    lower: dict[int, int] = {}
    upper: dict[int, list[int]] = {}
    for c, low in enumerate(map(_sre.unicode_tolower, range(_SCANNED[0][1]))):
        if c != low:
            lower[c] = low
            upper.setdefault(low, []).append(c)
    return lower, upper, extra


@lru_cache(maxsize=1024)
def fold_case(chars: CharSet, ascii_only: bool = False) -> CharSet:
    """Code points that equal one of the set when case is ignored, as the module `re` does it."""
    pairs = list(zip(chars[::2], chars[1::2]))
    if ascii_only:
        for first, last in list(pairs):
            for low, high, shift in ((65, 90, 32), (97, 122, -32)):
                a, b = max(first, low), min(last, high)
                if a <= b:
                    pairs.append((a + shift, b + shift))
        return from_pairs(pairs)
    lower, upper, extra = _case_tables()
    lowered: set[int] = set()
    # Only cased code points change; large sets need not be walked.
    cased = [*lower, *upper, *extra]
    for first, last in list(pairs):
        inside = (
            range(first, last + 1)
            if last - first < 128
            else [c for c in cased if first <= c <= last]
        )
        lowered.update(lower.get(c, c) for c in inside)
    for c in list(lowered):
        lowered.update(extra.get(c, ()))
    for c in lowered:
        pairs.append((c, c))
        pairs.extend((d, d) for d in upper.get(c, ()))
    return from_pairs(pairs)
