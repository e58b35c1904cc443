"""Lark grammars, read by Lark itself.

The package `lark` parses the grammar, resolves imports, ``%extend`` and ``%override``, expands
templates and repetitions, and makes one regular expression of every terminal; we take its rules and
terminals.  The language is that of ``Lark(text, parser="earley", lexer="dynamic_complete")``:
every way of cutting the text into terminals counts, priorities of rules and terminals choose among
trees and not among texts, and an ignored terminal takes its longest match.

Beyond Lark there are JSON Schemas, tokens and other constraints inside rules, see
`constrain.grammar.lark_forms`; what is ignored may stand behind them as behind a terminal.

Cost: mostly that of Lark reading the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from constrain.errors import (
    ConstrainError,
    GrammarError,
    GrammarLimitError,
    LimitExceededError,
    RegexError,
    SchemaError,
    TokenizerError,
    UnsupportedGrammarError,
)
from constrain.grammar.builder import GrammarBuilder, Scope, one_of, sequence
from constrain.grammar.ir import Expression, Terminal
from constrain.grammar.lark_forms import Form, Forms, Place
from constrain.grammar.lark_imports import Files
from constrain.grammar.terminals import literal_terminal, regex_terminal

__all__ = ["read_lark"]

_PLACE = re.compile(r"(?:,? at| in)? ?line (\d+),? col(?:umn)? (\d+)")
_FILE = re.compile(r"\s*in ([^\n]*?):?\s*$")
# Where names are in Lark's messages, best first.
_NAMED = (
    re.compile(r"'([A-Za-z_]\w*)'"),
    re.compile(r": ([A-Za-z_]\w*)$"),
    re.compile(r"(?:rule|terminal|template|symbol)s? ([A-Za-z_]\w*)", re.IGNORECASE),
)
# Brackets outside of strings, regular expressions and comments.
_BRACKETS = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|#[^\n]*|/(?:\\.|[^/\\\n])+/|[()\[\]]')
_HEADER = re.compile(
    r"^[ \t]*(?:%(?:override|extend)[ \t]+)?[!?]*(_?[A-Za-z]\w*)[ \t]*(?:\.-?\d+|\{[^}\n]*\})?[ \t]*:",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"%(\w+)")
_DIRECTIVES = ("ignore", "import", "declare", "override", "extend", "json")
_MAX_NESTING = 200
_MAIN = "<string>"


def read_lark(
    builder: GrammarBuilder,
    text: str,
    start: str = "start",
    import_paths: Sequence[str] = (),
    grammars: Mapping[str, Any] | None = None,
    source: str | None = None,
) -> Expression:
    """Adds the rules of a text in Lark's syntax; gives the expression of its start rule.

    Args:
        builder: the grammar that is being built.
        text: the grammar's text.
        start: its start rule.
        import_paths: folders of files for ``%import``.
        grammars: what ``@name`` and declared terminals stand for, by name.
        source: the file of the text: its folder is where relative imports begin.

    Raises GrammarError (with file, line and column where they are known), UnsupportedError
    (``%declare``, regular expression features), LimitExceededError, and what the nested
    constraints raise.
    """
    try:
        from lark import load_grammar
        from lark.exceptions import LarkError, UnexpectedInput
    except ImportError as error:
        raise ConstrainError(
            "reading Lark grammars needs the package lark: pip install lark"
        ) from error
    files = Files(text, import_paths, source)
    reader = _Reader(builder, files, start, grammars or {})
    reader.check_nesting()
    try:
        files.check_cycles()
        loaded, _ = load_grammar.load_grammar(files.main.text, source or _MAIN, [files.load], False)
        reader.check(loaded)
        terminals, rules, ignored = loaded.compile([start], set())
    except ConstrainError:
        raise
    except UnexpectedInput as error:
        reader.unexpected(error)
    except LarkError as error:
        reader.fail(str(error))
    except OSError as error:
        reader.fail(f"cannot import {error}", hint="%import")
    except RecursionError:
        raise LimitExceededError(
            "the grammar is nested too deeply to be read", limit="nesting"
        ) from None
    except Exception as error:
        # Lark's loader fails with untyped errors in places.
        reader.check_forms_in_terminals()
        detail = f"{type(error).__name__}: {error}".rstrip(": ")
        raise GrammarError(f"Lark cannot read this grammar ({detail})") from error
    return reader.grammar(terminals, rules, ignored)


class _Reader:
    def __init__(
        self, builder: GrammarBuilder, files: Files, start: str, grammars: Mapping[str, Any]
    ) -> None:
        self.builder = builder
        self.files = files
        self.main = files.main
        self.start = start
        self.grammars = grammars
        self.asked: set[str] = set()

    def check_nesting(self) -> None:
        """Lark's loader recurses on groups, and needs seconds to fail on thousands of them."""
        text = self.main.text
        if text.count("(") + text.count("[") <= _MAX_NESTING:
            return
        depth = 0
        for match in _BRACKETS.finditer(text):
            found = match.group()
            depth += 1 if found in "([" else -1 if found in ")]" else 0
            if depth > _MAX_NESTING:
                before = text[: match.start()]
                line, column = self.main.place(
                    before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
                )
                raise GrammarLimitError(
                    f"groups are nested more than {_MAX_NESTING} deep",
                    limit="nesting",
                    line=line,
                    column=column,
                    file=self.main.file,
                )

    # -- errors --------------------------------------------------------------------------------

    def locate(self, what: str) -> tuple[Place | None, str | None]:
        """Where a name (or a piece of text) is first used, and in which file.

        Names of imported files are those that Lark gives: the file's dotted path in front.
        """
        found = _find(self.main.original, what)
        if found is not None:
            return self.main.place_at(found), self.main.file
        for path, forms in self.files.files.items():
            found = _find(forms.original, what.rsplit("__", 1)[-1])
            if found is not None:
                return forms.place_at(found), path
        return None, None

    def error(self, message: str, *hints: str) -> GrammarError:
        """The error at the place of the first hint that is found."""
        for hint in hints:
            place, file = self.locate(hint)
            if place is not None:
                return GrammarError(message, line=place[0], column=place[1], file=file)
        return GrammarError(message)

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """A GrammarError of one of Lark's messages, placed as well as possible."""
        lines = message.strip().splitlines()
        short = lines[0].strip().rstrip(":") if lines else "malformed grammar"
        hints = [] if hint is None else [hint]
        hints += [name for pattern in _NAMED for name in pattern.findall(short)]
        short = self.shown(short)
        found = _PLACE.search(short)
        if found:
            forms = self.files.last
            line, column = forms.place(int(found[1]), int(found[2]))
            directive = _DIRECTIVE.match(forms.original.split("\n")[line - 1][column - 1 :])
            if directive and directive[1] not in _DIRECTIVES:
                expected = ", ".join(f"%{name}" for name in _DIRECTIVES)
                raise GrammarError(
                    f"unknown directive %{directive[1]}: expected one of {expected}",
                    line=line,
                    column=column,
                    file=forms.file,
                )
            short = (short[: found.start()] + _FILE.sub("", short[found.end() :])).strip()
            raise GrammarError(short.rstrip(":").strip(), line=line, column=column, file=forms.file)
        raise self.error(short, *hints)

    def shown(self, text: str) -> str:
        """A text of Lark with forms and names as the user wrote them."""
        for name, forms in self.files.forms().items():
            text = text.replace(name, str(forms.found[name]))
        if self.files.files:
            # Lark calls what is imported by the file's name and its own.
            text = re.sub(r"\b[A-Za-z]\w*?__(?:\w+?__)*(\w+)", r"\1", text)
        return text

    def unexpected(self, error: Any) -> NoReturn:
        """Lark's parser of grammars stopped."""
        line = getattr(error, "line", -1)
        column = getattr(error, "column", -1)
        expected = sorted(getattr(error, "accepts", None) or getattr(error, "expected", ()) or ())
        token = getattr(error, "token", None)
        message = f"unexpected {str(token)!r}" if token is not None else "unexpected input"
        if expected:
            message += f": expected one of {', '.join(expected)}"
        forms = self.files.last
        if line is None or line < 1:
            # The end of the text.
            place = forms.place_at(len(forms.original))
        else:
            place = forms.place(line, column)
        raise GrammarError(self.shown(message), line=place[0], column=place[1], file=forms.file)

    def check_forms_in_terminals(self) -> None:
        """Raises GrammarError for a form inside the definition of a terminal."""
        for forms in (self.main, *self.files.files.values()):
            for name, form in forms.found.items():
                head = None
                for match in _HEADER.finditer(forms.text, 0, forms.text.index(f" {name} ")):
                    head = match[1]
                if head is not None and head.lstrip("_")[:1].isupper():
                    raise GrammarError(
                        f"{form} cannot be part of the terminal {head}: only rules may have it",
                        line=form.place[0],
                        column=form.place[1],
                        file=forms.file,
                    )

    # -- from Lark's tables ----------------------------------------------------------------------

    def check(self, loaded: Any) -> None:
        """What Lark would only find when it parses; warns of what nothing uses."""
        bound = self.files.forms()
        for name, (tree, _) in loaded.term_defs:
            if tree is None:
                short = name.rsplit("__", 1)[-1]
                if short not in bound and short not in self.grammars:
                    self.refuse_declared(name)
                continue
            if any(True for _ in tree.find_data("template_usage")):
                self.fail(f"templates are not allowed in terminal '{name}'", hint=name)
        for name, _, tree, _ in loaded.rule_defs:
            if tree is None and name.rsplit("__", 1)[-1] not in self.grammars:
                self.refuse_declared(name)
        if self.start not in {name for name, _, tree, _ in loaded.rule_defs if tree is not None}:
            raise GrammarError(
                f"the start rule {self.start!r} is not defined",
                line=1,
                column=1,
                file=self.main.file,
            )
        for name in loaded.ignore:
            form = bound.get(name.rsplit("__", 1)[-1])
            if form is not None or name in self.grammars:
                message = f"%ignore {self.shown(name)}: only terminals can be ignored"
                if form is None:
                    raise self.error(message, name)
                place = form.found[name].place
                raise GrammarError(message, line=place[0], column=place[1], file=form.file)
        self.warn_of_unused(loaded)
        # Lark cannot compile rules that are only declared; references to them are bound later.
        loaded.rule_defs = [one for one in loaded.rule_defs if one[2] is not None]

    def refuse_declared(self, name: str) -> NoReturn:
        """Raises UnsupportedError for a declared name that nothing is bound to."""
        short = name.rsplit("__", 1)[-1]
        line = column = file = None
        for forms in (self.main, *self.files.files.values()):
            found = _find_definition(forms.original, short)
            if found is not None:
                (line, column), file = forms.place_at(found), forms.file
                break
        raise UnsupportedGrammarError(
            f"%declare {short} is not supported: the name stands for no text (bind it by grammars=)",
            feature="%declare",
            line=line,
            column=column,
            file=file,
        )

    def warn_of_unused(self, loaded: Any) -> None:
        """Adds a finding for each definition that the start rule does not need."""
        # Inside a terminal Lark has put the trees of others in the place of their names.
        trees = {id(tree): name for name, (tree, _) in loaded.term_defs if tree is not None}
        definitions = [(name, tree) for name, _, tree, _ in loaded.rule_defs]
        definitions += [(name, tree) for name, (tree, _) in loaded.term_defs]
        uses = {name: _symbols(tree, trees) for name, tree in definitions}
        todo = [self.start, *loaded.ignore]
        used = set(todo)
        while todo:
            for name in uses.get(todo.pop(), ()):
                if name not in used:
                    used.add(name)
                    todo.append(name)
        terminals = {name for name, _ in loaded.term_defs}
        for name in uses:
            found = _find_definition(self.main.original, name)
            if name not in used and found is not None:
                kind = "terminal" if name in terminals else "rule"
                self.builder.warn(f"the {kind} '{name}' is never used", self.main.place_at(found))

    def grammar(
        self, terminals: Sequence[Any], rules: Sequence[Any], ignored: Iterable[str]
    ) -> Expression:
        """The rules of Lark in the grammar that is being built."""
        builder, scope = self.builder, self.builder.scope()
        ignored_names = set(ignored)
        # Where a rule asks for an ignored terminal, it is an ordinary one.
        skips = tuple(
            builder.number(self.terminal(terminal, ignored=True))
            for terminal in terminals
            if terminal.name in ignored_names
        )
        skipped: Expression | None = None
        if skips:
            skipped = ("repeat", one_of(("term", number) for number in skips), 0, None)
        known = {
            str(terminal.name): builder.terminal(self.terminal(terminal, ignored=False), skips)
            for terminal in terminals
        }
        known.update(self.nested(rules, known, skips, skipped))
        bodies: dict[str, list[Expression]] = {}
        for rule in rules:
            items = [
                known[str(symbol.name)]
                if str(symbol.name) in known
                else self.reference(scope, symbol)
                for symbol in rule.expansion
            ]
            bodies.setdefault(str(rule.origin.name), []).append(sequence(items))
        for name in _references(rules):
            if name not in bodies and name not in known:
                self.fail(f"the rule '{name}' is used but not defined", hint=name)
        for name, options in bodies.items():
            builder.define(scope.name(name), one_of(options))
        for name in self.grammars:
            if name not in self.asked:
                builder.warn(f"the grammar never asks for {name!r} of grammars", None)
        start: Expression = ("rule", scope.name(self.start))
        if skipped is None:
            return start
        return builder.define(scope.name("the text"), ("seq", (skipped, start)))

    @staticmethod
    def reference(scope: Scope, symbol: Any) -> Expression:
        """A rule's reference to a rule."""
        return ("rule", scope.name(str(symbol.name)))

    # -- what is nested ------------------------------------------------------------------------

    def nested(
        self,
        rules: Sequence[Any],
        known: Mapping[str, Expression],
        skips: tuple[int, ...],
        skipped: Expression | None,
    ) -> dict[str, Expression]:
        """The expressions of forms, and of declared names that the caller bound."""
        bound = self.files.forms()
        result: dict[str, Expression] = {}
        for name in _references(rules, terminals=True):
            short = name.rsplit("__", 1)[-1]
            if name in known or name in result:
                continue
            if short in bound:
                result[name] = self.form(bound[short].found[short], bound[short], skips, skipped)
            elif short in self.grammars:
                result[name] = self.bound(short, skipped)
        return result

    def form(
        self, form: Form, forms: Forms, skips: tuple[int, ...], skipped: Expression | None
    ) -> Expression:
        """One form as an expression, with what is ignored behind it."""
        builder = self.builder
        line, column = form.place
        if form.kind == "grammar":
            if form.text not in self.grammars:
                expected = ", ".join(map(repr, self.grammars)) or "none"
                raise GrammarError(
                    f"{form} is not bound: the names that grammars= gives are {expected}",
                    line=line,
                    column=column,
                    file=forms.file,
                )
            return self.bound(form.text, skipped)
        try:
            if form.kind == "json":
                from constrain.schema import JsonSchema

                schema = JsonSchema(form.text)
                builder.embedded_specs.append(schema)
                return builder.embedded(schema.program(), str(form), skips)
            if form.kind == "token":
                return builder.token(form.text, skips)
            if form.negative:
                what = f"{form} (line {line}, column {column})"
                return _followed(builder.tokens_but(form.ranges, what), skipped)
            return builder.ids(form.ranges, skips)
        except (GrammarError, TokenizerError) as error:
            raise _placed(error, f"{form}", form.place, forms.file) from error
        except SchemaError as error:
            raise SchemaError(
                f"%json at line {line}, column {column}: {error.message}", pointer=error.pointer
            ) from error

    def bound(self, name: str, skipped: Expression | None) -> Expression:
        """What the caller bound to a name."""
        self.asked.add(name)
        return _followed(self.builder.part(self.grammars[name]), skipped)

    # -- terminals -----------------------------------------------------------------------------

    def terminal(self, definition: Any, *, ignored: bool) -> Terminal:
        """The automaton of one of Lark's terminals."""
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
            raise self.bad_terminal(name, pattern, str(error)) from error
        if least == 0:
            raise self.bad_terminal(
                name, pattern, "it can match the empty text, which no terminal may"
            )
        try:
            return regex_terminal(name, expression, 0, ignored=ignored)
        except RegexError as error:
            raise self.bad_terminal(name, pattern, error.message) from error
        except LimitExceededError as error:
            place, file = self.locate(str(pattern.value))
            if place is None:
                place, file = self.locate(name)
            line, column = place or (None, None)
            raise GrammarLimitError(
                str(error), limit=error.limit, line=line, column=column, file=file
            ) from error

    def bad_terminal(self, name: str, pattern: Any, why: str) -> GrammarError:
        """The error for a terminal whose pattern is not one."""
        value = str(pattern.value)
        shown = name if not name.startswith("__") else f"/{value}/"
        return self.error(f"malformed terminal {shown}: {why}", value, name)


def _followed(expression: Expression, skipped: Expression | None) -> Expression:
    return expression if skipped is None else ("seq", (expression, skipped))


def _placed(
    error: GrammarError | TokenizerError, what: str, place: Place, file: str | None
) -> ConstrainError:
    """The same error with the place of the form that caused it."""
    line, column = place
    if isinstance(error, GrammarError):
        return GrammarError(error.message, line=line, column=column, file=file)
    return type(error)(f"{what} at line {line}, column {column}: {error}")


def _find(text: str, what: str) -> int | None:
    """Where a name, or another piece of text, first stands."""
    pattern = rf"(?<![\w.]){re.escape(what)}(?!\w)" if what.isidentifier() else re.escape(what)
    found = re.search(pattern, text)
    return None if found is None else found.start()


def _find_definition(text: str, name: str) -> int | None:
    """Where a name is defined, declared or imported."""
    name = re.escape(name)
    found = re.search(
        rf"^[ \t]*(?:%(?:override|extend)[ \t]+)?[!?]*({name})[ \t]*[.{{:]"
        rf"|^[ \t]*%(?:import|declare)\b[^\n]*\b({name})\b",
        text,
        re.MULTILINE,
    )
    return None if found is None else found.start(found.lastindex or 0)


def _references(rules: Sequence[Any], *, terminals: bool = False) -> Iterator[str]:
    """The names of rules (or of terminals as well) in Lark's rules."""
    for rule in rules:
        for symbol in rule.expansion:
            if terminals or not symbol.is_term:
                yield str(symbol.name)


def _symbols(tree: Any, terminals: Mapping[int, str]) -> set[str]:
    """The names of rules and terminals in one of Lark's trees, which may be None."""
    found: set[str] = set()
    for subtree in () if tree is None else tree.iter_subtrees():
        for child in subtree.children:
            name = terminals.get(id(child)) or getattr(child, "name", None)
            if name is not None:
                found.add(str(name))
    return found
