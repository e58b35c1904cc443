"""From a spec and a vocabulary to a compiled constraint.

A spec's front end emits a program; the native core turns it into a machine that shares its lexical
tables with every other constraint of the same vocabulary.  Nothing is cached here: keep the
compiled constraint, it is immutable and can be used by any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from constrain import _native, limits
from constrain._programs import native_program
from constrain.errors import LimitExceededError, UnsatisfiableError
from constrain.matcher import Matcher
from constrain.program import Program

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["CompiledConstraint", "Spec", "compile"]

_DEFAULT_MAX_MEMORY = 256 << 20


class Spec(Protocol):
    """What can be compiled: `JsonSchema`, `Regex`, `Choice`, or anything that emits a program.

    A spec that refers to tokens has a method ``program_for(vocabulary)`` beside `program`, which is
    used in its place.
    """

    def program(self) -> Program:
        """The program; raises a `ConstrainError` that names what is wrong and where."""
        ...


class CompiledConstraint:
    """A constraint on the tokens of one vocabulary.  Immutable and thread-safe.

    Attributes:
        spec: what was compiled.
        vocabulary: the vocabulary that it was compiled for.
        program: the program of the spec.
    """

    __slots__ = ("__weakref__", "_native", "program", "spec", "vocabulary")

    def __init__(
        self,
        spec: Spec,
        vocabulary: Vocabulary,
        *,
        max_memory: int = _DEFAULT_MAX_MEMORY,
        max_seconds: float = limits.MAX_SECONDS,
        max_nesting: int = limits.MAX_NESTING,
        max_states: int = limits.MAX_STATES,
    ) -> None:
        """Use `constrain.compile`."""
        self.spec = spec
        self.vocabulary = vocabulary
        native = vocabulary.native  # which takes a while at its first use
        with limits.applied(max_seconds, max_nesting, max_states):
            program_for = getattr(spec, "program_for", None)
            try:
                self.program = spec.program() if program_for is None else program_for(vocabulary)
                limits.check()
            except RecursionError as error:
                raise LimitExceededError(
                    "the constraint is nested too deeply", limit="max_nesting"
                ) from error
            try:
                self._native = _native.Constraint(
                    native, native_program(self.program), max_memory, limits.remaining_seconds()
                )
            except UnsatisfiableError as error:
                raise _explained(spec, error) from None

    def matcher(self) -> Matcher:
        """A matcher at the start of a sequence."""
        return Matcher(self)

    @property
    def shortest_length(self) -> int | None:
        """The fewest tokens of a valid text, as far as is known; None where none was found."""
        return self.matcher().tokens_needed

    def report(self, *, analyze: bool = False) -> Any:
        """What is enforced, what is narrowed and what is ignored, as the spec reports it.

        With ``analyze`` also findings: what can never appear, has no limits or looks like a
        mistake (see `constrain.JsonSchema.report`).
        """
        report = getattr(self.spec, "report", None)
        if report is None:
            return dict(self.program.notes)
        return report(analyze=True) if analyze else report()

    @property
    def memory(self) -> int:
        """Bytes that states, machine and kept masks hold now; at most about `max_memory`."""
        return self._native.memory

    def __repr__(self) -> str:
        return f"CompiledConstraint({self.spec!r}, {self.vocabulary!r})"


def compile(
    spec: Spec,
    vocabulary: Vocabulary,
    *,
    max_memory: int = _DEFAULT_MAX_MEMORY,
    max_seconds: float = limits.MAX_SECONDS,
    max_nesting: int = limits.MAX_NESTING,
    max_states: int = limits.MAX_STATES,
) -> CompiledConstraint:
    """Compile a spec for a vocabulary.

    No honest constraint meets the default limits; set lower ones for what strangers send.  Masks
    need no limit of time: they answer within steps that are counted.  Compiling and masks can be
    interrupted (KeyboardInterrupt).

    Args:
        spec: a `JsonSchema`, `Regex`, `Choice` or another object with a ``program()``.
        vocabulary: the model's vocabulary.
        max_memory: bytes that the states and masks of this constraint may hold.  What no matcher
            needs is dropped when the bound is reached, and rebuilt when needed.
        max_seconds: time that compiling may take.
        max_nesting: how deep objects and arrays of a schema may be nested in one another.  Groups
            of grammars and patterns have fixed limits of their own (100 to 500).
        max_states: states of the automata that a grammar may need.

    Raises:
        ConstrainError: one of its subclasses: the spec is malformed (`SchemaError`, `RegexError`),
            asks for what is not enforced (`UnsupportedError`), admits no text at all
            (`UnsatisfiableError`), or needs more than a limit allows (`LimitExceededError`, whose
            ``limit`` is the name of the parameter).
        TypeError: `spec` is no spec, or a limit is no number.
    """
    if not callable(getattr(spec, "program", None)):
        raise TypeError(
            f"expected a spec such as constrain.JsonSchema(...), not {type(spec).__name__}"
        )
    for name, value in (
        ("max_memory", max_memory),
        ("max_nesting", max_nesting),
        ("max_states", max_states),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise TypeError(f"{name} must be a number from 0 on, not {value!r}")
    if isinstance(max_seconds, bool) or not isinstance(max_seconds, (int, float)):
        raise TypeError(f"max_seconds must be a number, not {max_seconds!r}")
    return CompiledConstraint(
        spec,
        vocabulary,
        max_memory=max_memory,
        max_seconds=max_seconds,
        max_nesting=max_nesting,
        max_states=max_states,
    )


def _explained(spec: Spec, error: UnsatisfiableError) -> UnsatisfiableError:
    """The same error with the reason, where the spec can tell."""
    explain = getattr(spec, "unsatisfiable_error", None)
    return error if explain is None else explain()
