"""``constrain grammars``: which grammars come with constrain, and what they say.

Without a name a line for each; with one its whole text, which can be kept in a file, changed and
given to ``--lark`` or ``--gbnf``.
"""

from __future__ import annotations

import argparse
import json

from constrain.cli._errors import CliError, ExitCode
from constrain.cli._grammar import parameters_of
from constrain.cli._output import write_text
from constrain.errors import ConstrainError

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  constrain grammars
  constrain grammars sql --about
  constrain grammars csv --set 'header=["name", "age"]' > people.gbnf
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "grammars",
        help="list the grammars that come with constrain, or show one",
        description="List the grammars that --grammar takes, or write the text of one to standard "
        "output.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the grammar to show")
    parser.add_argument(
        "--about",
        action="store_true",
        help="what the grammar reads, its parameters and what it leaves out, instead of its text",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        help="a parameter of the grammar, JSON or a text; repeat for each",
    )
    parser.add_argument("--json", action="store_true", help="descriptions as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    from constrain import grammars

    if args.name is None and (args.about or args.set):
        option = "--about" if args.about else "--set"
        raise CliError(f"{option} needs the name of a grammar", ExitCode.USAGE)
    names = grammars.names() if args.name is None else [args.name]
    try:
        found = [grammars.info(name) for name in names]
        if args.json:
            shown = [
                {
                    "name": info.name,
                    "format": info.format,
                    "title": info.title,
                    "about": info.about,
                    "parameters": dict(info.parameters),
                    "required": list(info.required),
                }
                for info in found
            ]
            value = shown if args.name is None else shown[0]
            write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        elif args.name is None:
            width = max(map(len, names))
            for info in found:
                write_text(f"{info.name:<{width}}  {info.title}\n")
        elif args.about:
            write_text(found[0].about + "\n")
        else:
            write_text(grammars.text(args.name, **parameters_of(args.set)))
    except ConstrainError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    return ExitCode.OK
