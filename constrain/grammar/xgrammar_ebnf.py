"""XGrammar's EBNF, where it differs from GBNF (``Gbnf(text, dialect="xgrammar")``).

* White space and line ends mean nothing; a rule's name is the first thing on its line.  Names may
  have dots, and begin with no digit.
* There is more to escape, and ``\\xH...`` takes any number of digits.  ``[^]`` is any character,
  ``.`` is none.
* An alternative is not empty: the empty text is written ``""`` or ``()``.  A repetition is not
  repeated without brackets.
* ``(= ...)`` at the end of a rule is read, and says nothing about texts: it is a hint for
  XGrammar's caches, whose matcher does not enforce it either.
* ``Token(12, 13)`` and ``ExcludeToken(12)`` refer to tokens.  Other macros, and options of rules
  (``name[max_tokens=5]``), are refused by name.
"""

from __future__ import annotations

import re

from constrain.errors import UnsupportedError
from constrain.grammar.builder import GrammarBuilder
from constrain.grammar.gbnf import Parser
from constrain.grammar.ir import EMPTY, Expression

__all__ = ["read_xgrammar"]

_HEAD = re.compile(r"([A-Za-z_.-][\w.-]*)[ \t]*(\[[^\]\n]*\])?[ \t\r\n]*::=", re.ASCII)
_MACRO = re.compile(r"(Token|ExcludeToken|TagDispatch|TokenTagDispatch|Regex|Substring)\s*\(")
_ESCAPES = {
    **{c: c for c in "\"\\/'?"},
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "0": "\0",
    "e": "\x1b",
}
_CLASS_ESCAPES = {**_ESCAPES, **{c: c for c in "^$.*+()[]{}|-"}}


def read_xgrammar(builder: GrammarBuilder, text: str, root: str = "root") -> Expression:
    """Adds the rules of a text in XGrammar's EBNF; gives the expression of its root.

    Raises what `constrain.grammar.gbnf.read_gbnf` raises.
    """
    return _XGrammarParser(builder, text).grammar(root)


class _XGrammarParser(Parser):
    name = re.compile(r"[A-Za-z_.-][\w.-]*", re.ASCII)
    escapes = _ESCAPES
    class_escapes = _CLASS_ESCAPES

    def space(self, lines: bool) -> None:
        """Line ends are white space everywhere."""
        super().space(True)

    def head(self) -> None:
        match = _HEAD.match(self.text, self.at)
        if match is not None:
            before = self.text[self.text.rfind("\n", 0, self.at) + 1 : self.at]
            if before.strip():
                self.fail("the name of a rule must be the first thing on its line")
            if match[2]:
                line, column = self.place(match.start(2))
                raise UnsupportedError(
                    f"options of rules are not supported: {match[1]}{match[2]} (line {line}, "
                    f"column {column})",
                    feature="rule options",
                )
        super().head()

    def rule(self) -> None:
        self.head()
        body = self.alternatives(False)
        if self.text.startswith("(=", self.at):
            begin = self.at
            self.at += 2
            self.space(True)
            self.sequence(True)
            if self.peek() != ")":
                self.fail("the lookahead that begins here is not closed: expected ')'", begin)
            self.at += 1
            self.space(True)
        self.rules[self.current] = body
        if self.at < len(self.text) and _HEAD.match(self.text, self.at) is None:
            self.expected("'|', the name of a rule, or something to match")

    def sequence(self, nested: bool) -> Expression:
        begin = self.at
        found = super().sequence(nested)
        if found == EMPTY and self.at == begin:
            self.expected('something to match (the empty text is written "")')
        return found

    def element(self) -> Expression | None:
        c = self.peek()
        if not c or c in ".<!" or self.text.startswith("(=", self.at):
            return None
        if c == "(":
            return self.empty_group() or self.group()
        if self.name.match(c):
            if _HEAD.match(self.text, self.at):
                return None
            if _MACRO.match(self.text, self.at):
                return self.macro()
            if re.compile(r"(?:true|false)(?![\w.-])").match(self.text, self.at):
                self.expected("something to match")
        return super().element()

    def empty_group(self) -> Expression | None:
        """``()``, the empty text."""
        begin = self.at
        self.at += 1
        self.space(True)
        if self.peek() == ")":
            self.at += 1
            return EMPTY
        self.at = begin
        return None

    def bounds(self) -> tuple[int, int | None] | None:
        found = super().bounds()
        if found is not None:
            self.space(True)
            c = self.peek()
            if c and c in "*+?{":
                self.fail(f"{c!r} repeats a repetition: put that in brackets")
        return found

    def macro(self) -> Expression:
        """``Token(...)`` and ``ExcludeToken(...)``."""
        begin = self.at
        match = re.compile(r"(\w+)\s*\(\s*(\d+(?:\s*,\s*\d+)*)\s*\)").match(self.text, begin)
        name = re.compile(r"\w+").match(self.text, begin)
        if name is not None and name.group() not in ("Token", "ExcludeToken"):
            line, column = self.place(begin)
            raise UnsupportedError(
                f"the macro {name.group()} (line {line}, column {column}) is not supported",
                feature=f"macro {name.group()}",
            )
        if match is None:
            self.fail("expected ids of tokens, as in Token(12, 13)")
        self.at = match.end()
        ids = sorted({int(one) for one in match[2].split(",")})
        ranges = tuple((one, one) for one in ids)
        shown = match.group()
        if match[1] == "Token":
            return self.placed(shown, begin, lambda: self.builder.ids(ranges))
        return self.placed(shown, begin, lambda: self.builder.tokens_but(ranges, shown))

    def hex_digits(self, kind: str) -> str:
        if kind != "x":
            return super().hex_digits(kind)
        match = re.compile(r"[0-9A-Fa-f]+").match(self.text, self.at + 1)
        if match is None:
            self.at += 1
            self.fail("expected hexadecimal digits behind '\\x'")
        return match.group()

    def literal(self) -> Expression:
        begin = self.at
        found = super().literal()
        if "\n" in self.text[begin : self.at] or "\r" in self.text[begin : self.at]:
            self.fail("a literal ends on its line: write \\n", begin)
        return found

    def char_class(self) -> tuple[tuple[int, ...], str]:
        begin = self.at
        if self.text.startswith("[^]", begin):
            self.at += 3
            return (0, 0x10FFFF), "any character"
        found = super().char_class()
        if "\n" in found[1] or "\r" in found[1]:
            self.fail("a class ends on its line: write \\n", begin)
        return found
