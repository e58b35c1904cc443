"""What specs that are grammars have in common, and what may be a part of another spec.

A *part* is a str, which means itself, or a spec.  A spec is a part by a method
``expression(builder)`` (see `constrain.grammar.builder`), or by a ``program()`` of kind "json".
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from constrain.errors import (
    ConstrainError,
    GrammarWarning,
    LimitExceededError,
    UnsatisfiableError,
)
from constrain.program import Program

if TYPE_CHECKING:
    from constrain.compile import Spec
    from constrain.grammar.builder import GrammarBuilder
    from constrain.grammar.ir import Expression
    from constrain.vocabulary import Vocabulary

__all__ = ["GrammarSpec", "Part", "Size", "check_parts", "checked_text"]

Part: TypeAlias = Union[str, "Spec"]

_MAX_DEPTH = 100
_MAX_PARTS = 100_000


class GrammarSpec(ABC):
    """A spec whose program is a grammar: subclasses have `expression`, and are immutable."""

    __slots__ = ("_embedded", "_made")

    @abstractmethod
    def expression(self, builder: GrammarBuilder) -> Expression:
        """The texts as an expression of a grammar that is being built."""

    def program(self) -> Program:
        """The program, compiled on the first call and kept.

        Raises GrammarError where a token is asked for: only `program_for` can look it up.
        """
        return self.program_for(None)

    def program_for(self, vocabulary: Vocabulary | None) -> Program:
        """The program for a vocabulary, in which tokens are looked up.

        Raises what the parts raise; UnsatisfiableError if there is no text; TokenizerError for a
        token that the vocabulary lacks; LimitExceededError if it is too large.
        """
        made: Program | None = getattr(self, "_made", None)
        if made is not None:
            return made
        from constrain.grammar import GrammarBuilder, compile_grammar

        builder = GrammarBuilder(vocabulary)
        object.__setattr__(self, "_embedded", builder.embedded_specs)
        try:
            grammar = builder.grammar(builder.part(self))
            program = compile_grammar(grammar, notes={"warnings": tuple(builder.findings)})
        except UnsatisfiableError as error:
            raise self.unsatisfiable_error() from error
        for finding in builder.findings:
            warnings.warn(finding, GrammarWarning, stacklevel=3)
        if not builder.uses_vocabulary:
            object.__setattr__(self, "_made", program)
        return program

    def unsatisfiable_error(self) -> UnsatisfiableError:
        """The error for a constraint that is known to admit no text.

        Where a schema inside of it is the reason, its error.
        """
        for spec in getattr(self, "_embedded", ()):
            reason = _unsatisfiable(spec)
            if reason is not None:
                return reason
        return UnsatisfiableError(f"no text satisfies {self!r}")


def _unsatisfiable(spec: Spec) -> UnsatisfiableError | None:
    """The error of a spec that admits no text, None of any other."""
    from constrain._programs import byte_vocabulary
    from constrain.compile import compile

    try:
        compile(spec, byte_vocabulary())
    except UnsatisfiableError as error:
        return error
    return None


@dataclass(frozen=True, slots=True)
class Size:
    """How deep and how large a constraint is, and its hash: none is computed twice."""

    depth: int
    parts: int
    hash: int


def checked_text(text: object, what: str) -> str:
    """The text.  Raises ConstrainError for what is none, or has lone surrogates."""
    if not isinstance(text, str):
        raise ConstrainError(f"{what} must be a str, found {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConstrainError(
            f"{what} has a lone surrogate, which no text can have: {text!r}"
        ) from None
    return str.__str__(text)


def check_parts(parts: tuple[Any, ...], owner: str, content: object) -> Size:
    depth, count = 0, 1
    for number, part in enumerate(parts):
        if isinstance(part, str):
            checked_text(part, f"part {number} of {owner}")
        elif isinstance(part, type) or not (
            callable(getattr(part, "expression", None)) or callable(getattr(part, "program", None))
        ):
            raise ConstrainError(
                f"part {number} of {owner} must be a str or a constraint such as "
                f"constrain.JsonSchema(...), found {type(part).__name__}"
            )
        size = getattr(part, "_size", None)
        if size is not None:
            depth = max(depth, size.depth)
            count += size.parts
        else:
            count += 1
    if depth >= _MAX_DEPTH:
        raise LimitExceededError(
            f"{owner}: constraints are nested more than {_MAX_DEPTH} deep", limit="nesting"
        )
    if count > _MAX_PARTS:
        raise LimitExceededError(
            f"{owner}: a constraint of more than {_MAX_PARTS} parts", limit="parts"
        )
    return Size(depth + 1, count, hash((owner, content)))
