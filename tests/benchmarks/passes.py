"""Forward passes per token on given texts: what forced tokens and drafts would save.

    python -m tests.benchmarks.passes

No model runs: the texts are function calls with sensible arguments, in several spellings of JSON,
and a draft is taken as far as it is the text, as a greedy model that writes the text would take it.
"""

from __future__ import annotations

import json
from typing import Any

import constrain
from constrain.cli._tasks import TASKS
from constrain.decoding import ConstraintDrafts, FirstOf, PromptLookup, Sampler
from constrain.decoding.drafts import Draft
from constrain.decoding.sequence import Running
from constrain.forced import forced_run

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
SPELLINGS: dict[str, dict[str, Any]] = {
    "indented": {"indent": 2},
    "one line": {},
    "compact": {"separators": (",", ":")},
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


def main() -> None:
    from transformers import AutoTokenizer

    from constrain.models import default_model_folder

    tokenizer = AutoTokenizer.from_pretrained(default_model_folder())
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    tasks = [task for task in TASKS if task.name in ARGUMENTS]
    for spelling, options in SPELLINGS.items():
        for whitespace in ("bounded", "compact") if spelling == "compact" else ("bounded",):
            for name, speculation in SOURCES.items():
                sums = [0, 0, 0, 0]
                for task in tasks:
                    spec = constrain.JsonSchema(
                        task.schema, extra_properties="forbid", whitespace=whitespace
                    )
                    compiled = constrain.compile(spec, vocabulary)
                    text = vocabulary.encode(json.dumps(ARGUMENTS[task.name], **options).encode())
                    prompt = tokenizer.apply_chat_template(
                        task.messages, add_generation_prompt=True, tokenize=False
                    )
                    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
                    counts = passes(compiled, vocabulary, ids, list(text or ()), speculation)
                    sums = [a + b for a, b in zip(sums, (len(text or ()), *counts))]
                tokens, read, drafted, accepted = sums
                rate = accepted / drafted if drafted else 0.0
                print(
                    f"{spelling:9} whitespace={whitespace:8} {name:11} {tokens} tokens:"
                    f" {read / tokens:.3f} passes per token,"
                    f" {drafted / read:.1f} drafted per pass, {rate:.0%} accepted",
                    flush=True,
                )


if __name__ == "__main__":
    main()
