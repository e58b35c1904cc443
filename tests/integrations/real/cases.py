"""What every engine is run on: SmolLM2 with three schemas and one tool call.

Each engine has a script here (``python -m tests.integrations.real.ENGINE``), to be run in an
environment of its own, since they pin each other's dependencies; `docs/engines/` has the commands
and the versions with which they were run.  A script prints one line for each text and fails if one
of them is not valid.  Texts are not compared between engines: near-ties are decided differently.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

__all__ = ["CASES", "MAX_TOKENS", "Case", "Judged", "judge", "main", "messages", "rounds"]

MAX_TOKENS = 90

Case = tuple[str, str, dict[str, Any]]  # name, what the user says, schema

_TICKET = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "maxLength": 60},
        "severity": {"enum": ["low", "medium", "high", "critical"]},
        "component": {"type": "string", "pattern": "^[a-z][a-z-]{2,20}$"},
    },
    "required": ["title", "severity", "component"],
    "additionalProperties": False,
}
_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "languages": {"type": "array", "items": {"enum": ["en", "de", "fr"]}, "uniqueItems": True},
        # the judge of dates is Python, which has no year 0
        "born": {"type": "string", "format": "date", "pattern": "^(19|20)"},
    },
    "required": ["name", "age", "languages", "born"],
    "additionalProperties": False,
}
_ORDER = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
                    "count": {"type": "integer", "minimum": 1, "maximum": 99},
                },
                "required": ["sku", "count"],
                "additionalProperties": False,
            },
        },
        "paid": {"type": "boolean"},
    },
    "required": ["items", "paid"],
    "additionalProperties": False,
}
_CALL = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "name": {"const": "get_weather"},
                "arguments": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "maxLength": 30},
                        "unit": {"enum": ["celsius", "fahrenheit"]},
                    },
                    "required": ["city"],
                    "additionalProperties": False,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "name": {"const": "add"},
                "arguments": {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                    "required": ["a", "b"],
                    "additionalProperties": False,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        },
    ]
}

CASES: tuple[Case, ...] = (
    ("ticket", "The login page crashes after the last update. Write a ticket as JSON.", _TICKET),
    ("person", "Anna Berg, born 1984-05-02, speaks English and German. As JSON:", _PERSON),
    ("order", "I want two AB-123 and seven XY-900, paid by card. The order as JSON:", _ORDER),
    ("tool call", "What is the weather in Oslo? Call get_weather, as JSON.", _CALL),
)


def messages(case: Case) -> list[dict[str, str]]:
    """The conversation of a case."""
    return [{"role": "user", "content": case[1]}]


def judge(case: Case, text: str) -> str | None:
    """Why the text is not valid; None if it is."""
    import jsonschema

    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON: {error}"
    checker = jsonschema.FormatChecker(formats=["date"])
    validator = jsonschema.Draft202012Validator(case[2], format_checker=checker)
    return next((error.message for error in validator.iter_errors(value)), None)


Judged = tuple[str, str, str | None]  # a name, a text, and why it is not valid

Mode = tuple[str, Callable[[Sequence[Case]], Sequence[str] | Sequence[Judged]]]


def rounds(texts: Sequence[str], cases: Sequence[Case]) -> list[str]:
    """Texts that come case by case, several of each, in the order of the cases round by round."""
    count = len(texts) // len(cases)
    return [texts[n * count + k] for k in range(count) for n in range(len(cases))]


def main(
    engine: str,
    packages: Sequence[str],
    prepare: Callable[..., Sequence[Mode]],
    settings: Sequence[str] = (),
) -> int:
    """Run all modes of an engine and print what came.

    Args:
        engine: its name.
        packages: distributions whose versions are printed.
        prepare: gets the folder of the model, and the setting if there are any; gives the modes,
            each a name and a function from cases to their texts (round by round, where a case has
            several), or to texts that it has judged itself.
        settings: ways to start the engine, one of which is an argument of the command.
    """
    parser = argparse.ArgumentParser(description=f"SmolLM2 in {engine}, under constraints")
    parser.add_argument("--model", help="the folder of the model (default: SmolLM2)")
    parser.add_argument("--only", metavar="MODE", action="append", help="run these modes alone")
    if settings:
        parser.add_argument("setting", choices=settings)
    arguments = parser.parse_args()
    model = arguments.model
    if model is None:
        from constrain.models import default_model_folder

        model = str(default_model_folder())
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    print(f"{engine}: {versions}, Python {platform.python_version()}", flush=True)
    failed = count = 0
    for mode, run in prepare(model, *([arguments.setting] if settings else [])):
        if arguments.only and mode not in arguments.only:
            continue
        start = time.perf_counter()
        texts: list[Any] = list(run(CASES))
        seconds = time.perf_counter() - start
        judged: list[Judged] = texts
        if not texts or isinstance(texts[0], str):
            cases = CASES * (len(texts) // len(CASES))
            judged = [(case[0], text, judge(case, text)) for case, text in zip(cases, texts)]
            if not texts or len(texts) % len(CASES):
                print(f"  {mode}: {len(texts)} texts for {len(CASES)} cases")
                failed += 1
        for name, text, problem in judged:
            count += 1
            failed += problem is not None
            print(f"  {mode}, {name}: {text!r}" + (f"  NOT VALID: {problem}" if problem else ""))
        print(f"  {mode}: {len(texts)} texts in {seconds:.1f} s", flush=True)
    print(f"{engine}: {count - failed} of {count} texts are valid")
    return 1 if failed else 0


def leave(code: int) -> None:
    """Exit without waiting for an engine's threads."""
    sys.stdout.flush()
    raise SystemExit(code)
