"""``constrain check``: analyse a schema and say what is wrong, unlimited or surprising in it.

Grammars are compiled, and what has no effect in them is told. No model is needed.  The findings and their codes are those of `constrain.schema.findings`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

from constrain.cli import _runtime
from constrain.cli._constraint import read_schema
from constrain.cli._errors import CliError, ExitCode, placed
from constrain.cli._grammar import GRAMMAR_OPTIONS, add_grammar_options, build_grammar
from constrain.cli._inputs import input_name, require_one
from constrain.cli._output import write_text
from constrain.errors import ConstrainError, GrammarWarning

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  constrain check ticket.json
  constrain check ticket.json --strict
  constrain check ticket.json --json | jq '.report.findings[] | select(.severity != "info")'
  constrain check --gbnf chess.gbnf

exit codes:
  0  no errors (with --strict: no warnings either)
  1  the schema or grammar is invalid, cannot be enforced, or has errors
  3  the file cannot be read
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "check",
        help="find what is wrong or surprising in a JSON Schema or a grammar",
        description="Analyse a JSON Schema without a model: what is contradictory, can never "
        "appear, has no limits or looks like a mistake, and what is enforced, narrowed and "
        "ignored. Of a grammar: what is wrong in it, where, and what has no effect.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "schema", metavar="SCHEMA", nargs="?", help='a JSON Schema ("-": standard input)'
    )
    add_grammar_options(parser.add_argument_group("a grammar instead of a schema"))
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    parser.add_argument("--strict", action="store_true", help="warnings fail as well")
    parser.add_argument(
        "--draft",
        choices=("2020-12", "2019-09", "7", "6", "4"),
        help="the draft where the schema names none in $schema (default: 2020-12)",
    )
    parser.add_argument(
        "--formats",
        choices=("assert", "ignore"),
        help="whether `format` is enforced (default: assert)",
    )
    parser.add_argument(
        "--content",
        choices=("ignore", "assert"),
        help="whether `contentEncoding` is enforced (default: ignore)",
    )
    parser.add_argument(
        "--extra-properties",
        choices=("forbid", "schema"),
        help="as in `generate` and `extract` (default: forbid)",
    )
    parser.add_argument(
        "--escapes",
        choices=("plain", "any"),
        help="as in `generate` and `extract` (default: plain)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    given = [option for option in GRAMMAR_OPTIONS if getattr(args, option) is not None]
    told = ["SCHEMA"] * (args.schema is not None) + [f"--{option}" for option in given]
    known = ["SCHEMA", *(f"--{option}" for option in GRAMMAR_OPTIONS)]
    require_one(told, known, "nothing to check")
    return _check_grammar(args) if given else _check_schema(args)


def _check_grammar(args: argparse.Namespace) -> ExitCode:
    for option in _SCHEMA_DEFAULTS:
        if getattr(args, option) is not None:
            shown = option.replace("_", "-")
            raise CliError(f"--{shown} goes with a schema", ExitCode.USAGE)
    name, make = build_grammar(args)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrammarWarning)  # they are in the notes
            program = _runtime.compile_alone(make()).program
    except ConstrainError as error:
        return _failed(args, "grammar", name, error)
    found = list(map(str, program.notes.get("warnings", ())))
    failed = args.strict and found
    if args.json:
        size = {"states": program.args[1], "bytes": 4 * len(program.args)}
        _print_json({"grammar": name, "ok": not failed, "warnings": found, "size": size})
    else:
        verdict = _verdict({"error": 0, "warning": len(found)})
        write_text("".join(f"{line}\n" for line in (f"{name}: {verdict}", *found)))
    return ExitCode.FAILED if failed else ExitCode.OK


def _failed(args: argparse.Namespace, what: str, name: str, error: ConstrainError) -> ExitCode:
    """Report an error in the input, which is of the kind `what`."""
    if not args.json:
        raise CliError(placed(name, error), ExitCode.FAILED) from error
    failure = {"kind": type(error).__name__, "message": getattr(error, "message", str(error))}
    for place in ("pointer", "line", "column"):
        value = getattr(error, place, None)
        if value is not None:
            failure[place] = value
    _print_json({what: name, "ok": False, "error": failure})
    return ExitCode.FAILED


_SCHEMA_DEFAULTS = {
    "draft": "2020-12",
    "formats": "assert",
    "content": "ignore",
    "extra_properties": "forbid",
    "escapes": "plain",
}


def _check_schema(args: argparse.Namespace) -> ExitCode:
    import constrain

    name = input_name(args.schema)
    for option in ("set", "start"):
        if getattr(args, option) is not None:
            raise CliError(f"--{option} goes with a grammar", ExitCode.USAGE)
    schema = read_schema(args.schema)
    policies: dict[str, Any] = {
        option: getattr(args, option) or default for option, default in _SCHEMA_DEFAULTS.items()
    }
    try:
        spec = constrain.JsonSchema(schema, **policies)
        program = spec.program()
        report = spec.report(analyze=True)
        if not report.of_severity("error"):
            _runtime.compile_alone(spec)  # the core has limits of its own
    except ConstrainError as error:
        return _failed(args, "schema", name, error)
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
