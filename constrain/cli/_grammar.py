"""From command-line options to grammars: ``--lark``, ``--gbnf``, ``--grammar``, ``--set``, ``--start``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from constrain.cli._errors import CliError, ExitCode
from constrain.cli._inputs import input_name, read_text
from constrain.cli._json import JsonInputError, parse_json

__all__ = ["GRAMMAR_OPTIONS", "add_grammar_options", "build_grammar", "parameters_of"]

GRAMMAR_OPTIONS = ("lark", "gbnf", "grammar")


def add_grammar_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that name a grammar, and those that go with them."""
    group.add_argument("--lark", metavar="FILE", help="a grammar in Lark's syntax")
    group.add_argument("--gbnf", metavar="FILE", help="a grammar in GBNF, llama.cpp's format")
    group.add_argument(
        "--grammar", metavar="NAME", help="a grammar of `constrain grammars`, such as iso8601"
    )
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        help="a parameter of --grammar, JSON or a text; repeat for each",
    )
    group.add_argument(
        "--start",
        metavar="RULE",
        help="the rule to begin with (default: start with --lark, root with --gbnf)",
    )


def build_grammar(args: argparse.Namespace) -> tuple[str, Callable[[], Any]]:
    """A name for messages, and what makes the spec.  Raises CliError."""
    import constrain

    if args.set and args.grammar is None:
        raise CliError("--set goes with --grammar", ExitCode.USAGE)
    if args.grammar is not None:
        if args.start is not None:
            raise CliError("--start goes with --lark or --gbnf", ExitCode.USAGE)
        from constrain import grammars

        parameters = parameters_of(args.set)
        return f"--grammar {args.grammar}", lambda: grammars.load(args.grammar, **parameters)
    if args.lark is not None:
        text = read_text(args.lark, "grammar")
        folder = os.path.dirname(os.path.abspath(args.lark)) if args.lark != "-" else os.getcwd()
        start = args.start or "start"
        return input_name(args.lark), lambda: constrain.Lark(
            text, start=start, import_paths=[folder]
        )
    text = read_text(args.gbnf, "grammar")
    return input_name(args.gbnf), lambda: constrain.Gbnf(text, root=args.start or "root")


def parameters_of(given: list[str] | None) -> dict[str, Any]:
    """The values of ``--set KEY=VALUE``: JSON where they are JSON, else texts."""
    found: dict[str, Any] = {}
    for item in given or ():
        key, separator, value = item.partition("=")
        if not separator or not key.isidentifier():
            raise CliError(f"--set: {item!r} is not of the form KEY=VALUE", ExitCode.USAGE)
        if key in found:
            raise CliError(f"--set: {key} is given twice", ExitCode.USAGE)
        try:
            found[key] = parse_json(value)
        except JsonInputError:
            found[key] = value
    return found
