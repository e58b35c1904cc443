"""``constrain check``: analyse a schema and say what is wrong, unlimited or surprising in it.

No model is needed.  The findings and their codes are those of `constrain.schema.findings`.
"""

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
  constrain check ticket.json --strict
  constrain check ticket.json --json | jq '.report.findings[] | select(.severity != "info")'

exit codes:
  0  no errors (with --strict: no warnings either)
  1  the schema is invalid, cannot be enforced, or has errors
  3  the file cannot be read
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "check",
        help="find what is wrong or surprising in a JSON Schema",
        description="Analyse a JSON Schema without a model: what is contradictory, can never "
        "appear, has no limits or looks like a mistake, and what is enforced, narrowed and "
        "ignored.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("schema", metavar="SCHEMA", help='a JSON Schema ("-": standard input)')
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    parser.add_argument("--strict", action="store_true", help="warnings fail as well")
    parser.add_argument(
        "--draft",
        choices=("2020-12", "2019-09", "7", "6", "4"),
        default="2020-12",
        help="the draft where the schema names none in $schema (default: 2020-12)",
    )
    parser.add_argument(
        "--formats",
        choices=("assert", "ignore"),
        default="assert",
        help="whether `format` is enforced (default: assert)",
    )
    parser.add_argument(
        "--content",
        choices=("ignore", "assert"),
        default="ignore",
        help="whether `contentEncoding` is enforced (default: ignore)",
    )
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
        spec = constrain.JsonSchema(
            schema,
            draft=args.draft,
            formats=args.formats,
            content=args.content,
            extra_properties=args.extra_properties,
        )
        program = spec.program()
        report = spec.report(analyze=True)
        if not report.of_severity("error"):
            _runtime.compile_alone(spec)  # the core has limits of its own
    except ConstrainError as error:
        if not args.json:
            raise CliError(f"{name}: {error}", ExitCode.FAILED) from error
        failure = {"kind": type(error).__name__, "message": getattr(error, "message", str(error))}
        pointer = getattr(error, "pointer", None)
        if pointer is not None:
            failure["pointer"] = pointer
        _print_json({"schema": name, "ok": False, "error": failure})
        return ExitCode.FAILED
    counts = {severity: len(report.of_severity(severity)) for severity in _WORDS}
    failed = counts["error"] or (args.strict and counts["warning"])
    if args.json:
        _print_json(
            {
                "schema": name,
                "ok": not failed,
                "report": report.to_dict(),
                "size": _size(program),
            }
        )
    else:
        write_text(f"{name}: {_verdict(counts)}\n\n{report}\n")
    return ExitCode.FAILED if failed else ExitCode.OK


_WORDS = {"error": "error", "warning": "warning", "info": "remark"}


def _verdict(counts: dict[str, int]) -> str:
    """ "2 errors, 1 warning", or "ok" with the number of lesser findings."""
    said = [f"{n} {_WORDS[s]}{'s' if n != 1 else ''}" for s, n in counts.items() if n]
    if not counts["error"] and not counts["warning"]:
        said.insert(0, "ok")
    return ", ".join(said)


def _size(program: Any) -> dict[str, int]:
    return {
        "formulas": len(program.nodes) // 3,
        "strings": len(program.strings),
        "patterns": len(program.regexes),
    }


def _print_json(value: object) -> None:
    write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
