"""Python's syntax, the whole text: anchors, flags, and what is refused by name."""

from __future__ import annotations

import re
import unicodedata

import pytest

from constrain.errors import RegexError, UnsupportedError
from constrain.regex import compile_python
from constrain.regex.charsets import complement, fold_case, from_python_class, property_set
from tests.native.regex_runner import RegexRunner, runner


@pytest.fixture(scope="module")
def automaton() -> RegexRunner:
    return runner()


PATTERNS = [
    ("a$", 0),
    ("a$\n", 0),
    ("(a$\n?|b)", 0),
    (r"a\Z", 0),
    (r"(?:a\Z\n|b)", 0),
    ("^a", 0),
    ("(^a|b)+", 0),
    ("(^a$\n?)+", re.M),
    ("(?m:^a$\n?)+", 0),
    (".+", 0),
    (".+", re.S),
    ("(?s:.)a.", 0),
    (r"\w+", 0),
    (r"\w+", re.A),
    (r"\d\s\S\D\W", 0),
    (r"\bA\b.*", 0),
    (r"a\b\Bb", 0),
    ("[a-k]+", re.I),
    ("[^k]", re.I),
    ("K", re.I),
    ("[^a-b]|\u00c9", re.I),
    ("(?i:a)b", 0),
    (r" a  b # comment", re.X),
    ("(?P<n>a)(?:b)(?#c)", 0),
    ("(?=a)[ab]+", 0),
    ("(?!a)[ab]+", 0),
    ("(?<=a)b|a(?<=a)b", 0),
    ("b?(?<!b)a", 0),
    ("(?<=^)a?b?a|b(?<=a|b)a", 0),
    ("a(?<=\\w)b", 0),
    ("(a|b)*?b", 0),
    ("a{2}|b{1,}|(ab){,2}", 0),
    ("[]a]+", 0),
    (r"[\]\-\w]+", re.A),
    ("", 0),
    ("(?!)", 0),
    ("a|", 0),
]
TEXTS = ["", "a", "b", "ab", "ba", "aa", "bb", "abab", "a\n", "a\n\n", "a\na", "a\na\n", "b\n"]
TEXTS += [
    "A",
    "AB",
    "K",
    "k",
    "\u212a",
    "kK",
    "\u00e9",
    "\u00c9",
    "\u0661",
    "a\u00e9",
    "1 a-",
    "]-",
]
TEXTS += ["\u0661\u2003x\u00e9-", "A b", "\n", "\na\n", "aba", "bab", " a", "_"]


@pytest.mark.parametrize(("pattern", "flags"), PATTERNS)
def test_agrees_with_fullmatch(automaton: RegexRunner, pattern: str, flags: int) -> None:
    automaton.load(compile_python(pattern, flags))
    compiled = re.compile(pattern, flags)
    wrong = [t for t in TEXTS if automaton.accepts(t) != (compiled.fullmatch(t) is not None)]
    assert wrong == []


UNSUPPORTED = [
    (r"(a)\1", "backreference"),
    ("(?P<n>a)(?P=n)", "backreference"),
    ("(a)?(?(1)b|c)", "conditional group"),
    ("(?<=ab)c", "lookbehind"),
    ("(?<!ab|cd)c", "lookbehind"),
]


@pytest.mark.parametrize(("pattern", "feature"), UNSUPPORTED)
def test_unsupported_by_name(pattern: str, feature: str) -> None:
    with pytest.raises(UnsupportedError, match=feature) as caught:
        compile_python(pattern)
    assert caught.value.feature == feature


@pytest.mark.skipif(not hasattr(re, "NOFLAG"), reason="syntax of Python 3.11")
@pytest.mark.parametrize(
    ("pattern", "feature"), [("(?>a)", "atomic group"), ("a++", "possessive quantifier")]
)
def test_matching_order_is_unsupported(pattern: str, feature: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_python(pattern)
    assert caught.value.feature == feature


def test_other_flags_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        compile_python("a", re.LOCALE)


@pytest.mark.parametrize(
    "pattern", ["a{5,2}", "[0-9{3}", "(a", "*", "[z-a]", "(?P<1>a)", "\\", "(?<=^|b)a"]
)
def test_malformed(pattern: str) -> None:
    with pytest.raises(re.error) as expected:
        re.compile(pattern)
    with pytest.raises(RegexError) as caught:
        compile_python(pattern)
    assert caught.value.position == expected.value.pos
    assert caught.value.message == expected.value.msg


def _members(chars: tuple[int, ...]) -> set[int]:
    return {c for a, b in zip(chars[::2], chars[1::2]) for c in range(a, b + 1)}


@pytest.mark.parametrize("escape", ["d", "w", "s"])
def test_escapes_are_those_of_re(escape: str) -> None:
    for flags in (0, re.A):
        compiled = re.compile(f"\\{escape}", flags)
        expected = {c for c in range(0x110000) if compiled.match(chr(c))}
        assert _members(from_python_class(escape, bool(flags))) == expected


@pytest.mark.parametrize("name", ["Lu", "Nd", "Cn", "Co", "Cs", "Mn", "Zs", "L", "C", "LC"])
def test_categories_are_those_of_unicodedata(name: str) -> None:
    wanted = {"LC": ("Lu", "Ll", "Lt")}.get(name, (name,))
    expected = {c for c in range(0x110000) if unicodedata.category(chr(c)).startswith(wanted)}
    chars = property_set(name)
    assert chars is not None
    assert _members(chars) == expected
    assert complement(complement(chars)) == chars


def test_ignoring_case_is_that_of_re() -> None:
    text = "".join(map(chr, range(0x20000)))
    special = [0x69, 0x73, 0x6B, 0x130, 0x131, 0xDF, 0x1E9E, 0x3C2, 0x17F, 0x212A, 0xB5, 0x1C5]
    for c in [*range(0x40, 0x80), *special, *range(0x370, 0x580, 7), *range(0x1E00, 0x2200, 11)]:
        found = {m.start() for m in re.finditer(re.escape(chr(c)), text, re.I)}
        assert _members(fold_case((c, c))) == found, hex(c)
    for first, last in [(0x41, 0x2000), (0x100, 0x400), (0x1E00, 0x2200)]:
        found = {m.start() for m in re.finditer(f"[{chr(first)}-{chr(last)}]", text, re.I)}
        assert _members(fold_case((first, last))) == found
    assert _members(fold_case((0x61, 0x62), ascii_only=True)) == set(map(ord, "aAbB"))
