"""Tools of real size, made up: nested objects, enumerations, formats and descriptions."""

from __future__ import annotations

import random
from typing import Any

_VERBS = [
    "create",
    "update",
    "delete",
    "list",
    "search",
    "send",
    "schedule",
    "cancel",
    "convert",
    "summarise",
]
_THINGS = [
    "invoice",
    "customer",
    "order",
    "shipment",
    "ticket",
    "meeting",
    "document",
    "campaign",
    "payment",
    "contract",
    "employee",
    "project",
    "release",
]
_FIELDS = [
    "title",
    "status",
    "owner",
    "priority",
    "due_date",
    "amount",
    "currency",
    "tags",
    "notes",
    "address",
    "email",
    "quantity",
    "language",
    "region",
    "category",
    "reference",
    "parent_id",
    "visible",
]
_WORDS = [
    "the",
    "value",
    "that",
    "is",
    "used",
    "when",
    "the",
    "record",
    "is",
    "written",
    "must",
    "be",
    "known",
    "to",
    "the",
    "service",
    "and",
    "is",
    "checked",
    "against",
    "the",
    "account",
    "before",
    "anything",
    "is",
    "changed",
    "unless",
    "the",
    "caller",
    "asks",
    "for",
    "a",
    "dry",
    "run",
]


def tool_catalogue(
    count: int, *, seed: int = 1, fields: tuple[int, int] = (3, 6), depth: int = 1
) -> list[dict[str, Any]]:
    """`count` tools in the form of Anthropic.

    Each has so many parameters, objects and lists nested up to `depth`; by default about a kilobyte
    of JSON, as the tools of public servers have, with 5 to 9 and a depth of 2 about three.
    """
    rng = random.Random(seed)
    names = [f"{verb}_{thing}" for thing in _THINGS for verb in _VERBS]
    return [
        {
            "name": name,
            "description": _sentence(rng, 18),
            "input_schema": _object(rng, rng.randint(*fields), rng.randint(0, depth)),
        }
        for name in names[:count]
    ]


def example_arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """Arguments with everything that the tool requires."""
    found = _example(tool["input_schema"])
    assert isinstance(found, dict)
    return found


def _sentence(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(_WORDS, k=length)).capitalize() + "."


def _object(rng: random.Random, fields: int, depth: int) -> dict[str, Any]:
    names = rng.sample(_FIELDS, fields)
    return {
        "type": "object",
        "description": _sentence(rng, 10),
        "properties": {
            name: {**_property(rng, depth), "description": _sentence(rng, 12)} for name in names
        },
        "required": names[: rng.randint(1, 3)],
        "additionalProperties": False,
    }


def _property(rng: random.Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {"type": rng.choice(["string", "string", "string", "integer", "boolean"])}
    kind = rng.randrange(10 if depth else 7)
    if kind == 0:
        return {"type": "string", "minLength": 1, "maxLength": rng.choice([40, 80, 200])}
    if kind == 1:
        return {"type": "string", "enum": rng.sample(_WORDS, rng.randint(3, 7))}
    if kind == 2:
        return {"type": "integer", "minimum": 0, "maximum": rng.choice([10, 100, 5000])}
    if kind == 3:
        return {"type": "string", "format": rng.choice(["date", "date-time", "email"])}
    if kind == 4:
        return {"type": "boolean", "default": False}
    if kind == 5:
        return {"type": ["number", "null"], "exclusiveMinimum": 0}
    if kind == 6:
        return {"type": "string", "pattern": rng.choice(["^[A-Z]{3}$", "^[A-Z]{2}-[0-9]{4,6}$"])}
    if kind == 7:
        return {"type": "array", "items": _property(rng, depth - 1), "maxItems": 10}
    if kind == 8:
        return {"type": "array", "items": _object(rng, 3, depth - 1), "minItems": 1}
    return _object(rng, 4, depth - 1)


def _example(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"]
    if isinstance(kind, list):
        return None
    if kind == "object":
        return {name: _example(schema["properties"][name]) for name in schema["required"]}
    if kind == "array":
        return [_example(schema["items"])] * schema.get("minItems", 0)
    if kind == "string":
        texts = {
            "date": "2024-05-01",
            "date-time": "2024-05-01T10:00:00Z",
            "email": "ann@example.com",
            "^[A-Z]{3}$": "SEK",
            "^[A-Z]{2}-[0-9]{4,6}$": "AB-12345",
        }
        return texts.get(schema.get("format", schema.get("pattern", "")), "text")
    return {"integer": 7, "boolean": True}[kind]
