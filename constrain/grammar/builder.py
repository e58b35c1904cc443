"""Putting grammars together: terminals and rules of several front ends in one grammar.

A *part* is anything whose texts may stand inside others: a str (itself), or a spec.  A spec takes
part by a method ``expression(builder) -> Expression``, or else by a ``program()`` of kind "json",
which is embedded.  Equal parts are built once.

Rules of different parts have names of their own (`GrammarBuilder.scope`); what a part ignores
(``%ignore``) stands behind its own terminals only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError, GrammarError, UnsupportedError
from constrain.grammar.ir import EMPTY, NOTHING, Embedded, Expression, Grammar, Terminal
from constrain.grammar.terminals import chars_terminal, literal_terminal
from constrain.grammar.texts import ids_terminal
from constrain.grammar.tokens import check_id, shown_ids, special_ranges
from constrain.program import Program
from constrain.regex.charsets import ANY, CharSet

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["GrammarBuilder", "Scope", "one_of", "sequence"]


def sequence(items: Iterable[Expression]) -> Expression:
    """One after the other."""
    found = tuple(items)
    return found[0] if len(found) == 1 else ("seq", found)


def one_of(items: Iterable[Expression]) -> Expression:
    """Any of them."""
    found = tuple(items)
    return found[0] if len(found) == 1 else ("alt", found)


class Scope:
    """Names of the rules of one part: equal names of different parts are different rules."""

    def __init__(self, builder: GrammarBuilder) -> None:
        self._builder = builder
        self._names: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The name of this part's rule among all rules."""
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = self._builder.fresh(name)
        return found


class GrammarBuilder:
    """A grammar under construction.

    Args:
        vocabulary: what references to tokens refer to; None where they are refused.

    Attributes:
        uses_vocabulary: something asked for a token, so that the grammar holds for this vocabulary
            only.
        findings: what has no effect, one message each.
        embedded_specs: the specs (of kind "json") among the parts.
        places: line and column of rules in their grammars, for explanations.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary
        self.uses_vocabulary = False
        self.findings: list[str] = []
        self.embedded_specs: list[Any] = []
        self.places: dict[str, tuple[int, int]] = {}
        self._rules: dict[str, Expression] = {}
        self._names: set[str] = set()
        self._terminals: list[Terminal | Embedded] = []
        self._skips: dict[int, tuple[int, ...]] = {}
        self._numbers: dict[Any, int] = {}
        self._parts: dict[Any, Expression] = {}
        self._shared: set[Any] = set()

    # -- rules ---------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """A name that no rule has yet."""
        found = name
        count = 1
        while found in self._names:
            count += 1
            found = f"{name}.{count}"
        self._names.add(found)
        return found

    def scope(self) -> Scope:
        """Names for the rules of one part."""
        return Scope(self)

    def define(
        self, name: str, body: Expression, place: tuple[int, int] | None = None
    ) -> Expression:
        """Defines the rule of a name that `fresh` or a scope gave; gives the reference to it.

        `place` is its line and column, where it is written in a grammar.
        """
        self._rules[name] = body
        if place is not None:
            self.places[name] = place
        return ("rule", name)

    # -- terminals -----------------------------------------------------------------------------

    def terminal(
        self, terminal: Terminal | Embedded, skips: tuple[int, ...] = (), key: Any = None
    ) -> Expression:
        """A terminal, behind which any number of those of `skips` may stand."""
        key = (id(terminal) if key is None else key, skips)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._terminals)
            self._terminals.append(terminal)
            if skips:
                self._skips[found] = skips
        return ("term", found)

    def number(self, terminal: Terminal) -> int:
        """The number of a terminal, as `terminal` takes those that are skipped."""
        return self.terminal(terminal)[1]

    def literal(self, data: bytes, skips: tuple[int, ...] = ()) -> Expression:
        """Exactly these bytes."""
        if not data:
            return EMPTY
        key = (data, skips)
        found = self._numbers.get(key)
        if found is not None:
            return ("term", found)
        shown = repr(data.decode(errors="backslashreplace"))
        return self.terminal(literal_terminal(shown, data), skips, data)

    def chars(self, chars: CharSet, name: str) -> Expression:
        """One code point of a set."""
        terminal = chars_terminal(name, chars)
        return self.terminal(terminal) if terminal.rows[0] else NOTHING

    def embedded(self, program: Program, name: str, skips: tuple[int, ...] = ()) -> Expression:
        """The texts of a program of kind "json"."""
        return self.terminal(Embedded(name, program), skips, id(program))

    def token(self, reference: int | str, skips: tuple[int, ...] = ()) -> Expression:
        """One token, by its id or name; of a token that writes text, the text.

        Raises GrammarError without a vocabulary, TokenizerError for what is no token of it.
        """
        return self.literal(self.token_text(reference), skips)

    def token_text(self, reference: int | str) -> bytes:
        """The bytes that stand for a token (see `token`)."""
        return self._vocabulary(f"the token {reference!r}").token_bytes(reference)

    def ids(self, ranges: tuple[tuple[int, int], ...], skips: tuple[int, ...] = ()) -> Expression:
        """One token of some ranges of ids: for tokens that write text, their texts."""
        vocabulary = self._vocabulary(f"the tokens {shown_ids(ranges)}")
        for _, last in ranges:
            check_id(vocabulary, last)
        return self.terminal(ids_terminal(vocabulary, ranges), skips, ("ids", ranges))

    def tokens_but(self, ranges: tuple[tuple[int, int], ...], what: str) -> Expression:
        """One token that is none of some ranges of ids.

        A text may be cut into tokens in many ways, so that any token that writes text means any
        code point here; beside that stand the special tokens that are not excluded.

        Raises UnsupportedError if a token that writes text is excluded.
        """
        vocabulary = self._vocabulary(what)
        for first, last in ranges:
            check_id(vocabulary, last)
            for token_id in range(first, last + 1):
                if vocabulary.tokens[token_id] is not None:
                    raise UnsupportedError(
                        f"{what} excludes the token {token_id}, which writes text: only special "
                        "tokens can be excluded",
                        feature="negated token reference",
                    )
        text = self.chars(ANY, "any character")
        others = special_ranges(vocabulary, ranges)
        if not others:
            return text
        return one_of((text, self.terminal(ids_terminal(vocabulary, others), key=("ids", others))))

    # -- findings ------------------------------------------------------------------------------

    def warn(self, message: str, place: tuple[int, int] | None = None) -> None:
        """Notes something that has no effect, with line and column."""
        if place is not None:
            message += f" (line {place[0]}, column {place[1]})"
        self.findings.append(message)

    def _vocabulary(self, what: str) -> Vocabulary:
        self.uses_vocabulary = True
        if self.vocabulary is None:
            raise GrammarError(
                f"{what} can only be looked up in a vocabulary: use constrain.compile"
            )
        return self.vocabulary

    # -- parts ---------------------------------------------------------------------------------

    def part(self, part: Any) -> Expression:
        """The expression of a part (see the module).  Raises what the part raises."""
        if isinstance(part, str):
            return self.literal(part.encode())
        found = self._parts.get(part)
        if found is None:
            found = self._parts[part] = self._expression(part)
            return found
        if found[0] not in ("term", "rule") and part not in self._shared:
            # It is used again: from now on by its name, so that nothing is copied twice.
            self._shared.add(part)
            found = self.define(self.fresh(type(part).__name__), found)
            self._parts[part] = found
        return found

    def _expression(self, part: Any) -> Expression:
        method = getattr(part, "expression", None)
        if callable(method):
            return method(self)
        program = part.program()
        if program.kind != "json":
            raise ConstrainError(f"{type(part).__name__} cannot be part of another constraint")
        self.embedded_specs.append(part)
        return self.embedded(program, repr(part))

    # -- the end -------------------------------------------------------------------------------

    def grammar(self, start: Expression, name: str = "start") -> Grammar:
        """The grammar whose texts are those of an expression."""
        if start[0] != "rule":
            start = self.define(self.fresh(name), start)
        return Grammar(self._rules, self._terminals, start[1], self._skips)
