"""The programs of arguments: a tool's schema, spelled as the format writes arguments."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from constrain.errors import ConstrainError
from constrain.schema.spec import JsonSchema
from constrain.tools.definitions import Tool
from constrain.tools.errors import ToolError
from constrain.tools.language import ArgumentsNode, Json, Keywords
from constrain.tools.surfaces import (
    marked_program,
    may_be_empty,
    python_program,
    tagged_program,
)

if TYPE_CHECKING:
    from constrain.program import Program
    from constrain.tools.spelling import Spelling

__all__ = ["arguments_program"]


def arguments_program(node: ArgumentsNode, spelling: Spelling, order: str) -> tuple[Program, bool]:
    """The program of a node's texts, and whether no text at all may stand for no arguments.

    Raises ToolError for what the schema says.
    """
    program = _schema_program(node.tool, order)
    if isinstance(node, Json):
        if node.style.is_plain:
            return program, False
        return marked_program(program, node.style, spelling.of), False
    if isinstance(node, Keywords):
        program = python_program(program, node.style)
    else:
        program = tagged_program(
            program, node.style, node.head, node.tail, node.tool.closed_parameters, spelling.of
        )
    return program, may_be_empty(program)


def _schema_program(tool: Tool, order: str) -> Program:
    """The program of a tool's arguments as JSON."""
    try:
        return _program(json.dumps(tool.closed_parameters), order)
    except ConstrainError as error:
        raise ToolError(f"its parameters: {error}", tool=tool.name) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"its parameters are not JSON: {error}", tool=tool.name) from error


@lru_cache(maxsize=512)
def _program(schema: str, order: str) -> Program:
    """Kept, since servers are sent the same tools with every request."""
    return JsonSchema(json.loads(schema), extra_properties="forbid", property_order=order).program()
