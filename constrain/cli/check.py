"""``constrain check``: compile a schema and say what of it is enforced, without a model."""

from __future__ import annotations

import argparse
import json
from typing import Any

from constrain.cli import _runtime
from constrain.cli._constraint import read_schema
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._output import write_text
from constrain.errors import ConstrainError

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  constrain check ticket.json
  constrain check ticket.json --json | jq .report.counts
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "check",
        help="compile a JSON Schema and report what is enforced",
        description="Compile a JSON Schema without a model and report what is enforced, ignored "
        "and narrowed.  The exit code is 1 if the schema is invalid, holds a keyword that cannot "
        "be enforced, or can never be satisfied.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("schema", metavar="SCHEMA", help='a JSON Schema ("-": standard input)')
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    parser.add_argument(
        "--extra-properties",
        choices=("forbid", "schema"),
        default="forbid",
        help="as in `generate` and `extract` (default: forbid)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    import constrain

    name = "standard input" if args.schema == "-" else args.schema
    schema = read_schema(args.schema)
    try:
        spec = constrain.JsonSchema(schema, extra_properties=args.extra_properties)
        compiled = _runtime.compile_alone(spec)
    except ConstrainError as error:
        if not args.json:
            raise CliError(f"{name}: {error}", ExitCode.FAILED) from error
        failure = {"kind": type(error).__name__, "message": getattr(error, "message", str(error))}
        pointer = getattr(error, "pointer", None)
        if pointer is not None:
            failure["pointer"] = pointer
        _print_json({"schema": name, "ok": False, "error": failure})
        return ExitCode.FAILED
    if args.json:
        report = spec.report().to_dict()
        _print_json({"schema": name, "ok": True, "report": report, "size": _size(compiled.program)})
        return ExitCode.OK
    write_text(f"{name}: ok\n\n{spec.report()}\n")
    return ExitCode.OK


def _size(program: Any) -> dict[str, int]:
    return {
        "formulas": len(program.nodes) // 3,
        "strings": len(program.strings),
        "patterns": len(program.regexes),
    }


def _print_json(value: object) -> None:
    write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
