"""``constrain generate``: one constrained text, streamed to standard output.

Text goes out as UTF-8 and is flushed piece by piece; a character that the model writes in several
tokens is shown when it is whole (the decode loop holds incomplete bytes back).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from constrain.cli import _runtime
from constrain.cli._constraint import add_constraint_options, build_constraint
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._options import (
    add_loop_options,
    add_model_options,
    add_sampling_options,
    sampling_of,
)
from constrain.cli._output import write_text
from constrain.cli._prompt import read_prompt
from constrain.cli._report import json_text, steps_of, table, write_plot

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  constrain generate "Describe a fruit." --schema fruit.json
  constrain generate "Is the sky blue?" --choice yes --choice no
  constrain generate "A phone number:" --regex '\\+[0-9]{1,3} [0-9]{6,12}' --temperature 0
  constrain generate "The largest city?" --grammar sql --set 'tables={"city": ["name", "size"]}'
  constrain generate "A haiku." --gbnf haiku.gbnf
  echo "Where is Rome?" | constrain generate - --model-class places:Place --seed 7
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "generate",
        help="generate one text that satisfies a constraint",
        description="Generate one text that satisfies a JSON Schema, a type, a regular expression, "
        "a grammar or a list of choices, and write it to standard output as it comes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("prompt", metavar="PROMPT", help='the user message ("-": standard input)')
    add_constraint_options(parser, text=True)
    add_model_options(parser)
    add_sampling_options(parser, temperature=1.0, max_tokens=512)
    add_loop_options(parser)
    parser.add_argument(
        "--no-stream", action="store_true", help="write the text at the end, not as it comes"
    )
    parser.add_argument(
        "--stats",
        nargs="?",
        choices=("table", "json"),
        const="table",
        help="write what it took to standard error: latencies, tokens per second, forward passes,"
        " time and effect of the masks",
    )
    parser.add_argument("--stats-plot", metavar="FILE", help="draw the main ones as an SVG file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    constraint = build_constraint(args)
    messages = [{"role": "user", "content": read_prompt(args.prompt)}]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    engine = _runtime.open_engine(args.model, constraint.spec)

    measured = args.stats is not None or args.stats_plot is not None
    sampling = replace(sampling_of(args), measure=measured)
    result = engine.generate(messages, sampling, None if args.no_stream else write_text)
    write_text("\n" if not args.no_stream else result.text + "\n")
    _report(args, result)
    problem = _runtime.unfinished(result, sampling, is_json=constraint.is_json)
    if problem is not None:
        kind, message = problem
        hint = "; raise --max-tokens" if kind == "max_tokens" else ""
        raise CliError(message + hint, ExitCode.FAILED)
    if constraint.check is not None:
        try:
            constraint.check(result.text)
        except ValueError as error:
            raise CliError(
                f"the output is no {constraint.name}: {error}", ExitCode.FAILED
            ) from error
    return ExitCode.OK


def _report(args: argparse.Namespace, result: _runtime.Output) -> None:
    """Write the statistics that were asked for."""
    if args.stats is None and args.stats_plot is None:
        return
    from constrain.decoding import Metrics

    columns = {"this text": Metrics.of([result.timings])}
    steps = steps_of(result.timings)
    if args.stats is not None:
        text = table(columns) if args.stats == "table" else json_text(columns, steps=steps)
        sys.stderr.write(text)
    if args.stats_plot is not None:
        write_plot(args.stats_plot, "constrain generate", columns, steps)
