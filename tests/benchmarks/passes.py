"""Forward passes per token on given texts: what forced tokens and drafts would save.

    python -m tests.benchmarks.passes [--sources forced,lookup,constraint,both]

No model runs: the texts are function calls with sensible arguments, as JSON in several spellings and
as whole messages in several formats of tool calls, and a draft is taken as far as it is the text, as a greedy model that writes the text would take it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import constrain
from constrain.cli._tasks import TASKS
from constrain.decoding import ConstraintDrafts, FirstOf, PromptLookup, Sampler
from constrain.decoding.drafts import Draft
from constrain.decoding.sequence import Running
from constrain.forced import forced_run
from constrain.tools.named_formats import get_format
from constrain.tools.render import render_message

ARGUMENTS: dict[str, Any] = {
    "get_weather": {"city": "Lisbon", "unit": "celsius", "days": 1},
    "book_table": {
        "restaurant": "Trattoria Verde",
        "people": 4,
        "date": "2024-03-08",
        "time": "20:00",
        "outside": True,
    },
    "send_email": {
        "to": ["ann@example.com"],
        "subject": "Meeting moved",
        "body": "Hi Ann, the meeting moved to Tuesday.",
    },
    "convert_currency": {"amount": 250, "source": "EUR", "target": "SEK"},
    "set_alarm": {"time": "06:30", "days": ["mon", "tue", "wed", "thu", "fri"]},
    "create_event": {"title": "Dentist", "date": "2025-03-03", "time": "10:00", "minutes": 60},
    "search_flights": {
        "origin": "ARN",
        "destination": "LHR",
        "date": "2025-05-12",
        "passengers": 2,
        "stops": 0,
    },
    "invite_guests": {
        "event": "Party",
        "date": "2025-07-01",
        "guests": [{"name": "Dan"}, {"name": "Eve", "child": True}],
    },
}
FORMATS = ("hermes", "mistral-list", "llama3-json")
SPELLINGS: dict[str, dict[str, Any]] = {
    "indented": {"indent": 2},
    "one line": {},
    "compact": {"separators": (",", ":")},
}
# Of each spelling: the options of schemas under which its text is tried.
OPTIONS: dict[str, list[dict[str, str]]] = {
    "indented": [{"escapes": "any"}, {"escapes": "plain"}],
    "one line": [
        {"escapes": "any"},
        {"escapes": "plain"},
        {"escapes": "plain", "whitespace": "spaced"},
    ],
    "compact": [
        {"escapes": "any"},
        {"escapes": "any", "whitespace": "compact"},
        {"escapes": "plain", "whitespace": "compact"},
    ],
}
SOURCES: dict[str, Any] = {
    "forced": None,
    "lookup": PromptLookup(),
    "constraint": ConstraintDrafts(),
    "both": FirstOf(PromptLookup(), ConstraintDrafts()),
}


def passes(
    compiled: Any, vocabulary: Any, prompt: list[int], text: list[int], speculation: Any
) -> tuple[int, int, int]:
    """How many passes a greedy model that writes `text` takes; drafted and accepted tokens."""
    sequence = Running(prompt, compiled, vocabulary, Sampler(temperature=0), max_tokens=400)
    drafter = None if speculation is None else speculation.start(vocabulary, 1)
    done = read = drafted = accepted = 0

    def take(tokens: list[int]) -> None:
        nonlocal done
        for token_id in tokens:
            sequence.append(token_id)
            done += 1

    def force() -> None:
        while run := forced_run(sequence.matcher, remaining=sequence.remaining):
            if text[done : done + len(run)] != run:
                break  # the text has another spelling of what is forced
            take(run)

    force()
    while done < len(text):
        draft = Draft(sequence, "text")
        if drafter is not None:
            drafter.propose([sequence], [draft])
        read += 1
        drafted += draft.forced.count(False)
        at = -1
        while done < len(text):
            found = [node for node in draft.children(at) if draft.tokens[node] == text[done]]
            if not found:
                break
            at = found[0]
            accepted += not draft.forced[at]
            take([text[done]])
        take(text[done : done + 1])
        force()
    return read, drafted, accepted


@dataclass
class Case:
    """A text, the constraint that it is written under, and the prompt before it."""

    compiled: Any
    prompt: list[int]
    text: list[int]


def schema_cases(tokenizer: Any, vocabulary: Any) -> Iterator[tuple[str, list[Case]]]:
    """The arguments as texts of their schemas, by spelling and options."""
    for spelling, options in SPELLINGS.items():
        for policies in OPTIONS[spelling]:
            cases = []
            for task in TASKS:
                if task.name not in ARGUMENTS:
                    continue
                spec = constrain.JsonSchema(task.schema, extra_properties="forbid", **policies)
                text = json.dumps(ARGUMENTS[task.name], **options)
                prompt = tokenizer.apply_chat_template(
                    task.messages, add_generation_prompt=True, tokenize=False
                )
                cases.append(_case(spec, prompt, text, tokenizer, vocabulary))
            said = ", ".join(f"{name}={value}" for name, value in policies.items())
            yield f"{spelling}; {said}", cases


def call_cases(tokenizer: Any, vocabulary: Any) -> Iterator[tuple[str, list[Case]]]:
    """Whole messages with one call, one of all tools; by format and options of `ToolCalls`."""
    tools = [
        {"name": task.name, "description": task.request, "parameters": task.schema}
        for task in TASKS
        if task.name in ARGUMENTS
    ]
    for name in FORMATS:
        form = get_format(name)
        for policies in (
            {"escapes": "any", "whitespace": "bounded"},
            {"escapes": "plain", "whitespace": "bounded"},
            {},
            {"arguments_order": "declared"},
        ):
            for choice in ("auto", "required"):
                spec = constrain.ToolCalls(tools, format=form, tool_choice=choice, **policies)
                cases = []
                for called, arguments in ARGUMENTS.items():
                    text = render_message(form, [(called, arguments)])
                    task = next(task for task in TASKS if task.name == called)
                    cases.append(_case(spec, task.request, text, tokenizer, vocabulary))
                said = ", ".join(f"{key}={value}" for key, value in policies.items())
                yield f"{name} {choice}; {said or 'defaults'}", cases


def _case(spec: Any, prompt: str, text: str, tokenizer: Any, vocabulary: Any) -> Case:
    compiled = constrain.compile(spec, vocabulary)
    ids = list(vocabulary.encode(text.encode()) or ())
    matcher = compiled.matcher()
    if matcher.validate(ids) < len(ids):
        raise SystemExit(f"not admitted: {text!r} by {spec!r}")
    return Case(compiled, tokenizer(prompt, add_special_tokens=False)["input_ids"], ids)


def main() -> None:
    from transformers import AutoTokenizer

    from constrain.models import default_model_folder

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", default="forced,both", help=f"of {', '.join(SOURCES)}")
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(default_model_folder())
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    names = args.sources.split(",")
    print("| text | tokens |", *(f"{name} |" for name in names))
    print("| --- | --- |", *("--- |" for _ in names))
    for kind in (schema_cases, call_cases):
        for said, cases in kind(tokenizer, vocabulary):
            tokens = sum(len(case.text) for case in cases)
            rates = []
            for name in names:
                read = [
                    passes(case.compiled, vocabulary, case.prompt, case.text, SOURCES[name])[0]
                    for case in cases
                ]
                rates.append(f"{sum(read) / tokens:.2f} |")
            print(f"| {said} | {tokens} |", *rates, flush=True)


if __name__ == "__main__":
    main()
