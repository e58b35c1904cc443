"""Internationalised host names as a regular language: a part of RFC 5890 to 5893.

A label is valid if its encoded form is, which no regular language can say exactly.  What is
accepted here is always valid:

* code points that RFC 5892 derives to be PVALID from the tables of `unicodedata`, without those
  that could make a label differ from its normal form (combining marks, but for viramas);
* the contextual ones where their rule holds (RFC 5892, appendix A), scripts being taken as the
  ranges of letters that every version of Unicode has had;
* labels so short that the encoded form cannot exceed 63 characters, whatever they contain;
* domain names all of whose labels satisfy the rule of RFC 5893 if any of them is right to left.

Cost: half a second once, to look at every code point.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from constrain.regex.charsets import CharSet, from_pairs

__all__ = ["domain_pattern"]

# The exceptions of RFC 5892, section 2.6.
_VALID = {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007}
_CONTEXTUAL = {0xB7, 0x375, 0x5F3, 0x5F4, 0x30FB, 0x200C, 0x200D, *range(0x660, 0x66A)} | {
    *range(0x6F0, 0x6FA)
}
_DISALLOWED = {0x640, 0x7FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B}
_OLD_HANGUL = ((0x1100, 0x11FF), (0xA960, 0xA97C), (0xD7B0, 0xD7FB))
# Sections 2.7 and 2.13: blocks of symbols, and ignorable code points that are letters or marks.
_IGNORABLE = (
    (0x20D0, 0x20FF),
    (0x1D100, 0x1D1FF),
    (0x1D200, 0x1D24F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)
_LETTER_DIGITS = frozenset(("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"))

# Letters of these scripts, for the contextual rules: fewer than there are, never others.
_GREEK = r"\u{3AC}-\u{3CE}"
_HEBREW = r"\u{5D0}-\u{5EA}"
_KANA_OR_HAN = r"\u{3041}-\u{3096}\u{30A1}-\u{30FA}\u{4E00}-\u{9FA5}"

# An encoded label is "xn--", the ASCII characters, a hyphen, and for every other code point the
# digits of a number: at most six digits for nine code points of any kind; below U+0800, the numbers
# of 14 code points add up to less than 14 * 0x800 + 14 * 15, so that only one of them can have five
# digits and the others have four at most.  Both leave less than 59 characters.
_SHORT = 9
_LONGER = 14
_LOW = 0x7FF


def _stable(char: str) -> bool:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return folded == char


@lru_cache(maxsize=1)
def _valid_by_direction() -> dict[str, CharSet]:
    """PVALID code points beyond ASCII that keep a label normal, by bidirectional class."""
    composing = set()
    for c in range(0x80, 0x30000):
        decomposition = unicodedata.decomposition(chr(c)).split()
        if len(decomposition) == 2 and not decomposition[0].startswith("<"):
            composing.add(int(decomposition[1], 16))
    refused = set(_DISALLOWED) | _CONTEXTUAL | composing
    for first, last in (*_OLD_HANGUL, *_IGNORABLE):
        refused.update(range(first, last + 1))
    found: dict[str, list[tuple[int, int]]] = {}
    for c in range(0x80, 0x323B0):
        if c in refused:
            continue
        char = chr(c)
        if c not in _VALID and (
            unicodedata.category(char) not in _LETTER_DIGITS or not _stable(char)
        ):
            continue
        order = unicodedata.combining(char)
        name = unicodedata.bidirectional(char)
        if order == 9:
            name = "virama" if name == "NSM" else f"virama {name}"
        elif order != 0:
            continue
        elif unicodedata.category(char)[0] == "M":
            name = f"mark {name}"  # a label does not begin with a mark
        found.setdefault(name, []).append((c, c))
    return {name: from_pairs(pairs) for name, pairs in found.items()}


def _text(chars: CharSet) -> str:
    return "".join(rf"\u{{{a:X}}}-\u{{{b:X}}}" for a, b in zip(chars[::2], chars[1::2]))


@lru_cache(maxsize=1)
def domain_pattern(ascii_label: str) -> str:
    """The pattern of a domain name, given the one of an ASCII label.  Ends with the text."""
    sets = _valid_by_direction()

    def group(*names: str) -> str:
        return "".join(_text(sets[name]) for name in names if name in sets)

    left = group("L")
    left_marks = group("mark L", "mark NSM", "mark ON", "virama", "virama L")
    right = group("R", "AL")
    right_marks = group("mark NSM", "virama")
    virama = group("virama", "virama L")

    # Contextual code points, each with its rule.
    middle_dot = r"(?<=l)\u{B7}(?=l)"
    keraia = rf"\u{{375}}(?=[{_GREEK}])"
    joiners = rf"(?<=[{virama}])[\u{{200C}}\u{{200D}}]"
    katakana_dot = r"\u{30FB}"
    geresh = rf"(?<=[{_HEBREW}])[\u{{5F3}}\u{{5F4}}]"

    def bounded(first: str, inner: str, last: str) -> str:
        """Labels within the bounds of length; `inner` is any code point but the ends."""
        body = f"(?:{first})(?:(?:{inner})*(?:{last}))?"
        stop = r"(?=[.\u{3002}\u{FF0E}\u{FF61}]|$)"
        dot = r".\u{3002}\u{FF0E}\u{FF61}"
        lengths = (
            rf"(?=[^{dot}]{{1,{_SHORT}}}{stop}|[\u{{0}}-\-\/-\u{{{_LOW:X}}}]{{1,{_LONGER}}}{stop})"
        )
        return f"(?!..--){lengths}{body}"

    kana = rf"(?=[^.\u{{3002}}\u{{FF0E}}\u{{FF61}}]*[{_KANA_OR_HAN}])"
    contextual = f"{middle_dot}|{keraia}|{joiners}"
    # Left to right, beginning with a letter: valid beside any label, if it does not end with a
    # hyphen (it may not anyway) and its directions are L, EN, ES and NSM only.
    first = f"[a-z{left}]|{keraia}"
    inner = f"[a-z0-9{left}{left_marks}-]|{contextual}"
    last = f"[a-z0-9{left}{left_marks}]|{joiners}"
    left_label = bounded(first, inner, last)
    with_dot = bounded(
        f"[a-z{left}]|{katakana_dot}", f"{inner}|{katakana_dot}", f"{last}|{katakana_dot}"
    )
    # Beginning with a digit or a dot of direction ON: only where no label is right to left.
    plain_label = bounded(f"[a-z0-9{left}]|{keraia}", inner, last)
    plain = rf"(?:{ascii_label}|{plain_label}|{kana}{with_dot})"
    # Right to left: letters, and digits of one kind only.
    right_first = f"[{right}]"
    european = r"0-9\u{6F0}-\u{6F9}"
    arabic = r"\u{660}-\u{669}"

    def right_label(digits: str) -> str:
        return bounded(
            right_first,
            f"[{right}{right_marks}{digits}-]|{geresh}",
            f"[{right}{digits}]|{geresh}",
        )

    right_labels = f"{right_label(european)}|{right_label(arabic)}"
    ascii_letter_first = f"(?=[A-Za-z]){ascii_label}"
    bidirectional = f"(?:{ascii_letter_first}|{left_label}|{right_labels})"
    dot = r"[.\u{3002}\u{FF0E}\u{FF61}]"
    extended = r"(?:[\u{6F0}-\u{6F9}][a-z0-9\u{6F0}-\u{6F9}]{0,8})"
    plain = rf"(?:{plain}|{extended}(?={dot}|$))"
    return rf"(?=.{{1,253}}$)(?:{plain}(?:{dot}{plain})*|{bidirectional}(?:{dot}{bidirectional})*)"
