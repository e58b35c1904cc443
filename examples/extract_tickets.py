"""Extract structured data from support tickets with the Python API.

    python examples/extract_tickets.py --limit 4

The command line does the same for whole files, with resuming and progress:

    constrain extract examples/data/tickets.jsonl --schema examples/schemas/ticket.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import constrain

HERE = Path(__file__).resolve().parent

# The constraint alone makes the output valid; a model that has read the keys also fills them well.
SYSTEM = """You sort support tickets. Answer with one JSON object of this shape:
{
  "summary": one sentence,
  "category": what it is about,
  "priority": "low" | "normal" | "high" | "urgent",
  "sentiment": 1 (angry) to 5 (happy),
  "customer": {"name": string, "email": string},
  "order": order number or null,
  "received": "YYYY-MM-DD",
  "problems": [{"part": what is affected, "symptom": string}]
}"""


def read_tickets(limit: int) -> list[dict[str, Any]]:
    """The first `limit` tickets of the example data."""
    with open(HERE / "data" / "tickets.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(limit))]


def ask(ticket: dict[str, Any]) -> list[dict[str, str]]:
    """The chat messages for one ticket."""
    text = f"From: {ticket['from']}\nDate: {ticket['received']}\nSubject: {ticket['subject']}\n\n"
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": text + ticket["body"]},
    ]


def extract(limit: int, max_tokens: int, temperature: float) -> list[dict[str, Any]]:
    """The data of the first `limit` tickets, as the model sees them."""
    from constrain.decoding import generate_batch
    from constrain.models import load_model

    schema = json.loads((HERE / "schemas" / "ticket.json").read_text(encoding="utf-8"))
    model, tokenizer = load_model()
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    compiled = constrain.compile(
        constrain.JsonSchema(schema, extra_properties="forbid"), vocabulary
    )
    prompts = [ask(ticket) for ticket in read_tickets(limit)]
    results = generate_batch(
        model, tokenizer, prompts, compiled, max_tokens=max_tokens, temperature=temperature, seed=1
    )
    found = []
    for result in results:
        if result.finish_reason == "stop":
            found.append(json.loads(result.text))
        else:
            found.append({"error": f"cut off after {max_tokens} tokens", "text": result.text})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Extract data from example support tickets.")
    parser.add_argument("--limit", type=int, default=4, help="how many tickets (default: 4)")
    parser.add_argument("--max-tokens", type=int, default=400)
    parser.add_argument("--temperature", type=float, default=0.0)
    args = parser.parse_args()
    for data in extract(args.limit, args.max_tokens, args.temperature):
        print(json.dumps(data, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
