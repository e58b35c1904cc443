"""Constraints on whole texts: `Regex`, `Choice`, and the grammars `Lark` and `Gbnf`.

Specifications are immutable values, equal by content; `program` gives what a machine executes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constrain.compose import OneOf, Repeat, Sequence, Text, Token, TokenRange
from constrain.errors import ConstrainError, EmptyGrammarError, UnsatisfiableError
from constrain.parts import GrammarSpec, Part, Size, check_parts
from constrain.program import Program
from constrain.schema import JsonSchema
from constrain.schema.builder import ProgramBuilder

if TYPE_CHECKING:
    from constrain.grammar.builder import GrammarBuilder
    from constrain.grammar.ir import Expression

__all__ = [
    "Choice",
    "Gbnf",
    "JsonSchema",
    "Lark",
    "OneOf",
    "Regex",
    "Repeat",
    "Sequence",
    "Text",
    "Token",
    "TokenRange",
]


@dataclass(frozen=True, slots=True)
class Regex:
    """Texts that match a regular expression as a whole, in the syntax of Python's `re`.

    Args:
        pattern: the expression.
        flags: flags of `re`, as with `re.compile`: IGNORECASE, MULTILINE, DOTALL, VERBOSE, ASCII.

    Raises (by `program`): RegexError with the position; UnsupportedError for what is no regular
    language, as backreferences are.
    """

    pattern: str
    flags: int = 0
    _program: list[Program] = field(
        default_factory=list, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise ConstrainError(f"a pattern is a str, found {type(self.pattern).__name__}")
        if isinstance(self.flags, bool) or not isinstance(self.flags, int):
            raise ConstrainError(f"flags are an int, found {type(self.flags).__name__}")

    def program(self) -> Program:
        """The program, compiled on the first call and kept."""
        if not self._program:
            from constrain.regex import compile_python

            builder = ProgramBuilder()
            root = builder.regex(compile_python(self.pattern, int(self.flags)))
            self._program.append(builder.build("text", root))
        return self._program[0]

    def expression(self, builder: GrammarBuilder) -> Expression:
        """The texts as a part of a grammar that is being built."""
        from constrain.grammar import regex_expression
        from constrain.regex import compile_python

        compile_python(self.pattern, int(self.flags))
        return regex_expression(builder, self.pattern, int(self.flags))

    def unsatisfiable_error(self) -> UnsatisfiableError:
        """The error for a pattern that is known to match nothing."""
        return UnsatisfiableError(f"no text matches the regular expression {self.pattern!r}")


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """Exactly one of some texts.

    Args:
        options: the texts, at least one; repetitions do not matter.

    Raises:
        ConstrainError: an option is not a str, or has a lone surrogate, which no text has.
        UnsatisfiableError: there is no option.
    """

    options: tuple[str, ...]

    def __init__(self, options: Iterable[str]) -> None:
        if isinstance(options, (str, bytes)):
            raise ConstrainError("the options are a list of str, not one str")
        try:
            found = tuple(options)
        except TypeError:
            raise ConstrainError(
                f"the options are a list of str, found {type(options).__name__}"
            ) from None
        for index, option in enumerate(found):
            if not isinstance(option, str):
                raise ConstrainError(f"option {index} must be a str, found {type(option).__name__}")
            try:
                option.encode()
            except UnicodeEncodeError:
                raise ConstrainError(
                    f"option {index} has a lone surrogate, which no text can have: {option!r}"
                ) from None
        if not found:
            raise UnsatisfiableError("a choice needs at least one option")
        object.__setattr__(self, "options", tuple(dict.fromkeys(map(str.__str__, found))))

    def program(self) -> Program:
        """The program: one STRINGS node."""
        builder = ProgramBuilder()
        return builder.build("text", builder.one_of_strings(self.options))

    def expression(self, builder: GrammarBuilder) -> Expression:
        """The texts as a part of a grammar that is being built."""
        from constrain.grammar import choice_expression

        return choice_expression(builder, self.options)


def _check_grammar(text: object, start: object, what: str) -> None:
    if not isinstance(text, str):
        raise ConstrainError(f"a grammar is a str, found {type(text).__name__}")
    if not isinstance(start, str):
        raise ConstrainError(f"{what} is the name of a rule, found {type(start).__name__}")


def _empty_grammar(what: str, name: str, text: str) -> EmptyGrammarError:
    """The error for a grammar that derives no text, at the definition of its start rule."""
    found = re.search(
        rf"^[ \t]*(?:%\w+[ \t]+)?[!?]*({re.escape(name)})(?![\w-])", text, re.MULTILINE
    )
    at = 0 if found is None else found.start(1)
    return EmptyGrammarError(
        f"the {what} rule {name!r} of the grammar derives no text: expected an alternative that "
        "comes to an end",
        line=text.count("\n", 0, at) + 1,
        column=at - text.rfind("\n", 0, at),
    )


@dataclass(frozen=True, slots=True, init=False)
class Lark(GrammarSpec):
    """Texts of a grammar in Lark's syntax (needs the package `lark`).

    The language is what ``lark.Lark(text, parser="earley", lexer="dynamic_complete")`` accepts.

    Rules may also hold what Lark does not know: ``%json {...}`` (a JSON Schema), ``<name>``,
    ``<[12]>``, ``<[3-9,12]>``, ``<[^12]>`` (tokens of the vocabulary) and ``@name``, a constraint
    that `grammars` names.  They are read as terminals are: ignored terminals may stand behind them.

    Args:
        text: the grammar.
        start: the rule to begin with.
        import_paths: folders in which ``%import`` finds files, beside Lark's own grammars.
        grammars: constraints (or strings) by name, for ``@name`` and for names that the text
            declares (``%declare``).

    Raises (by `program`): GrammarError with line and column (and file), of the kinds of
    `constrain.errors` where it is more than malformed; UnsupportedError for
    ``%declare`` of a name that `grammars` lacks, and for regular expression features that need more
    than the terminal's own text; UnsatisfiableError if the grammar derives nothing;
    LimitExceededError if it is too large; what nested constraints raise.  What nothing uses is a
    `GrammarWarning`.
    """

    text: str
    start: str
    import_paths: tuple[str, ...]
    grammars: tuple[tuple[str, Part], ...]
    _size: Size = field(repr=False, compare=False)

    def __init__(
        self,
        text: str,
        *,
        start: str = "start",
        import_paths: Iterable[str | os.PathLike[str]] = (),
        grammars: Mapping[str, Part] | Iterable[tuple[str, Part]] = (),
    ) -> None:
        _check_grammar(text, start, "start")
        if isinstance(import_paths, (str, bytes, os.PathLike)):
            raise ConstrainError("import_paths is a list of folders, not one path")
        try:
            bound = dict(grammars)
        except (TypeError, ValueError):
            raise ConstrainError(
                f"grammars maps names to constraints, found {type(grammars).__name__}"
            ) from None
        for name in bound:
            if not isinstance(name, str) or not name.replace("-", "_").isidentifier():
                raise ConstrainError(f"grammars: {name!r} is no name")
        nested = tuple(sorted(bound.items()))
        content = (text, start, *bound.values())
        put = object.__setattr__
        put(self, "text", text)
        put(self, "start", start)
        put(self, "import_paths", tuple(map(os.fspath, import_paths)))
        put(self, "grammars", nested)
        put(self, "_size", check_parts(tuple(bound.values()), "Lark", content))

    def expression(self, builder: GrammarBuilder) -> Expression:
        """The texts as a part of a grammar that is being built."""
        from constrain.grammar import read_lark

        return read_lark(builder, self.text, self.start, self.import_paths, dict(self.grammars))

    def unsatisfiable_error(self) -> UnsatisfiableError:
        """The error for a grammar that is known to derive nothing."""
        error = GrammarSpec.unsatisfiable_error(self)
        if error.pointer is not None:
            return error
        return _empty_grammar("start", self.start, self.text)


@dataclass(frozen=True, slots=True, init=False)
class Gbnf(GrammarSpec):
    """Texts of a grammar in GBNF, the format of llama.cpp.

    References to tokens (``<[12]>``, ``<think>``, ``!<think>``) are looked up in the vocabulary, see
    `constrain.grammar.gbnf`.

    Args:
        text: the grammar.
        root: the rule to begin with.
        dialect: "gbnf", or "xgrammar" for XGrammar's EBNF (`constrain.grammar.xgrammar_ebnf`).

    Raises (by `program`): GrammarError with line and column; TokenizerError for tokens that the
    vocabulary lacks; UnsupportedError for what is refused by name; UnsatisfiableError if the grammar
    derives nothing; LimitExceededError if it is too large.  A rule that nothing uses is a
    `GrammarWarning`.
    """

    text: str
    root: str
    dialect: str

    def __init__(self, text: str, *, root: str = "root", dialect: str = "gbnf") -> None:
        _check_grammar(text, root, "root")
        if dialect not in ("gbnf", "xgrammar"):
            raise ConstrainError(f"dialect must be 'gbnf' or 'xgrammar', found {dialect!r}")
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "dialect", dialect)

    def expression(self, builder: GrammarBuilder) -> Expression:
        """The texts as a part of a grammar that is being built."""
        from constrain.grammar import read_gbnf, read_xgrammar

        read = read_gbnf if self.dialect == "gbnf" else read_xgrammar
        return read(builder, self.text, self.root)

    def unsatisfiable_error(self) -> UnsatisfiableError:
        """The error for a grammar that is known to derive nothing."""
        return _empty_grammar("root", self.root, self.text)
