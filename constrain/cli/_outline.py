"""An outline of a JSON Schema for prompts: the shape of a value, in the manner of TypeScript.

A small model that is constrained to keys it has never read in the prompt spells them oddly (in
escapes, which are valid), so the default prompt shows every key.  An outline is for the model's
eyes only and may leave things out: it follows local references and stops at `_DEPTH` levels.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["outline", "schema_text"]

_DEPTH = 5
_CHOICES = 12  # longer enums are cut short


def schema_text(schema: Any) -> str:
    """The schema on one line."""
    return json.dumps(schema, ensure_ascii=False)


def outline(schema: Any) -> str:
    """The outline, with a line for each property at the top; "" if the schema says no shape."""
    found = _followed(schema, schema)
    properties = found.get("properties")
    if not isinstance(properties, dict) or not properties:
        text = _shape(schema, schema, _DEPTH)
        return "" if text == "any" else text
    lines = (
        f"  {schema_text(name)}: {_member(m, schema, _DEPTH)}" for name, m in properties.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}"


def _member(schema: Any, root: Any, depth: int) -> str:
    """The shape of a property, and its description; of a string the description is enough."""
    shape = _shape(schema, root, depth)
    found = _followed(schema, root)
    note = found.get("description")
    if isinstance(schema, dict):
        note = schema.get("description", note)
    if not isinstance(note, str) or not note:
        return shape
    return note if shape == "string" else f"{shape} ({note})"


def _shape(schema: Any, root: Any, depth: int) -> str:
    schema = _followed(schema, root)
    if depth == 0:
        return "any"
    if "const" in schema:
        return schema_text(schema["const"])
    for keyword in ("enum", "anyOf", "oneOf"):
        members = schema.get(keyword)
        if isinstance(members, list) and members:
            shown = members[:_CHOICES]
            if keyword == "enum":
                texts = [schema_text(member) for member in shown]
            else:
                texts = [_shape(member, root, depth - 1) for member in shown]
            return " | ".join(dict.fromkeys(texts)) + (" | ..." if members[_CHOICES:] else "")
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        members = (
            f"{schema_text(name)}: {_member(member, root, depth - 1)}"
            for name, member in properties.items()
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(schema.get("items"), dict):
        return f"[{_shape(schema['items'], root, depth - 1)}, ...]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(map(str, kind)) or "any"
    return kind if isinstance(kind, str) else "any"


def _followed(schema: Any, root: Any) -> dict[str, Any]:
    """The schema behind local references, as a dict; {} for a boolean or a place unknown."""
    for _ in range(_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            break
        schema = root
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            schema = schema.get(key) if isinstance(schema, dict) else None
    return schema if isinstance(schema, dict) else {}
