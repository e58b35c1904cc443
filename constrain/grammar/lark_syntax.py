"""Lark grammars, read by Lark itself.

The package `lark` parses the grammar, resolves imports, ``%extend`` and ``%override``, expands
templates and repetitions, and makes one regular expression of every terminal; we take its rules and
terminals.  The language is that of ``Lark(text, parser="earley", lexer="dynamic_complete")``:
every way of cutting the text into terminals counts, priorities of rules and terminals choose among
trees and not among texts, and an ignored terminal takes its longest match.

Cost: mostly that of Lark reading the grammar.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from constrain.errors import (
    ConstrainError,
    GrammarError,
    LimitExceededError,
    RegexError,
    UnsupportedError,
)
from constrain.grammar.builder import GrammarBuilder, one_of, sequence
from constrain.grammar.ir import Expression, Terminal
from constrain.grammar.terminals import literal_terminal, regex_terminal

__all__ = ["read_lark"]

_PLACE = re.compile(r"(?:,? at| in)? ?line (\d+),? col(?:umn)? (\d+)")
_NAMED = re.compile(
    r"(?:Rule|Terminal|Template|rule|terminal|terminals|symbol|Symbol)[^'\"]*?'?\b([A-Za-z_]\w*)'?"
)
# Brackets outside of strings, regular expressions and comments.
_BRACKETS = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|#[^\n]*|/(?:\\.|[^/\\\n])+/|[()\[\]]')
_MAX_NESTING = 200
_IMPORT = re.compile(r"^\s*%(?:import|extend|override)\s+(\.?)([A-Za-z_][\w.]*)", re.MULTILINE)


def read_lark(
    builder: GrammarBuilder,
    text: str,
    start: str = "start",
    import_paths: Sequence[str] = (),
    source: str = "<string>",
) -> Expression:
    """Adds the rules of a text in Lark's syntax; gives the expression of its start rule.

    Raises GrammarError (with line and column where they are known), UnsupportedError (``%declare``,
    regular expression features) and LimitExceededError.
    """
    try:
        from lark import load_grammar
        from lark.exceptions import LarkError, UnexpectedInput
    except ImportError as error:
        raise ConstrainError(
            "reading Lark grammars needs the package lark: pip install lark"
        ) from error
    reader = _Reader(text, start, list(import_paths), source)
    reader.check_nesting()
    try:
        loaded, _ = load_grammar.load_grammar(text, source, list(import_paths), False)
        reader.check(loaded)
        terminals, rules, ignored = loaded.compile([start], set())
    except UnexpectedInput as error:
        reader.unexpected(error)
    except LarkError as error:
        reader.fail(str(error))
    except OSError as error:
        reader.fail(f"cannot import: {error}", hint="%import")
    except RecursionError:
        reader.too_deep()
    except ConstrainError:
        raise
    except Exception as error:
        # Lark's loader fails with untyped errors in places.
        detail = f"{type(error).__name__}: {error}".rstrip(": ")
        raise GrammarError(f"Lark cannot read this grammar ({detail})") from error
    return reader.grammar(builder, terminals, rules, ignored)


class _Reader:
    def __init__(self, text: str, start: str, import_paths: list[str], source: str) -> None:
        self.text = text
        self.start = start
        self.import_paths = import_paths
        self.source = source

    def check_nesting(self) -> None:
        """Lark's loader recurses on groups, and needs seconds to fail on thousands of them."""
        if self.text.count("(") + self.text.count("[") <= _MAX_NESTING:
            return
        depth = 0
        for match in _BRACKETS.finditer(self.text):
            found = match.group()
            depth += 1 if found in "([" else -1 if found in ")]" else 0
            if depth > _MAX_NESTING:
                line = self.text.count("\n", 0, match.start()) + 1
                raise LimitExceededError(
                    f"groups are nested more than {_MAX_NESTING} deep (line {line})",
                    limit="nesting",
                )

    # -- errors --------------------------------------------------------------------------------

    def locate(self, what: str) -> tuple[int | None, int | None]:
        """Line and column of the first use of a name (or of a piece of text)."""
        pattern = rf"(?<![\w.]){re.escape(what)}(?!\w)" if what.isidentifier() else re.escape(what)
        places = list(re.finditer(pattern, self.text))
        if not places:
            return None, None
        at = places[0].start()
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """A GrammarError of one of Lark's messages, placed as well as possible."""
        lines = message.strip().splitlines()
        short = lines[0].strip().rstrip(":") if lines else "malformed grammar"
        found = _PLACE.search(short)
        if found:
            line, column = int(found[1]), int(found[2])
            short = (short[: found.start()] + short[found.end() :]).strip().rstrip(":").strip()
            short = short.removesuffix("in <string>").strip()
            raise GrammarError(short, line=line, column=column)
        place: tuple[int | None, int | None] = (None, None)
        if hint is not None:
            place = self.locate(hint)
        for name in _NAMED.findall(short):
            if place[0] is None:
                place = self.locate(name)
        raise GrammarError(short, line=place[0], column=place[1])

    def unexpected(self, error: Any) -> NoReturn:
        """Lark's parser of grammars stopped."""
        line = getattr(error, "line", -1)
        column = getattr(error, "column", -1)
        expected = sorted(getattr(error, "accepts", None) or getattr(error, "expected", ()) or ())
        token = getattr(error, "token", None)
        message = f"unexpected {str(token)!r}" if token is not None else "unexpected input"
        if expected:
            message += f": expected one of {', '.join(expected)}"
        if line is None or line < 1:
            # The end of the text.
            lines = self.text.split("\n")
            line, column = len(lines), len(lines[-1]) + 1
        raise GrammarError(message, line=line, column=column)

    def too_deep(self) -> NoReturn:
        cycle = self.import_cycle()
        if cycle:
            line, column = self.locate("%import")
            raise GrammarError(f"cyclic import: {' -> '.join(cycle)}", line=line, column=column)
        raise LimitExceededError("the grammar is nested too deeply to be read", limit="nesting")

    def import_cycle(self) -> list[str] | None:
        """Names of files that import each other."""

        def resolve(base: str, dot: str, path: str) -> str | None:
            parts = path.split(".")
            folders = [base] if dot else [*self.import_paths, base]
            for count in (len(parts) - 1, len(parts)):
                name = os.path.join(*parts[:count]) + ".lark" if count else ""
                for folder in folders:
                    if name and os.path.isfile(os.path.join(folder, name)):
                        return os.path.realpath(os.path.join(folder, name))
            return None

        def imports(text: str, base: str) -> Iterable[str]:
            for dot, path in _IMPORT.findall(text):
                found = resolve(base, dot, path)
                if found:
                    yield found

        base = os.path.dirname(self.source) if self.source != "<string>" else ""
        trail: list[str] = []
        done: set[str] = set()
        stack = [iter(list(imports(self.text, base)))]
        while stack:
            nxt = next(stack[-1], None)
            if nxt is None:
                stack.pop()
                if trail:
                    done.add(trail.pop())
                continue
            if nxt in trail:
                cycle = [*trail[trail.index(nxt) :], nxt]
                return [os.path.basename(name) for name in cycle]
            if nxt in done:
                continue
            with open(nxt, encoding="utf-8") as file:
                text = file.read()
            trail.append(nxt)
            stack.append(iter(list(imports(text, os.path.dirname(nxt)))))
        return None

    # -- from Lark's tables ----------------------------------------------------------------------

    def check(self, loaded: Any) -> None:
        """What Lark would only find when it parses."""
        for name, (tree, _) in loaded.term_defs:
            if tree is None:
                line, column = self.locate(name)
                where = "" if line is None else f" (line {line}, column {column})"
                raise UnsupportedError(
                    f"%declare {name}{where} is not supported: the terminal has no text",
                    feature="%declare",
                )
            if any(True for _ in tree.find_data("template_usage")):
                self.fail(f"templates are not allowed in terminal '{name}'", hint=name)
        if self.start not in {name for name, *_ in loaded.rule_defs}:
            raise GrammarError(f"the start rule {self.start!r} is not defined", line=1, column=1)

    def grammar(
        self,
        builder: GrammarBuilder,
        terminals: Sequence[Any],
        rules: Sequence[Any],
        ignored: Iterable[str],
    ) -> Expression:
        scope = builder.scope()
        ignored_names = set(ignored)
        # Where a rule asks for an ignored terminal, it is an ordinary one.
        skips = tuple(
            builder.number(self.terminal(terminal, ignored=True))
            for terminal in terminals
            if terminal.name in ignored_names
        )
        known = {
            str(terminal.name): builder.terminal(self.terminal(terminal, ignored=False), skips)
            for terminal in terminals
        }
        bodies: dict[str, list[Expression]] = {}
        for rule in rules:
            items: list[Expression] = []
            for symbol in rule.expansion:
                name = str(symbol.name)
                items.append(known[name] if symbol.is_term else ("rule", scope.name(name)))
            bodies.setdefault(str(rule.origin.name), []).append(sequence(items))
        for rule in rules:
            for symbol in rule.expansion:
                name = str(symbol.name)
                if not symbol.is_term and name not in bodies:
                    self.fail(f"the rule '{name}' is used but not defined", hint=name)
        for name, options in bodies.items():
            builder.define(scope.name(name), one_of(options))
        start: Expression = ("rule", scope.name(self.start))
        if not skips:
            return start
        skipped = ("repeat", one_of(("term", number) for number in skips), 0, None)
        return builder.define(scope.name("the text"), ("seq", (skipped, start)))

    def terminal(self, definition: Any, *, ignored: bool) -> Terminal:
        pattern = definition.pattern
        name = str(definition.name)
        if pattern.type == "str" and not pattern.flags and not ignored:
            if not pattern.value:
                self.fail(f"the terminal '{name}' is empty", hint=name)
            try:
                return literal_terminal(name, str(pattern.value).encode())
            except UnicodeEncodeError:
                self.fail(f"the terminal '{name}' has a lone surrogate, which no text has", name)
        expression = pattern.to_regexp()
        try:
            least = pattern.min_width
        except Exception as error:
            self.bad_terminal(name, pattern, str(error))
        if least == 0:
            self.bad_terminal(name, pattern, "it can match the empty text, which no terminal may")
        try:
            return regex_terminal(name, expression, 0, ignored=ignored)
        except RegexError as error:
            self.bad_terminal(name, pattern, error.message)

    def bad_terminal(self, name: str, pattern: Any, why: str) -> NoReturn:
        value = str(pattern.value)
        place = self.locate(value)
        if place[0] is None:
            place = self.locate(name)
        shown = name if not name.startswith("__") else f"/{value}/"
        raise GrammarError(f"malformed terminal {shown}: {why}", line=place[0], column=place[1])
