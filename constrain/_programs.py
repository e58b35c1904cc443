"""Programs and the native core: tables as it takes them, and programs run on bytes alone."""

from __future__ import annotations

from functools import lru_cache

from constrain import _native
from constrain.errors import UnsatisfiableError
from constrain.program import Program
from constrain.vocabulary import Vocabulary

__all__ = ["begun", "byte_matcher", "byte_vocabulary", "native_program"]

_MAX_MEMORY = 64 << 20


def native_program(program: Program) -> _native.Program:
    """A copy of the tables on the native side."""
    return _native.Program(
        program.kind,
        program.nodes,
        program.args,
        program.refs,
        program.values,
        program.regexes,
        program.strings,
        program.root,
        program.whitespace,
        program.numbers,
        program.property_order,
        tuple(native_program(part) for part in program.parts),
        program.escapes,
        None if program.surface is None else tuple(program.surface),
    )


@lru_cache(maxsize=1)
def byte_vocabulary() -> Vocabulary:
    """The vocabulary of single bytes: token i writes byte i, and 256 ends the sequence."""
    return Vocabulary([bytes((byte,)) for byte in range(256)], eos_token_ids=[256])


def byte_matcher(program: Program) -> _native.Matcher:
    """A matcher of a program whose tokens are bytes; nothing reads special tokens.

    Raises UnsatisfiableError if the program has no text.
    """
    native = native_program(program)
    return _native.Matcher(_native.Constraint(byte_vocabulary().native, native, _MAX_MEMORY))


def begun(program: Program, text: bytes) -> int:
    """How many bytes of `text` can be read; all of them where it begins a text of the program."""
    try:
        return byte_matcher(program).validate(list(text))
    except UnsatisfiableError:
        return 0
