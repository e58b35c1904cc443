"""How often a small model's tool calls are valid, with the constraint and without.

    python -m tests.benchmarks.tool_calls                 50 prompts, 5 tools, temperature 1.0
    python -m tests.benchmarks.tool_calls --prompts 10 --json out.json

SmolLM2-135M-Instruct answers each prompt freely, then under ``tool_choice="auto"``, then under
"required"; all with the same system message, which describes the tools and the format of calls.  A
call is valid if the parser reads it, it names one of the tools, and the package jsonschema finds its
arguments valid under the tool's schema, other properties forbidden.  Needs the model package.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jsonschema

import constrain
from constrain.tools.chat import ChatPrompts
from constrain.tools.definitions import make_tools
from constrain.tools.events import Message
from constrain.tools.parser import parse_message

_CITY = {"type": "string", "minLength": 2, "maxLength": 30}


def _tool(
    name: str, description: str, required: Sequence[str], **properties: Any
) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": schema}


TOOLS = [
    _tool(
        "get_weather",
        "The weather in a city.",
        ["city"],
        city=_CITY,
        unit={"enum": ["celsius", "fahrenheit"]},
        days={"type": "integer", "minimum": 1, "maximum": 7},
    ),
    _tool(
        "set_timer",
        "Start a timer.",
        ["minutes"],
        minutes={"type": "integer", "minimum": 1, "maximum": 600},
        label={"type": "string", "maxLength": 40},
    ),
    _tool(
        "send_message",
        "Send a message to people.",
        ["to", "text"],
        to={
            "type": "array",
            "items": {"type": "string", "pattern": "^[a-z]{2,12}$"},
            "minItems": 1,
            "maxItems": 3,
            "uniqueItems": True,
        },
        text={"type": "string", "minLength": 1, "maxLength": 120},
        urgent={"type": "boolean"},
    ),
    _tool(
        "find_restaurant",
        "Find a restaurant.",
        ["city", "cuisine"],
        city=_CITY,
        cuisine={"enum": ["italian", "japanese", "mexican", "indian", "any"]},
        price={
            "type": "object",
            "properties": {"max": {"type": "number", "exclusiveMinimum": 0}},
            "required": ["max"],
            "additionalProperties": False,
        },
    ),
    _tool(
        "convert_money",
        "Convert an amount of money.",
        ["amount", "source", "target"],
        amount={"type": "number", "minimum": 0},
        source={"type": "string", "pattern": "^[A-Z]{3}$"},
        target={"type": "string", "pattern": "^[A-Z]{3}$"},
    ),
]

_QUESTIONS = (
    "What is the weather in {city}?",
    "Will it rain in {city} in the next {number} days?",
    "Set a timer for {number} minutes.",
    "Remind me in {number} minutes to call {name}.",
    "Tell {name} that I am late.",
    "Send {name} and {other} the address in {city}.",
    "Where can I eat sushi in {city}?",
    "Find a cheap pizza place in {city} for {name}.",
    "How much are {number} dollars in euros?",
    "Change {number} pounds into yen.",
)
_CITIES = ("Oslo", "Rome", "Lima", "Kyoto", "Nairobi")
_NAMES = ("anna", "ben", "chen", "dora", "emil")
PROMPTS = [
    question.format(
        city=_CITIES[turn],
        number=3 + 4 * turn,
        name=_NAMES[turn].title(),
        other=_NAMES[(turn + 2) % 5].title(),
    )
    for turn in range(5)
    for question in _QUESTIONS
]


@dataclass
class Outcome:
    """What one way of decoding gave."""

    mode: str
    messages: int = 0
    with_calls: int = 0  # messages in which a call, or the beginning of one, is
    calls: int = 0
    valid: int = 0
    cut_off: int = 0
    seconds: float = 0.0

    @property
    def share(self) -> str:
        """Of the calls that were begun, those that are valid."""
        return f"{self.valid / self.calls:.0%}" if self.calls else "-"


def is_valid(name: str, arguments: Any) -> bool:
    """Whether the arguments satisfy the tool's schema, as jsonschema judges."""
    schemas = {tool["name"]: tool["parameters"] for tool in TOOLS}
    return name in schemas and jsonschema.Draft202012Validator(schemas[name]).is_valid(arguments)


def judge(outcome: Outcome, message: Message, text: str) -> None:
    """Count a message."""
    begun = text.count("<tool_call>")
    outcome.messages += 1
    outcome.with_calls += begun > 0
    outcome.calls += max(begun, len(message.calls) + len(message.failures))
    outcome.valid += sum(is_valid(call.name, call.arguments) for call in message.calls)


def measure(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    *,
    listed: Sequence[dict[str, Any]] = TOOLS,
    modes: Sequence[str] = ("free", "auto", "required"),
    batch: int = 10,
    max_tokens: int = 160,
) -> list[Outcome]:
    """An outcome for each way of decoding: "free", or a `tool_choice`."""
    from constrain.decoding import generate_batch

    tools = make_tools(listed)
    talk = ChatPrompts(tokenizer, "hermes")
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, model=model)
    texts = [talk.prompt([{"role": "user", "content": one}], tools) for one in prompts]
    ids = [tokenizer(one, add_special_tokens=False)["input_ids"] for one in texts]
    found = []
    for mode in modes:
        compiled = None
        if mode != "free":
            spec = constrain.ToolCalls(tools, format="hermes", tool_choice=mode)
            compiled = constrain.compile(spec, vocabulary)
        outcome = Outcome(mode)
        start = time.perf_counter()
        for first in range(0, len(ids), batch):
            results = generate_batch(
                model,
                tokenizer,
                ids[first : first + batch],
                compiled,
                max_tokens=max_tokens,
                temperature=1.0,
                seed=first,
            )
            for result in results:
                text = vocabulary.decode(result.token_ids, special_tokens=True).decode(
                    "utf-8", "replace"
                )
                outcome.cut_off += result.finish_reason != "stop" and not result.is_complete
                judge(outcome, parse_message("hermes", tools, text), text)
        outcome.seconds = round(time.perf_counter() - start, 1)
        found.append(outcome)
    return found


def table(outcomes: Sequence[Outcome]) -> str:
    """As Markdown."""
    lines = [
        "| decoding | messages | with a call | calls begun | valid | share | cut off |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in outcomes:
        lines.append(
            f"| {one.mode} | {one.messages} | {one.with_calls} | {one.calls} | {one.valid} "
            f"| {one.share} | {one.cut_off} |"
        )
    return "\n".join(lines)


def main() -> None:
    from constrain.models import load_model

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    model, tokenizer = load_model()
    found = measure(model, tokenizer, PROMPTS[: args.prompts])
    print(table(found))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([asdict(one) for one in found], file, indent=1)
    if any(one.calls != one.valid for one in found if one.mode != "free"):
        sys.exit("a constrained call was not valid")


if __name__ == "__main__":
    main()
