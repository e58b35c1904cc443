"""Checks of the values of keywords, each with the words that say what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.schema.builder import INT_MAX, decimal_text

if TYPE_CHECKING:
    from constrain.schema.translate import Frame, Translator

__all__ = ["count", "schema_map", "schemas_of", "strings_of"]


def count(t: Translator, frame: Frame, keyword: str, value: object) -> int:
    if type(value) is int and value >= 0:
        return value if value <= INT_MAX else INT_MAX
    if type(value) is float and value >= 0 and value.is_integer():
        return min(int(value), INT_MAX)
    if type(value) in (int, float):
        t.fail_at(
            t.places.add(frame.place, keyword),
            f"{keyword} must be a whole number from 0, found {decimal_text(value)}",  # type: ignore[arg-type]
        )
    t.fail(frame, keyword, "a whole number from 0", value)


def schemas_of(t: Translator, frame: Frame, keyword: str, value: object) -> list:
    if type(value) is not list:
        t.fail(frame, keyword, "an array of schemas", value)
    if not value:
        t.fail_at(t.places.add(frame.place, keyword), f"{keyword} must have at least one schema")
    return value


def schema_map(t: Translator, frame: Frame, keyword: str, value: object) -> dict:
    if type(value) is not dict:
        t.fail(frame, keyword, "an object of schemas", value)
    return value


def strings_of(t: Translator, frame: Frame, keyword: str, value: object) -> list[str]:
    if type(value) is not list:
        t.fail(frame, keyword, "an array of strings", value)
    for index, item in enumerate(value):
        if type(item) is not str:
            t.fail_at(
                t.places.add(t.places.add(frame.place, keyword), index),
                f"{keyword} must be an array of strings",
            )
    return value
