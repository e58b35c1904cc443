"""The judge of JSON texts: `jsonschema`, made to mean what JSON Schema says.

What differs from the library as it comes:

* numbers are exact (`Fraction`), in instances and schemas, whatever their spelling;
* `1.0` and `1e3` are integers from draft 6 on, and are not in draft 4;
* patterns are ECMA-262 (`tests.reference.ecma`), not Python's `re`;
* equality (`enum`, `const`, `uniqueItems`) is JSON's: exact numbers, booleans are no numbers;
* a text with duplicate keys, lone surrogates or anything outside RFC 8259 is refused;
* the draft follows `$schema`, then the argument; remote documents come from `resources`.

An exponent of five digits or more makes a number that no `Fraction` should hold; such numbers are
clamped, which keeps every comparison with the bounds that occur, but not divisibility.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import jsonschema
from jsonschema import _keywords, _legacy_keywords, _utils, validators
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from tests.reference import ecma, formats

_DIALECTS = {
    "json-schema.org/draft/2020-12/schema": "2020-12",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft-07/schema": "7",
    "json-schema.org/draft-06/schema": "6",
    "json-schema.org/draft-04/schema": "4",
}
_CLAMP = 5_000

# The library looks patterns up in these modules' `re`; it offers no other way to change the
# dialect of `patternProperties` as `additionalProperties` and `unevaluatedProperties` see it.
_ECMA_RE = SimpleNamespace(search=lambda pattern, text, flags=0: ecma.search(pattern, text) or None)
for _module in (_keywords, _utils, _legacy_keywords):
    _module.re = _ECMA_RE


class NotJsonError(ValueError):
    """A text that is no JSON text (RFC 8259), has duplicate keys or lone surrogates."""


class OracleError(Exception):
    """The oracle cannot judge: a schema or pattern that the library or this module cannot read."""


def _number(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent) > 4 and abs(int(exponent)) > _CLAMP:
        if not re.search("[1-9]", mantissa):
            return Fraction(0)
        scale = Fraction(10) ** _CLAMP
        return Fraction(mantissa) * (scale if int(exponent) > 0 else 1 / scale)
    return Fraction(text)


def _integer(text: str) -> int:
    # The interpreter limits int() to 4,300 digits; a Fraction of a long text is as exact.
    if len(text) < 4_000:
        return int(text)
    value = 0
    digits = text.lstrip("-")
    for start in range(0, len(digits), 4_000):
        piece = digits[start : start + 4_000]
        value = value * 10 ** len(piece) + int(piece)
    return -value if text.startswith("-") else value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotJsonError("duplicate keys")
    return result


def _constant(text: str) -> Any:
    raise NotJsonError(f"{text} is no JSON")


def parse(text: str | bytes) -> Any:
    """The value of a JSON text, numbers exact. Raises NotJsonError."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            decoded,
            parse_float=_number,
            parse_int=_integer,
            parse_constant=_constant,
            object_pairs_hook=_pairs,
        )
        if "\\u" in decoded:
            json.dumps(_plain(value), ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from error
    return value


def _plain(value: Any) -> Any:
    """`value` with exact numbers replaced, so that it can be written."""
    if isinstance(value, Fraction):
        return 0
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def exact(value: Any) -> Any:
    """`value` with floats replaced by the exact number that their shortest text names."""
    if isinstance(value, float):
        return Fraction(repr(value))
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    return value


def canonical(value: Any) -> Any:
    """A hashable form that is equal exactly for equal JSON values."""
    if isinstance(value, bool) or value is None:
        return ("literal", value)
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(canonical(item) for item in value))
    return ("number", Fraction(value))


def _enum(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if canonical(instance) not in {canonical(item) for item in allowed}:
        yield ValidationError(f"{instance!r} is not one of {allowed!r}")


def _const(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if canonical(instance) != canonical(allowed):
        yield ValidationError(f"{allowed!r} was expected")


def _unique(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and validator.is_type(instance, "array"):
        items = [canonical(item) for item in instance]
        if len(set(items)) != len(items):
            yield ValidationError(f"{instance!r} has equal items")


def _format(validator: Any, name: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    checked = validator.format_checker is not None and isinstance(name, str)
    checker = formats.CHECKERS.get(name) if checked else None
    if checker is not None and isinstance(instance, str) and not checker(instance):
        yield ValidationError(f"{instance!r} is not a {name!r}")


def _is_integer(checker: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, Fraction) and value.denominator == 1)


def _is_integer_by_spelling(checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _exact_class(draft: str, base: Any) -> Any:
    integer = _is_integer_by_spelling if draft == "4" else _is_integer
    keywords = {"enum": _enum, "uniqueItems": _unique, "format": _format}
    if draft != "4":
        keywords["const"] = _const
    cls = validators.extend(
        base, validators=keywords, type_checker=base.TYPE_CHECKER.redefine("integer", integer)
    )
    # Registered, since the library changes class where a subschema has a `$schema` of its own.
    return validators.validates(f"exact {draft}")(cls)


_CLASSES: dict[str, Any] = {
    "2020-12": (_exact_class("2020-12", jsonschema.Draft202012Validator), DRAFT202012),
    "2019-09": (_exact_class("2019-09", jsonschema.Draft201909Validator), DRAFT201909),
    "7": (_exact_class("7", jsonschema.Draft7Validator), DRAFT7),
    "6": (_exact_class("6", jsonschema.Draft6Validator), DRAFT6),
    "4": (_exact_class("4", jsonschema.Draft4Validator), DRAFT4),
}


def draft_of(schema: Any, default: str = "2020-12") -> str:
    """The draft that `$schema` names, or `default`."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(named, str):
        return default
    return _DIALECTS.get(named.rstrip("#").partition("://")[2], default)


class Oracle:
    """Judge of instances of one schema.

    `draft` is the dialect where `$schema` names none; `resources` maps URIs to documents;
    `check_formats` adds the formats that `tests.reference.formats` knows.
    """

    def __init__(
        self,
        schema: Any,
        *,
        draft: str = "2020-12",
        resources: Mapping[str, Any] | None = None,
        check_formats: bool = False,
    ) -> None:
        from jsonschema_specifications import REGISTRY

        draft = draft_of(schema, draft)
        cls, specification = _CLASSES[draft]
        documents = resources or {}

        def retrieve(uri: str) -> Resource[Any]:
            if uri in documents:
                return Resource.from_contents(
                    exact(documents[uri]), default_specification=specification
                )
            return REGISTRY[uri]

        self._validator = cls(
            exact(schema),
            registry=Registry(retrieve=retrieve),  # type: ignore[call-arg]
            format_checker=jsonschema.FormatChecker() if check_formats else None,
        )

    def errors(self, value: Any, limit: int = 3) -> list[str]:
        """Up to `limit` reasons why `value` (as `parse` gives it) is invalid; [] where valid.

        Raises OracleError where the schema cannot be judged.
        """
        found: list[str] = []
        try:
            for error in self._validator.iter_errors(value):
                place = "/".join(map(str, error.absolute_path))
                found.append(f"/{place}: {error.message[:200]}")
                if len(found) >= limit:
                    break
        except (Exception, RecursionError) as error:
            raise OracleError(f"{type(error).__name__}: {str(error)[:200]}") from error
        return found

    def is_valid(self, value: Any) -> bool:
        """Whether `value` (as `parse` gives it) is valid. Raises OracleError."""
        return not self.errors(value, limit=1)

    def accepts(self, text: str | bytes) -> bool:
        """Whether `text` is a JSON text and valid. Raises OracleError."""
        try:
            value = parse(text)
        except NotJsonError:
            return False
        return self.is_valid(value)
