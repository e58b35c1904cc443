"""From command-line options to a constraint: ``--schema``, ``--model-class``, ``--regex``, ``--choice``,
and the grammars of `constrain.cli._grammar`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from constrain.cli._errors import CliError, ExitCode, placed, told_warnings
from constrain.cli._grammar import GRAMMAR_OPTIONS, add_grammar_options, build_grammar
from constrain.cli._inputs import read_text, require_one
from constrain.cli._json import JsonInputError, decode_utf8, parse_json
from constrain.errors import ConstrainError

__all__ = [
    "Constraint",
    "add_constraint_options",
    "build_constraint",
    "constraint_of_schema",
    "read_schema",
]


@dataclass(frozen=True)
class Constraint:
    """What the output must satisfy, and how messages and prompts speak of it."""

    spec: Any  # a constrain spec: JsonSchema, Regex, Choice, Lark or Gbnf
    name: str  # the file, option or class, for messages
    is_json: bool
    schema: Any = None  # the JSON Schema, where there is one
    # Raises ValueError if an output is not a value of the model class; None where the schema is all.
    check: Callable[[str], object] | None = None


def add_constraint_options(parser: argparse.ArgumentParser, *, text: bool) -> None:
    """Add the options of a constraint, one of which is required; `text` adds what is not JSON."""
    group = parser.add_argument_group("what the output must be (one is required)")
    group.add_argument("--schema", metavar="FILE", help="a JSON Schema, as a file")
    group.add_argument(
        "--model-class",
        metavar="MODULE:CLASS",
        help="a pydantic model, dataclass or TypedDict; modules are found in the current folder too",
    )
    if text:
        group.add_argument(
            "--regex", metavar="PATTERN", help="a regular expression that the whole output matches"
        )
        group.add_argument(
            "--choice",
            metavar="TEXT",
            action="append",
            help="a text the output may be; repeat for each",
        )
        add_grammar_options(group)
    group.add_argument(
        "--extra-properties",
        choices=("forbid", "schema"),
        default="forbid",
        help="properties that an object of the schema does not declare: forbid them where the "
        "schema is silent, or do what the schema says, which usually allows any (default: forbid)",
    )
    group.add_argument(
        "--escapes",
        choices=("plain", "any"),
        default="plain",
        help="escapes in JSON strings: only those that JSON requires, or any (default: plain)",
    )


def build_constraint(args: argparse.Namespace) -> Constraint:
    """The constraint that the options name.  Raises CliError with the place of any mistake in it."""
    given = [
        option
        for option in ("schema", "model_class", "regex", "choice", *GRAMMAR_OPTIONS)
        if getattr(args, option, None) is not None
    ]
    names = ["--schema", "--model-class"]
    if hasattr(args, "regex"):
        names += ["--regex", "--choice", *(f"--{option}" for option in GRAMMAR_OPTIONS)]
    told = [f"--{name.replace('_', '-')}" for name in given]
    require_one(told, names, "no constraint is given")
    policies = {"extra_properties": args.extra_properties, "escapes": args.escapes}
    if given == ["schema"]:
        return _from_schema(read_schema(args.schema), policies, args.schema)
    if given == ["model_class"]:
        return _from_type(_import_class(args.model_class), policies, args.model_class)
    if given[0] in GRAMMAR_OPTIONS:
        name, make = build_grammar(args)
        return _checked(make, name, is_json=False)
    import constrain

    if given == ["regex"]:
        return _checked(lambda: constrain.Regex(args.regex), "--regex", is_json=False)
    return _checked(lambda: constrain.Choice(args.choice), "--choice", is_json=False)


def read_schema(path: str) -> Any:
    """The JSON value in the file `path` ("-" is standard input), which may not yet be a schema."""
    try:
        return parse_json(read_text(path, "schema"))
    except JsonInputError as error:
        raise CliError(f"{path}: {error}") from error


def constraint_of_schema(schema: Any, extra_properties: str, name: str = "schema") -> Constraint:
    """The constraint of a JSON Schema (a value or its text) or of a type that pydantic understands.

    Strings are written with plain escapes, as on the command line.

    Raises CliError, with `name`, for any mistake in it.
    """
    policies: dict[str, Any] = {"extra_properties": extra_properties, "escapes": "plain"}
    if isinstance(schema, (str, bytes)):
        try:
            schema = parse_json(decode_utf8(schema) if isinstance(schema, bytes) else schema)
        except JsonInputError as error:
            raise CliError(f"{name}: {error}") from error
    elif not isinstance(schema, (dict, bool)):
        return _from_type(schema, policies, name)
    return _from_schema(schema, policies, name)


def _from_schema(schema: Any, policies: dict[str, Any], name: str) -> Constraint:
    import constrain

    return _checked(
        lambda: constrain.JsonSchema(schema, **policies),
        name,
        is_json=True,
        schema=schema,
    )


def _from_type(found: Any, policies: dict[str, Any], name: str) -> Constraint:
    import constrain

    try:
        import pydantic
    except ImportError:
        raise CliError("a model class needs pydantic: pip install pydantic") from None
    try:
        adapter: Any = pydantic.TypeAdapter(found)
        schema = adapter.json_schema()
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise CliError(f"{name} has no JSON Schema: {type(error).__name__}: {first}") from error
    return _checked(
        lambda: constrain.JsonSchema(found, **policies),
        name,
        is_json=True,
        schema=schema,
        check=adapter.validate_json,
    )


def _import_class(name: str) -> Any:
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute:
        raise CliError(f"--model-class: {name!r} is not of the form MODULE:CLASS", ExitCode.USAGE)
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        # The user's module is run here, so any exception at all may come out of it.
        raise CliError(f"cannot import {module_name}: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise CliError(f"the module {module_name} has no {attribute}")
        found = getattr(found, part)
    return found


def _checked(
    make: Callable[[], Any],
    name: str,
    *,
    is_json: bool,
    schema: Any = None,
    check: Callable[[str], object] | None = None,
) -> Constraint:
    """The constraint, compiled once without a model, so that mistakes show before a model is loaded."""
    from constrain.cli import _runtime

    try:
        spec = make()
        with told_warnings(name):
            _runtime.compile_alone(spec)
    except ConstrainError as error:
        raise CliError(placed(name, error)) from error
    return Constraint(spec, name, is_json, schema, check)
