"""``constrain call``: a model's message with calls of tools, each of them valid.

Calls go to standard output as one JSON object a line, prose as it is.  With ``--run`` the functions
of a Python module are called, and the model goes on with their results until it answers.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

from constrain.cli import _runtime
from constrain.cli._constraint import read_schema
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._options import (
    add_model_options,
    add_sampling_options,
    bounded_int,
    sampling_of,
)
from constrain.cli._output import write_text
from constrain.cli._prompt import read_prompt
from constrain.errors import ConstrainError

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
examples:
  constrain call "Is it cold in Oslo?" --tools tools.json
  constrain call "Add 2 and 3." --tools calculator.py --tool-choice add
  constrain call "Add 2 and 3." --tools calculator:TOOLS --run --max-turns 3
  constrain call "Book it or say why not." --tools tools.json --answer-schema refusal.json

--tools takes a JSON file (a list of tools in the form of OpenAI, Anthropic or MCP), a Python file
or module, whose public functions are the tools, or MODULE:NAME, a list of tools in it.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "call",
        help="let a model call tools",
        description="Let a model answer a prompt with calls of tools, in the format that its chat "
        "template is made for. Every call names a tool and has arguments that its schema allows.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("prompt", metavar="PROMPT", help='the user message ("-": standard input)')
    group = parser.add_argument_group("tools")
    group.add_argument(
        "--tools", metavar="FILE|MODULE", required=True, help="the tools, see below (required)"
    )
    group.add_argument(
        "--tool-choice",
        metavar="CHOICE",
        action="append",
        help="auto, required, none, or the name of a tool that must be called; repeat for several "
        "names, one of which must be (default: auto)",
    )
    group.add_argument(
        "--no-parallel", action="store_true", help="at most one call in each message"
    )
    group.add_argument(
        "--format",
        metavar="NAME",
        default="auto",
        help="how calls are written; by default read from the chat template, or hermes where that "
        "writes no calls",
    )
    group.add_argument(
        "--reasoning", choices=("optional", "required"), help="a thinking section (default: none)"
    )
    group.add_argument(
        "--declared-order", action="store_true", help="arguments come in the order of the schema"
    )
    group.add_argument(
        "--escapes",
        choices=("plain", "any"),
        default="plain",
        help="escapes in JSON strings: only those that JSON requires, or any (default: plain)",
    )
    group.add_argument(
        "--whitespace",
        choices=("template", "bounded"),
        default="template",
        help="whitespace in calls: as the format writes it, or any (default: template)",
    )
    group.add_argument(
        "--answer-schema",
        metavar="FILE",
        help="a JSON Schema for what is no call, instead of prose",
    )
    group.add_argument(
        "--run",
        dest="execute",
        action="store_true",
        help="call the functions and go on with their results",
    )
    group.add_argument(
        "--max-turns",
        type=bounded_int(1),
        default=8,
        metavar="N",
        help="messages of the model, with --run (default: 8)",
    )
    group.add_argument(
        "--json", action="store_true", help="write whole messages in the form of OpenAI"
    )
    add_model_options(parser)
    add_sampling_options(parser, temperature=0.0, max_tokens=512)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    tools = _tools(args.tools)
    choice: object = args.tool_choice or "auto"
    if isinstance(choice, list) and len(choice) == 1:
        choice = choice[0]
    answer = None if args.answer_schema is None else read_schema(args.answer_schema)
    messages = [{"role": "user", "content": read_prompt(args.prompt)}]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    _check(tools, choice, answer, args)

    chat = _runtime.open_chat(
        args.model,
        sampling_of(args),
        format=args.format,
        reasoning=args.reasoning,
        **_spelling(args),
        answer=answer,
    )
    return (
        _run_tools(chat, tools, choice, messages, args)
        if args.execute
        else _call_once(chat, tools, choice, messages, args)
    )


def _spelling(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "arguments_order": "declared" if args.declared_order else "any",
        "escapes": args.escapes,
        "whitespace": args.whitespace,
    }


def _check(tools: Any, choice: object, answer: Any, args: argparse.Namespace) -> None:
    """Mistakes that show without a model are told before one is loaded."""
    from constrain.tools.constraint import ToolCalls

    form = "hermes" if args.format == "auto" else args.format
    spec = ToolCalls(
        tools,
        format=form,
        tool_choice=choice,
        reasoning=None if args.format == "auto" else args.reasoning,
        **_spelling(args),
        answer=answer,
    )
    _runtime.compile_alone(spec)
    if args.execute:
        silent = [tool.name for tool in tools if tool.target is None]
        if silent:
            raise CliError(
                f"--run needs functions to call: {silent[0]} is only described", ExitCode.USAGE
            )


def _call_once(
    chat: Any, tools: Any, choice: object, messages: list[dict[str, Any]], args: argparse.Namespace
) -> ExitCode:
    from constrain.tools.parser import parse_message

    reply = chat.reply(messages, tools, choice, not args.no_parallel)
    message = parse_message(
        chat.format, tools, reply.text, prompt=reply.prompt, answer=args.answer_schema is not None
    )
    _show(message, args)
    if not reply.complete:
        raise CliError("the message was cut off; raise --max-tokens", ExitCode.FAILED)
    return ExitCode.OK


def _run_tools(
    chat: Any, tools: Any, choice: object, messages: list[dict[str, Any]], args: argparse.Namespace
) -> ExitCode:
    from constrain.tools.agent import Execution, run_agent

    def executed(execution: Execution) -> None:
        if args.json:
            return
        call = execution.call
        line = {"name": call.name, "arguments": call.arguments, "result": execution.content}
        write_text(json.dumps(line, ensure_ascii=False) + "\n")

    result = run_agent(
        chat,
        tools,
        messages,
        # a call that must be made is made once: then the model answers
        tool_choice=lambda turn: choice if turn == 0 or choice in ("auto", "none") else "auto",
        parallel=not args.no_parallel,
        max_turns=args.max_turns,
        on_execution=executed,
    )
    if args.json:
        for message in result.messages[len(messages) :]:
            write_text(json.dumps(message, ensure_ascii=False) + "\n")
    elif result.answer:
        write_text(result.answer.rstrip("\n") + "\n")
    if result.finish_reason == "incomplete":
        raise CliError("the last message was cut off; raise --max-tokens", ExitCode.FAILED)
    if result.finish_reason == "turns":
        raise CliError(f"there was no answer after {args.max_turns} messages", ExitCode.FAILED)
    return ExitCode.OK


def _show(message: Any, args: argparse.Namespace) -> None:
    if args.json:
        write_text(json.dumps(message.to_openai(), ensure_ascii=False) + "\n")
        return
    if message.text.strip():
        write_text(message.text.strip() + "\n")
    for call in message.calls:
        line = {"name": call.name, "arguments": call.arguments}
        write_text(json.dumps(line, ensure_ascii=False) + "\n")


# -- where tools come from -----------------------------------------------------------------------


def _tools(name: str) -> Any:
    """The tools that ``--tools`` names.  Raises CliError."""
    from constrain.tools.definitions import make_tools

    if name == "-" or name.endswith(".json"):
        found: Any = read_schema(name)
    else:
        found = _of_module(name)
    try:
        return make_tools(found)
    except ConstrainError as error:
        raise CliError(f"{name}: {error}") from error


def _of_module(name: str) -> Any:
    path, _, attribute = name.partition(":")
    module_name = path
    folder = os.getcwd()
    if path.endswith(".py"):
        file = Path(path)
        if not file.is_file():
            raise CliError(f"cannot read the tools {path}: no such file")
        folder, module_name = str(file.resolve().parent), file.stem
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        # The user's module is run here, so any exception at all may come out of it.
        raise CliError(f"cannot import {module_name}: {type(error).__name__}: {error}") from error
    if attribute:
        if not hasattr(module, attribute):
            raise CliError(f"the module {module_name} has no {attribute}")
        return getattr(module, attribute)
    found = [
        value
        for key, value in vars(module).items()
        if inspect.isfunction(value) and not key.startswith("_") and value.__module__ == module_name
    ]
    if not found:
        raise CliError(f"the module {module_name} has no public functions")
    return found
