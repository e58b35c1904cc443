"""GBNF, the grammar format of llama.cpp.

Read are rules ``name ::= alternatives``, literals, classes of characters (ranges, negation), ``.``,
groups, ``* + ?`` and ``{n} {n,} {n,m}``, comments, and the escapes ``\\n \\r \\t \\\\ \\" \\[ \\]
\\xHH \\uHHHH \\UHHHHHHHH``.  A rule ends where its line ends, unless that is inside of a group,
behind ``::=`` or ``|``, or the next line begins with ``|``.  Names may also have underscores.
``<[id]>`` and ``<token>`` (references to tokens) are refused by name; so is everything that other
dialects add.  White space is never inserted: a grammar means exactly its characters.
"""

from __future__ import annotations

import re
from typing import NoReturn

from constrain.errors import GrammarError, LimitExceededError, UnsupportedError
from constrain.grammar.builder import GrammarBuilder
from constrain.grammar.ir import EMPTY, Expression
from constrain.regex.charsets import ANY, CharSet, complement, from_pairs

__all__ = ["read_gbnf"]

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(r"!?<(?:\[\d+\]|[^\s<>]+)>")
_REPEAT = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}")
_HEX = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_MAX_NESTING = 200
_MAX_REPEAT = 100_000


def read_gbnf(builder: GrammarBuilder, text: str, root: str = "root") -> Expression:
    """Adds the rules of a GBNF text; gives the expression of its root.

    Raises GrammarError with line and column and what was expected, UnsupportedError (token
    references) and LimitExceededError (groups nested more than 200 deep, huge repetitions).
    """
    return _Parser(builder, text).grammar(root)


class _Parser:
    def __init__(self, builder: GrammarBuilder, text: str) -> None:
        self.builder = builder
        self.scope = builder.scope()
        self.text = text
        self.at = 0
        self.rules: dict[str, Expression] = {}
        self.uses: dict[str, int] = {}
        self.depth = 0

    # -- places --------------------------------------------------------------------------------

    def place(self, at: int) -> tuple[int, int]:
        """Line and column, from 1."""
        line = self.text.count("\n", 0, at) + 1
        return line, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        line, column = self.place(self.at if at is None else at)
        raise GrammarError(message, line=line, column=column)

    def expected(self, what: str) -> NoReturn:
        if self.at >= len(self.text):
            self.fail(f"expected {what}, found the end of the grammar")
        found = self.text[self.at]
        shown = "the end of the line" if found in "\r\n" else repr(found)
        self.fail(f"expected {what}, found {shown}")

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def space(self, lines: bool) -> None:
        """Skips blanks and comments, and line ends too if `lines`."""
        text = self.text
        while self.at < len(text):
            c = text[self.at]
            if c == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif c in " \t" or (lines and c in "\r\n"):
                self.at += 1
            else:
                return

    # -- rules ---------------------------------------------------------------------------------

    def grammar(self, root: str) -> Expression:
        self.space(True)
        while self.at < len(self.text):
            self.rule()
            self.space(True)
        if root not in self.rules:
            if not self.rules:
                raise GrammarError("the grammar has no rules", line=1, column=1)
            raise GrammarError(f"the root rule {root!r} is not defined", line=1, column=1)
        for name, at in self.uses.items():
            if name not in self.rules:
                self.fail(f"the rule {name!r} is used but not defined", at)
        for name, body in self.rules.items():
            self.builder.define(self.scope.name(name), body)
        return ("rule", self.scope.name(root))

    def rule(self) -> None:
        begin = self.at
        match = _NAME.match(self.text, self.at)
        if match is None:
            self.expected("the name of a rule")
        name = match.group()
        self.at = match.end()
        self.space(False)
        if not self.text.startswith("::=", self.at):
            self.expected("'::='")
        self.at += 3
        if name in self.rules:
            self.fail(f"the rule {name!r} is defined twice", begin)
        self.space(True)
        self.rules[name] = self.alternatives(False)
        if self.at < len(self.text) and self.peek() not in "\r\n":
            self.expected("'|', the end of the rule, or something to match")

    def alternatives(self, nested: bool) -> Expression:
        found = [self.sequence(nested)]
        while True:
            if not nested:
                # A line that begins with '|' continues the rule.
                mark = self.at
                self.space(True)
                if self.peek() != "|":
                    self.at = mark
            if self.peek() != "|":
                break
            self.at += 1
            self.space(True)
            found.append(self.sequence(nested))
        return found[0] if len(found) == 1 else ("alt", tuple(found))

    def sequence(self, nested: bool) -> Expression:
        items: list[Expression] = []
        while True:
            c = self.peek()
            item: Expression
            if c == '"':
                item = self.literal()
            elif c == "[":
                item = self.builder.chars(*self.char_class())
            elif c == ".":
                self.at += 1
                item = self.builder.chars(ANY, "any character")
            elif c == "(":
                item = self.group()
            elif c in "<!" and c:
                self.token()
            elif c and _NAME.match(c):
                item = self.reference()
            else:
                break
            items.append(self.repeated(item, nested))
            self.space(nested)
        return items[0] if len(items) == 1 else ("seq", tuple(items))

    def token(self) -> NoReturn:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.fail(f"unexpected character {self.peek()!r}: expected something to match")
        line, column = self.place(self.at)
        raise UnsupportedError(
            f"the token reference {match.group()} (line {line}, column {column}) is not supported",
            feature="token reference",
        )

    def group(self) -> Expression:
        begin = self.at
        self.depth += 1
        if self.depth > _MAX_NESTING:
            line, column = self.place(begin)
            raise LimitExceededError(
                f"groups are nested more than {_MAX_NESTING} deep (line {line}, column {column})",
                limit="nesting",
            )
        self.at += 1
        self.space(True)
        item = self.alternatives(True)
        if self.peek() != ")":
            if self.at >= len(self.text):
                self.fail("the group that begins here is not closed: expected ')'", begin)
            self.expected("')', '|' or something to match")
        self.at += 1
        self.depth -= 1
        return item

    def reference(self) -> Expression:
        match = _NAME.match(self.text, self.at)
        if match is None:
            self.expected("the name of a rule")
        name = match.group()
        self.uses.setdefault(name, self.at)
        self.at = match.end()
        return ("rule", self.scope.name(name))

    def repeated(self, item: Expression, nested: bool) -> Expression:
        while True:
            self.space(nested)
            c = self.peek()
            if c == "{":
                begin = self.at
                match = _REPEAT.match(self.text, self.at)
                if match is None:
                    self.at += 1
                    self.space(False)
                    while self.peek().isdigit():
                        self.at += 1
                    self.expected("a repetition such as '{2}', '{2,}' or '{2,5}'")
                least = int(match[1])
                most = least if match[2] is None else int(match[3]) if match[3] else None
                if most is not None and most < least:
                    self.fail(f"repetition: the maximum {most} is smaller than {least}", begin)
                if max(least, most or 0) > _MAX_REPEAT:
                    line, column = self.place(begin)
                    raise LimitExceededError(
                        f"a repetition of more than {_MAX_REPEAT} (line {line}, column {column})",
                        limit="repeat",
                    )
                self.at = match.end()
                item = ("repeat", item, least, most)
            elif c in "*+?" and c:
                self.at += 1
                item = ("repeat", item, int(c == "+"), 1 if c == "?" else None)
            else:
                return item

    # -- terminals -----------------------------------------------------------------------------

    def literal(self) -> Expression:
        begin = self.at
        self.at += 1
        found: list[str] = []
        while self.peek() != '"':
            if self.at >= len(self.text):
                self.fail("the literal that begins here is not closed: expected '\"'", begin)
            found.append(chr(self.character(begin)))
        self.at += 1
        text = "".join(found)
        try:
            return self.builder.literal(text.encode()) if text else EMPTY
        except UnicodeEncodeError:
            self.fail("a literal has a lone surrogate, which no text can have", begin)

    def character(self, begin: int) -> int:
        """One character of a literal or class, perhaps escaped."""
        c = self.text[self.at]
        self.at += 1
        if c != "\\":
            return ord(c)
        kind = self.peek()
        if kind in _HEX and kind:
            digits = self.text[self.at + 1 : self.at + 1 + _HEX[kind]]
            if len(digits) < _HEX[kind] or not re.fullmatch(r"[0-9A-Fa-f]+", digits):
                self.at += 1
                self.fail(f"expected {_HEX[kind]} hexadecimal digits behind '\\{kind}'")
            value = int(digits, 16)
            if value > 0x10FFFF:
                self.fail(f"there is no code point {value:#x}", self.at - 1)
            self.at += 1 + _HEX[kind]
            return value
        if kind in _ESCAPES and kind:
            self.at += 1
            return ord(_ESCAPES[kind])
        if not kind:
            self.fail("the text that begins here is not closed", begin)
        self.fail(
            f"unknown escape '\\{kind}': expected one of \\n \\r \\t \\\\ \\\" \\[ \\] \\x \\u \\U",
            self.at - 1,
        )

    def char_class(self) -> tuple[CharSet, str]:
        begin = self.at
        self.at += 1
        negative = self.peek() == "^"
        if negative:
            self.at += 1
        pairs: list[tuple[int, int]] = []
        while self.peek() != "]":
            if self.at >= len(self.text):
                self.fail("the class that begins here is not closed: expected ']'", begin)
            place = self.at
            first = last = self.character(begin)
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self.character(begin)
                if last < first:
                    self.fail("a range whose end is before its start", place)
            pairs.append((first, last))
        self.at += 1
        if not pairs:
            self.fail("an empty class matches nothing", begin)
        chars = from_pairs(pairs)
        if negative:
            chars = complement(chars)
        if not from_pairs(_without_surrogates(chars)):
            self.fail("the class has no character that a text can have", begin)
        return chars, self.text[begin : self.at]


def _without_surrogates(chars: CharSet) -> list[tuple[int, int]]:
    result = []
    for first, last in zip(chars[::2], chars[1::2]):
        if first < 0xD800:
            result.append((first, min(last, 0xD7FF)))
        if last > 0xDFFF:
            result.append((max(first, 0xE000), last))
    return result
