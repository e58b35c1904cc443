"""GBNF, the grammar format of llama.cpp.

Read are rules ``name ::= alternatives``, literals, classes of characters (ranges, negation), ``.``,
groups, ``* + ?`` and ``{n} {n,} {n,m}``, comments, references to tokens, and the escapes ``\\n \\r
\\t \\\\ \\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH``.  A rule ends where its line ends, unless that is inside
of a group, behind ``::=`` or ``|``, or the next line begins with ``|``.  Names may also have
underscores.  What other dialects add is refused; for XGrammar's there is
`constrain.grammar.xgrammar_ebnf`.  White space is never inserted: a grammar means exactly its
characters.

``<[12]>`` and ``<name>`` are one token, or its text if it writes one.  Negated (``!<name>``) they
are any other token: any character or any other special token.  Where the token writes text, its
negation has a meaning only as a whole repetition, ``!<name>*``, ``!<name>+`` or ``!<name>{0,n}``: a
text in which the token's text does not occur.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from constrain.errors import (
    GrammarError,
    GrammarLimitError,
    TokenizerError,
    UnsupportedError,
)
from constrain.grammar.builder import GrammarBuilder
from constrain.grammar.ir import EMPTY, Expression
from constrain.grammar.texts import free_terminal
from constrain.regex.charsets import ANY, CharSet, complement, from_pairs
from constrain.vocabulary import MARK_BYTE

__all__ = ["Parser", "read_gbnf"]

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(r"(!?)<(?:\[(\d+)\]|[^>\n]+)>")
_REPEAT = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}")
_HEX = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_MAX_NESTING = 100
_MAX_REPEAT = 100_000
_BUT = "but"
"""The kind of what is no expression yet: anything but a token that writes text, see `repeated`."""


def read_gbnf(builder: GrammarBuilder, text: str, root: str = "root") -> Expression:
    """Adds the rules of a GBNF text; gives the expression of its root.

    Raises GrammarError with line and column and what was expected, TokenizerError for tokens that
    the vocabulary lacks, UnsupportedError (some negated tokens) and LimitExceededError (groups
    nested more than 100 deep, huge repetitions).
    """
    return Parser(builder, text).grammar(root)


class Parser:
    """A reader of one text; other dialects override what differs."""

    name = _NAME
    escapes = _ESCAPES
    class_escapes = _ESCAPES

    def __init__(self, builder: GrammarBuilder, text: str) -> None:
        self.builder = builder
        self.scope = builder.scope()
        self.text = text
        self.at = 0
        self.rules: dict[str, Expression] = {}
        self.places: dict[str, int] = {}
        self.uses: dict[str, dict[str, int]] = {}
        self.current = ""
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
        for uses in self.uses.values():
            for name, at in uses.items():
                if name not in self.rules:
                    self.fail(f"the rule {name!r} is used but not defined", at)
        self.warn_of_unused(root)
        for name, body in self.rules.items():
            self.builder.define(self.scope.name(name), body)
        return ("rule", self.scope.name(root))

    def warn_of_unused(self, root: str) -> None:
        """Adds a finding for each rule that the root does not need."""
        used = {root}
        todo = [root]
        while todo:
            for name in self.uses[todo.pop()]:
                if name not in used:
                    used.add(name)
                    todo.append(name)
        for name, at in self.places.items():
            if name not in used:
                self.builder.warn(f"the rule {name!r} is never used", self.place(at))

    def rule(self) -> None:
        self.head()
        self.rules[self.current] = self.settled(self.alternatives(False))
        if self.at < len(self.text) and self.peek() not in "\r\n":
            self.expected("'|', the end of the rule, or something to match")

    def head(self) -> None:
        """The name of a rule and ``::=``."""
        begin = self.at
        match = self.name.match(self.text, self.at)
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
        self.current = name
        self.places[name] = begin
        self.uses[name] = {}

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
        if len(found) == 1:
            return found[0]
        return ("alt", tuple(self.settled(item) for item in found))

    def sequence(self, nested: bool) -> Expression:
        items: list[Expression] = []
        while True:
            item = self.element()
            if item is None:
                break
            items.append(self.repeated(item, nested))
            self.space(nested)
        if len(items) == 1:
            return items[0]
        return ("seq", tuple(self.settled(item) for item in items))

    def element(self) -> Expression | None:
        """One element without its repetition, None if something else follows."""
        c = self.peek()
        if c == '"':
            return self.literal()
        if c == "[":
            return self.builder.chars(*self.char_class())
        if c == ".":
            self.at += 1
            return self.builder.chars(ANY, "any character")
        if c == "(":
            return self.group()
        if c in ("<", "!"):
            return self.token()
        if self.name.match(c):
            return self.reference()
        return None

    # -- tokens --------------------------------------------------------------------------------

    def token(self) -> Expression:
        begin = self.at
        match = _TOKEN.match(self.text, begin)
        if match is None:
            self.fail(f"unexpected character {self.peek()!r}: expected something to match")
        shown = match.group()
        self.at = match.end()
        reference = int(match[2]) if match[2] is not None else shown.lstrip("!")
        return self.placed(shown, begin, lambda: self.token_of(reference, shown, begin))

    def token_of(self, reference: int | str, shown: str, begin: int) -> Expression:
        """A reference to a token, or its negation."""
        if shown[0] != "!":
            return self.builder.token(reference)
        data = self.builder.token_text(reference)
        if data[0] != MARK_BYTE:
            return (_BUT, data, shown, begin)
        token_id = int.from_bytes(data[1:], "big")
        return self.builder.tokens_but(((token_id, token_id),), shown)

    def placed(self, shown: str, begin: int, make: Any) -> Expression:
        """What `make` makes; its errors get the place where the reference stands."""
        line, column = self.place(begin)
        try:
            made: Expression = make()
        except TokenizerError as error:
            raise TokenizerError(f"{shown} (line {line}, column {column}): {error}") from error
        except GrammarError as error:
            raise GrammarError(error.message, line=line, column=column) from error
        return made

    def settled(self, item: Expression) -> Expression:
        """An expression.  Raises UnsupportedError for a negated token that nothing repeats."""
        if item[0] == _BUT:
            line, column = self.place(item[3])
            raise UnsupportedError(
                f"{item[2]} (line {line}, column {column}) negates a token that writes text, which "
                f"is supported only as a whole repetition such as {item[2]}*",
                feature="negated token reference",
            )
        return item

    def repeated_but(self, item: Expression, least: int, most: int | None) -> Expression:
        """A text in which a token's text does not occur."""
        _, data, shown, _ = item
        if least > 1 or (least and most is not None):
            self.settled(item)
        try:
            data.decode()
        except UnicodeDecodeError:
            self.fail(f"{shown}: the token writes a piece of a character", item[3])
        terminal = free_terminal(shown, (), (data,), most)
        found = self.builder.terminal(terminal)
        return found if least else ("repeat", found, 0, 1)

    def group(self) -> Expression:
        begin = self.at
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise self.too_deep("groups", begin)
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

    def too_deep(self, what: str, at: int) -> GrammarLimitError:
        """The error for what is nested too deeply."""
        line, column = self.place(at)
        return GrammarLimitError(
            f"{what} are nested more than {_MAX_NESTING} deep",
            limit="nesting",
            line=line,
            column=column,
        )

    def reference(self) -> Expression:
        match = self.name.match(self.text, self.at)
        if match is None:
            self.expected("the name of a rule")
        name = match.group()
        self.uses[self.current].setdefault(name, self.at)
        self.at = match.end()
        return ("rule", self.scope.name(name))

    def repeated(self, item: Expression, nested: bool) -> Expression:
        """The element with the repetitions behind it."""
        for _ in range(_MAX_NESTING):
            self.space(nested)
            bounds = self.bounds()
            if bounds is None:
                return item
            if item[0] == _BUT:
                item = self.repeated_but(item, *bounds)
            else:
                item = ("repeat", item, *bounds)
        raise self.too_deep("repetitions", self.at)

    def bounds(self) -> tuple[int, int | None] | None:
        """A repetition, None if there is none."""
        c = self.peek()
        if c and c in "*+?":
            self.at += 1
            return int(c == "+"), 1 if c == "?" else None
        if c != "{":
            return None
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
            raise GrammarLimitError(
                f"a repetition of more than {_MAX_REPEAT}", limit="repeat", line=line, column=column
            )
        self.at = match.end()
        return least, most

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

    def character(self, begin: int, escapes: Mapping[str, str] | None = None) -> int:
        """One character of a literal or class, perhaps escaped."""
        c = self.text[self.at]
        self.at += 1
        if c != "\\":
            return ord(c)
        kind = self.peek()
        if not kind:
            self.fail("the text that begins here is not closed", begin)
        escapes = self.escapes if escapes is None else escapes
        digits = self.hex_digits(kind)
        if digits:
            self.at += 1 + len(digits)
            value = int(digits, 16)
            if value > 0x10FFFF:
                self.fail(f"there is no code point {value:#x}", self.at - 2 - len(digits))
            return value
        if kind in escapes:
            self.at += 1
            return ord(escapes[kind])
        known = " ".join(f"\\{one}" for one in (*escapes, *_HEX))
        self.fail(f"unknown escape '\\{kind}': expected one of {known}", self.at - 1)

    def hex_digits(self, kind: str) -> str:
        """The digits of a hexadecimal escape, "" if it is none."""
        if kind not in _HEX:
            return ""
        digits = self.text[self.at + 1 : self.at + 1 + _HEX[kind]]
        if len(digits) < _HEX[kind] or not re.fullmatch(r"[0-9A-Fa-f]+", digits):
            self.at += 1
            self.fail(f"expected {_HEX[kind]} hexadecimal digits behind '\\{kind}'")
        return digits

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
            first = last = self.character(begin, self.class_escapes)
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self.character(begin, self.class_escapes)
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
