"""Questions about the formulas of a program, answered by the native core without a vocabulary.

A question is a list of clauses, each a list of literals (``n``: satisfies node n, ``~n``: does
not).  Formulas that a schema does not contain (a type, a key, a constant) are added to a copy of
the program.  Whoever knows its questions beforehand asks for those first: the native side is made
anew when formulas were added after it was made.

Budgets: a number of questions, of those that stay undecided (which are the long ones), and seconds,
altogether; each question has step budgets of its own.
"""

from __future__ import annotations

import time
from typing import Any

from constrain import _native
from constrain._programs import native_program
from constrain.errors import ConstrainError
from constrain.program import TYPES, Op, Program
from constrain.schema.builder import NEVER, TRUE, ProgramBuilder

__all__ = ["BudgetSpentError", "Clauses", "Questions"]

Clauses = list[list[int]]


class BudgetSpentError(Exception):
    """No more questions may be asked."""


class Questions:
    """Questions about one program.  Not thread-safe."""

    def __init__(
        self,
        program: Program,
        *,
        max_questions: int = 20_000,
        max_undecided: int = 30,
        max_seconds: float = 5.0,
    ) -> None:
        self._program = program
        builder = self._builder = ProgramBuilder()
        builder.nodes = list(program.nodes)
        builder.args = list(program.args)
        builder.refs = list(program.refs)
        builder.values = list(program.values)
        builder.regexes = list(program.regexes)
        builder.strings = list(program.strings)
        self._native: _native.Analyzer | None = None
        self._size = len(builder.nodes)
        self._left = max_questions
        self._undecided_left = max_undecided
        self._deadline = time.monotonic() + max_seconds
        self._answers: dict[tuple, bool | None] = {}

    # -- formulas --------------------------------------------------------------------------

    def of_type(self, name: str) -> list[int]:
        """The clause "is of this type of JSON Schema"."""
        if name == "boolean":
            return [self._type("true"), self._type("false")]
        return [self._type("number" if name == "integer" else name)]

    def _type(self, name: str) -> int:
        return self._builder.node(Op.TYPE, TYPES.index(name))

    def has(self, key: str) -> int | None:
        """The node "if an object, it has `key`"; None for a key that cannot be written."""
        number = self._builder.string(key)
        return None if number == NEVER else self._builder.node(Op.HAS, number)

    def all_of_these(self, keys: list[str]) -> int | None:
        """The node "if an object, it has all of `keys`"; None where one cannot be written."""
        numbers = [self._builder.string(key) for key in keys]
        if NEVER in numbers:
            return None
        # one row, which the core merges with the rows of the schema: much faster than HAS
        return self._builder.row(
            Op.OBJECT, (0, 0, TRUE, TRUE, len(numbers), *numbers, len(numbers), -1)
        )

    def constant(self, value: object) -> int | None:
        """The node "equals `value`"; None for a value that cannot be written."""
        return self.one_of([value])

    def one_of(self, values: list) -> int | None:
        """The node "equals one of `values`"; None where none can be written."""
        node = self._builder.enum(values, "")
        return node if node > TRUE else None

    def many_properties(self, least: int) -> int:
        """The node "if an object, it has at least so many properties"."""
        return self._builder.row(Op.OBJECT, (0, 0, TRUE, TRUE, 0, least, -1))

    def many_items(self, least: int) -> int:
        """The node "if an array, it has at least so many items"."""
        return self._builder.row(Op.ARRAY, (0, TRUE, least, -1))

    # -- questions -------------------------------------------------------------------------

    def satisfiable(self, *clauses: list[int]) -> bool | None:
        """Whether some value satisfies all clauses; None where that was not decided.

        Raises BudgetSpentError where no more questions may be asked.
        """
        key = ("sat", *map(tuple, clauses))
        if key not in self._answers:
            answer = self._answers[key] = self._ask("satisfiable", clauses)
            self._undecided_left -= answer is None
        return self._answers[key]

    def impossible(self, *clauses: list[int]) -> bool:
        """Whether it is proved that no value satisfies all clauses."""
        return self.satisfiable(*clauses) is False

    def strings_are_finite(self, *clauses: list[int]) -> bool | None:
        """Whether finitely many strings satisfy all clauses; None where that was not decided."""
        key = ("finite", *map(tuple, clauses))
        if key not in self._answers:
            self._answers[key] = self._ask("strings_are_finite", clauses)
        return self._answers[key]

    def example(self, *clauses: list[int], limit: int = 400) -> str | None:
        """A short JSON text that satisfies all clauses, or None where none was found."""
        text = self._ask("example", clauses, limit)
        return None if text is None else text.decode()

    def _ask(self, name: str, clauses: tuple[list[int], ...], *more: int) -> Any:
        self._left -= 1
        if self._left < 0 or self._undecided_left < 0 or time.monotonic() > self._deadline:
            raise BudgetSpentError
        if self._native is None or len(self._builder.nodes) != self._size:
            self._size = len(self._builder.nodes)
            program = self._program
            built = self._builder.build(
                program.kind,
                program.root,
                numbers=program.numbers,
                whitespace=program.whitespace,
                escapes=program.escapes,
            )
            self._native = _native.Analyzer(native_program(built))
        try:
            return getattr(self._native, name)([list(clause) for clause in clauses], *more)
        except ConstrainError:
            return None  # a limit of the core: not decided
