"""Reading what a caller hands over: JSON text or Python values, checked and copied.

The copy is private, so a schema that is changed later does not change the constraint.  It holds
None, bool, int, finite float, str, list and dict with str keys, and nothing else; objects that
occur several times in the input stay shared in the copy.  Cost: one visit of every object.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NoReturn

from constrain.errors import SchemaError

__all__ = ["copy_schema", "parse_schema", "pointer_of", "schema_text"]

_PLAIN = frozenset((str, int, bool, type(None)))


def pointer_of(tokens: Iterable[str | int]) -> str:
    """A JSON pointer."""
    return "".join("/" + str(t).replace("~", "~0").replace("/", "~1") for t in tokens)


def _no_constant(name: str) -> NoReturn:
    raise SchemaError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise SchemaError(f"the number {text[:40]} is too large")
    return value


def parse_schema(text: str | bytes) -> tuple[object, list[str]]:
    """The value of a JSON text, and the keys that occur twice in one object (the last counts).

    Raises SchemaError with line and column where the text is not JSON.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SchemaError(f"the schema is not UTF-8: byte {error.start} is invalid") from None
    text = text.removeprefix("\ufeff")
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    repeated.append(key)
                seen.add(key)
        return result

    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=unique
        )
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"the schema is not JSON: {error.msg}, line {error.lineno} column {error.colno}"
        ) from None
    except RecursionError:
        raise SchemaError("the schema text is nested too deeply to be read") from None
    except ValueError as error:
        if isinstance(error, SchemaError):
            raise
        # an integer beyond sys.set_int_max_str_digits, which Decimal is not subject to
        repeated.clear()
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=lambda digits: int(Decimal(digits)),
            object_pairs_hook=unique,
        )
    return value, repeated


def copy_schema(value: object) -> object:
    """A private copy of a JSON value made of Python objects.

    Raises SchemaError, with the JSON pointer, for what JSON cannot express.
    """
    if not isinstance(value, (dict, list, tuple, Mapping)):
        return _scalar(value, None, None)
    # iterative, so that nesting is bounded by memory alone; each entry of `todo` is a container
    # with its copy and the trail that leads to it (for error messages only)
    copies: dict[int, tuple[object, object]] = {}
    todo: list[tuple] = []

    def begin(source: object, trail: tuple | None) -> object:
        known = copies.get(id(source))
        if known is not None:
            return known[1]
        copy: object = {} if type(source) is dict or isinstance(source, Mapping) else []
        copies[id(source)] = (source, copy)  # kept alive, so that its id stays its own
        todo.append((source, copy, trail))
        return copy

    result = begin(value, None)
    while todo:
        source, copy, trail = todo.pop()
        if type(copy) is dict:
            for key, item in source.items():
                if type(key) is not str:
                    if not isinstance(key, str):
                        raise SchemaError(
                            f"object keys must be strings, found {key!r}", pointer=_trail(trail)
                        )
                    key = str.__str__(key)
                kind = type(item)
                if kind in _PLAIN:
                    copy[key] = item
                elif kind is dict or isinstance(item, (list, tuple, Mapping)):
                    copy[key] = begin(item, (trail, key))
                else:
                    copy[key] = _scalar(item, trail, key)
        else:
            for index, item in enumerate(source):
                kind = type(item)
                if kind in _PLAIN:
                    copy.append(item)
                elif kind is dict or isinstance(item, (list, tuple, Mapping)):
                    copy.append(begin(item, (trail, index)))
                else:
                    copy.append(_scalar(item, trail, index))
    return result


def _scalar(value: object, trail: tuple | None, token: str | int | None) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        problem = f"{value!r} is not a JSON number"
    elif isinstance(value, str):
        return str.__str__(value)
    elif isinstance(value, int):
        return int(value)
    else:
        problem = f"expected a JSON value, found {type(value).__name__}"
    raise SchemaError(problem, pointer=_trail(trail if token is None else (trail, token)))


def _trail(trail: tuple | None) -> str:
    tokens: list[str | int] = []
    while trail is not None:
        trail, token = trail
        tokens.append(token)
    return pointer_of(reversed(tokens))


def schema_text(schema: object) -> str:
    """`schema` as compact JSON text: equal schemas in the same key order have equal texts.

    Nesting and size of integers are not limited.
    """
    try:
        return json.dumps(schema, separators=(",", ":"))
    except (RecursionError, ValueError):
        return _slow_text(schema)


def _slow_text(schema: object) -> str:
    from constrain.schema.builder import decimal_text

    out: list[str] = []
    open_ids: set[int] = set()
    # a stack of pieces still to be written; texts are tagged by being wrapped in a tuple
    stack: list[object] = [schema]
    while stack:
        item = stack.pop()
        if type(item) is tuple:
            text, closes = item
            out.append(text)
            open_ids.discard(closes)
        elif isinstance(item, (dict, list)):
            if id(item) in open_ids:
                raise SchemaError("a schema cannot contain itself; use $ref")
            open_ids.add(id(item))
            if isinstance(item, dict):
                out.append("{")
                rest: list[object] = []
                for index, (key, value) in enumerate(item.items()):
                    rest += ((("," if index else "") + json.dumps(key) + ":", 0), value)
                rest.append(("}", id(item)))
            else:
                out.append("[")
                rest = []
                for index, value in enumerate(item):
                    rest += ((",", 0), value) if index else (value,)
                rest.append(("]", id(item)))
            stack.extend(reversed(rest))
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            out.append(decimal_text(item))
        else:
            out.append(json.dumps(item))
    return "".join(out)
