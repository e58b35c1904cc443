"""Entry point of the `constrain` command: the parser, and failures as sentences and exit codes.

Whatever goes wrong, the user sees ``constrain: error: <sentence>`` on standard error and one of the
codes of `ExitCode`; CONSTRAIN_DEBUG=1 in the environment shows the traceback as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata

from constrain.cli import bench_model, call, check, explain, extract, generate, grammars
from constrain.cli._errors import CliError, ExitCode, os_reason
from constrain.errors import ConstrainError

__all__ = ["build_parser", "main"]

_EPILOG = """\
examples:
  constrain extract tickets.jsonl --schema ticket.json --output tickets.out.jsonl
  constrain generate "Is the sky blue?" --choice yes --choice no
  constrain call "Is it cold in Oslo?" --tools tools.json
  constrain generate "When was the moon landing?" --grammar iso8601
  constrain check ticket.json
  constrain explain '{"age": 13' --schema person.json
  constrain bench-model --batch 1,8
  constrain grammars

exit codes:
  0    everything went well
  1    a record failed, an output was cut off, `check` found an error, or `explain` a wrong text
  2    the command line is wrong
  3    an input cannot be read or used, or an output cannot be written
  130  interrupted (Ctrl-C)

`constrain COMMAND --help` explains a command.  CONSTRAIN_DEBUG=1 shows tracebacks.
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="constrain",
        description="Text from a language model that always satisfies a JSON Schema, a regular "
        "expression, a grammar or a list of choices.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"constrain {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    generate.add_parser(commands)
    call.add_parser(commands)
    extract.add_parser(commands)
    check.add_parser(commands)
    explain.add_parser(commands)
    bench_model.add_parser(commands)
    grammars.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return its exit code."""
    try:
        args = build_parser().parse_args(argv)
        code = args.run(args)
        _flush()
        return int(code)
    except SystemExit as stop:  # argparse: --help, --version and usage errors
        return stop.code if isinstance(stop.code, int) else ExitCode.USAGE
    except BrokenPipeError:
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except CliError as error:
        return _fail(str(error), error.code)
    except ConstrainError as error:
        return _fail(str(error), ExitCode.BAD_INPUT)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{os_reason(error)}", ExitCode.BAD_INPUT)
    except MemoryError:
        return _fail("out of memory", ExitCode.BAD_INPUT)
    except Exception as error:
        return _fail(
            f"internal error: {type(error).__name__}: {error} (CONSTRAIN_DEBUG=1 shows where)",
            ExitCode.INTERNAL,
        )


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise CliError(f"cannot write to standard output: {os_reason(error)}") from error


def _discard_output() -> None:
    """Send what is buffered nowhere: it cannot be written, and exiting would try and fail again."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _fail(message: str, code: ExitCode) -> int:
    """Report the exception being handled and give its exit code."""
    if os.environ.get("CONSTRAIN_DEBUG") == "1":
        traceback.print_exc()
    prefix = "constrain: " if code is ExitCode.INTERRUPTED else "constrain: error: "
    sys.stderr.write(prefix + message.rstrip() + "\n")
    return code


def _version() -> str:
    try:
        return metadata.version("constrain")
    except metadata.PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
