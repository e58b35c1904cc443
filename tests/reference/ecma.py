"""ECMA-262 regular expressions (as JSON Schema means them) in terms of the package `regex`.

`translate` reads a pattern as ECMA-262 does with the flag `u`, leniently where the web is lenient
(needless escapes, literal braces and brackets), and writes one for `regex.search` with
`regex.V1`. What differs between the two is written out: `$` is the very end, `.` stops at four line
terminators, `\\d` and `\\w` are ASCII, `\\s` is ECMA's list. It is a reference for tests: what it
cannot translate surely raises UntranslatableError instead of guessing.
"""

from __future__ import annotations

from functools import lru_cache

import regex

WORD = "0-9A-Z_a-z"
DIGIT = "0-9"
SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
NEWLINES = r"\n\r\u2028\u2029"
_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


class UntranslatableError(ValueError):
    """A pattern that this reference does not judge."""


class _Reader:
    """Cursor over a pattern; methods consume what they name and return its translation."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.pattern[index] if index < len(self.pattern) else ""

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise UntranslatableError(f"unexpected end of {self.pattern!r}")
        self.position += 1
        return char

    def hexadecimal(self, count: int) -> int | None:
        digits = self.pattern[self.position : self.position + count]
        if len(digits) != count or not all(c in "0123456789abcdefABCDEF" for c in digits):
            return None
        self.position += count
        return int(digits, 16)

    def code_unit(self) -> int:
        """After `\\u`: four digits (with a low surrogate after a high one) or braces."""
        if self.peek() == "{":
            end = self.pattern.find("}", self.position)
            if end < 0:
                raise UntranslatableError(f"unclosed \\u{{ in {self.pattern!r}")
            value = int(self.pattern[self.position + 1 : end], 16)
            self.position = end + 1
            return value
        value_or_none = self.hexadecimal(4)
        if value_or_none is None:
            return ord("u")
        value = value_or_none
        if 0xD800 <= value < 0xDC00 and self.pattern[self.position : self.position + 2] == "\\u":
            mark = self.position
            self.position += 2
            low = self.hexadecimal(4)
            if low is not None and 0xDC00 <= low < 0xE000:
                return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
            self.position = mark
        return value

    def property_class(self, negated: bool) -> str:
        if self.take() != "{":
            raise UntranslatableError(f"\\p without braces in {self.pattern!r}")
        end = self.pattern.find("}", self.position)
        if end < 0:
            raise UntranslatableError(f"unclosed \\p{{ in {self.pattern!r}")
        name = self.pattern[self.position : end]
        self.position = end + 1
        return f"\\{'P' if negated else 'p'}{{{name}}}"

    def escape(self, in_class: bool) -> str | int:
        """After a backslash: a code point, or the translation of a class or assertion."""
        char = self.take()
        named = {"d": DIGIT, "w": WORD, "s": SPACE}.get(char.lower())
        if named is not None and char in "dDwWsS":
            return f"[{'^' if char.isupper() else ''}{named}]"
        if char in "pP":
            return self.property_class(char == "P")
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "c" and self.peek().isascii() and self.peek().isalpha():
            return ord(self.take()) % 32
        if char == "x":
            value = self.hexadecimal(2)
            return ord("x") if value is None else value
        if char == "u":
            return self.code_unit()
        if char == "0" and not self.peek().isdigit():
            return 0
        if char == "b" and in_class:
            return 8
        if char in "bB" and not in_class:
            inside, outside = f"[{WORD}]", f"[{WORD}]"
            edge = f"(?:(?<={inside})(?!{outside})|(?<!{inside})(?={outside}))"
            return edge if char == "b" else f"(?!{edge})"
        if char.isalnum():
            # References, and letters that other dialects give a meaning (\A, \Z, \h, ...).
            raise UntranslatableError(f"\\{char} in {self.pattern!r}")
        return ord(char)

    def character_class(self) -> str:
        """After `[`, up to and with its `]`."""
        negated = self.peek() == "^"
        if negated:
            self.position += 1
        items: list[str | int] = []
        while self.peek() != "]":
            char = self.take()
            item = self.escape(True) if char == "\\" else ord(char)
            after_dash = self.peek(1)
            if isinstance(item, int) and self.peek() == "-" and after_dash not in ("]", ""):
                mark = self.position
                self.position += 1
                char = self.take()
                last = self.escape(True) if char == "\\" else ord(char)
                if isinstance(last, int):
                    if last < item:
                        raise UntranslatableError(f"reversed range in {self.pattern!r}")
                    items.append(f"{_literal(item)}-{_literal(last)}")
                    continue
                self.position = mark
            items.append(item)
        self.position += 1
        if not items:
            return r"[\s\S]" if negated else r"(?!)"
        body = "".join(_literal(item) if isinstance(item, int) else item for item in items)
        return f"[{'^' if negated else ''}{body}]"

    def group(self) -> str:
        """After `(`: the opening that has the same meaning."""
        if self.peek() != "?":
            return "(?:"
        for opening in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.pattern.startswith(opening, self.position):
                self.position += len(opening)
                return f"({opening}"
        if self.peek(1) == "<":
            end = self.pattern.find(">", self.position)
            if end > 0:
                self.position = end + 1
                return "(?:"
        raise UntranslatableError(f"group {self.pattern[self.position :][:4]!r}")

    def translate(self) -> str:
        out: list[str] = []
        while self.position < len(self.pattern):
            char = self.take()
            if char == "\\":
                escaped = self.escape(False)
                out.append(_literal(escaped) if isinstance(escaped, int) else escaped)
            elif char == "[":
                out.append(self.character_class())
            elif char == "(":
                out.append(self.group())
            elif char == "$":
                out.append(r"\Z")
            elif char == "^":
                out.append(r"\A")
            elif char == ".":
                out.append(f"[^{NEWLINES}]")
            elif char in ")|":
                out.append(char)
            elif char in "*+?":
                out.append(self.quantifier(char))
            elif char == "{":
                out.append(self.counted())
            else:
                out.append(_literal(ord(char)))
        return "".join(out)

    def quantifier(self, text: str) -> str:
        if self.peek() == "?":
            self.position += 1
            return f"{text}?"
        if self.peek() == "+":
            raise UntranslatableError(f"possessive quantifier in {self.pattern!r}")
        return text

    def counted(self) -> str:
        """After `{`: a bound, or the brace as a literal."""
        end = self.pattern.find("}", self.position)
        body = self.pattern[self.position : end] if end > 0 else ""
        low, comma, high = body.partition(",")
        if not low.isdigit() or (high and not high.isdigit()):
            return _literal(ord("{"))
        self.position = end + 1
        return self.quantifier(f"{{{low}{comma}{high}}}")


def _literal(code: int) -> str:
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise UntranslatableError(f"code point {code:#x} is no character")
    char = chr(code)
    if char.isalnum() and code < 128:
        return char
    return f"\\U{code:08x}"


@lru_cache(maxsize=4096)
def compile_ecma(pattern: str) -> regex.Pattern[str]:
    """A compiled pattern whose `search` means what JSON Schema's `pattern` means."""
    translated = _Reader(pattern).translate()
    try:
        return regex.compile(translated, regex.V1)
    except (regex.error, RecursionError) as error:
        raise UntranslatableError(f"{pattern!r}: {error}") from error


def search(pattern: str, text: str) -> bool:
    """Whether `pattern` matches somewhere in `text`. Raises UntranslatableError, TimeoutError."""
    return compile_ecma(pattern).search(text, timeout=10) is not None
