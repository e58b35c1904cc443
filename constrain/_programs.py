"""The tables of a program as the native core takes them."""

from __future__ import annotations

from constrain import _native
from constrain.program import Program

__all__ = ["native_program"]


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
