"""``constrain explain``: where a text stands under a constraint, and why it cannot go on as it does.

No model is needed: the text is read byte by byte.
"""

from __future__ import annotations

import argparse
import json

from constrain.cli import _runtime
from constrain.cli._constraint import add_constraint_options, build_constraint
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._inputs import read_bytes
from constrain.cli._output import write_text

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  constrain explain '{"age": 13' --schema person.json
  constrain explain --file answer.json --complete --schema person.json
  constrain explain '1 + x' --lark expression.lark
  constrain explain '2024-13' --grammar iso8601 --json | jq .refusal

exit codes:
  0  the text can be continued (with --complete: it is valid)
  1  it cannot: what is written last is refused, or (with --complete) its end is
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "explain",
        help="say what may follow a text, or why it is refused",
        description="Read a text under a constraint, without a model, and say what may come next, "
        "where in the schema or grammar that is and, where the text is wrong, at which byte, what "
        "was expected there and which keywords refuse it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the text so far, maybe empty")
    parser.add_argument(
        "--file", metavar="FILE", help='the text, from a file ("-": standard input)'
    )
    parser.add_argument("--complete", action="store_true", help="the text is meant to be whole")
    parser.add_argument("--json", action="store_true", help="the explanation as one JSON object")
    add_constraint_options(parser, text=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    from constrain.explanations import explain_text

    if (args.text is None) == (args.file is None):
        problem = (
            "nothing to explain" if args.text is None else "TEXT and --file exclude each other"
        )
        raise CliError(f"{problem}; give one of TEXT, --file", ExitCode.USAGE)
    text = args.text.encode() if args.file is None else read_bytes(args.file, "text")
    compiled = _runtime.compile_alone(build_constraint(args).spec)
    found = explain_text(compiled, text, complete=args.complete)
    if args.json:
        write_text(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        write_text(f"{found}\n")
    return ExitCode.OK if found.refusal is None else ExitCode.FAILED
