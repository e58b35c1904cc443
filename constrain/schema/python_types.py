"""JSON Schemas of Python types, through pydantic: models, dataclasses, TypedDict, Enum, unions.

pydantic is imported when a type is handed over, never before.
"""

from __future__ import annotations

import sys
import types
import typing
from typing import Any

from constrain.errors import ConstrainError, SchemaError

__all__ = ["is_type", "schema_of_type"]


def is_type(value: object) -> bool:
    """Whether `value` is something that a Python annotation can be, rather than a document."""
    if isinstance(value, type) or typing.get_origin(value) is not None or value is Any:
        return True
    # TypeAliasType is of Python 3.12 and of typing_extensions; TypeAdapter is pydantic's, which
    # is not imported to find out
    return isinstance(value, (typing.TypeVar, typing.NewType)) or type(value).__name__ in (
        "TypeAdapter",
        "TypeAliasType",
        "_SpecialForm",
    )


def schema_of_type(annotation: Any) -> object:
    """The JSON Schema (draft 2020-12) that pydantic gives for `annotation`.

    Raises SchemaError where pydantic has none, and ConstrainError where it is not installed.
    """
    try:
        import pydantic
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise ConstrainError(
            "a schema from a Python type needs pydantic 2: pip install 'constrain[types]'"
        ) from None
    try:
        if isinstance(annotation, pydantic.TypeAdapter):
            return annotation.json_schema()
        if sys.version_info < (3, 12):
            annotation = _with_readable_typed_dicts(annotation, ())
        adapter: Any = pydantic.TypeAdapter(annotation)
        return adapter.json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        reason = str(error).split("\n", 1)[0]
        raise SchemaError(f"there is no JSON Schema for {annotation!r}: {reason}") from error


def _with_readable_typed_dicts(annotation: Any, outer: tuple) -> Any:
    """`annotation` with each TypedDict of `typing` as one of typing_extensions.

    Before Python 3.12 those of `typing` do not say where a key was declared, and pydantic refuses
    them.  What it needs of them beyond that (fields and which are required) is there.
    """
    import typing_extensions

    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        if annotation in outer:
            raise SchemaError(
                f"{annotation.__name__} refers to itself: take TypedDict from typing_extensions"
            )
        fields: dict[str, Any] = {}
        for key, hint in typing.get_type_hints(annotation).items():
            inner = _with_readable_typed_dicts(hint, (*outer, annotation))
            required = key in annotation.__required_keys__
            wrapper = typing_extensions.Required if required else typing_extensions.NotRequired
            fields[key] = wrapper[inner]
        make: Any = typing_extensions.TypedDict
        result = make(annotation.__name__, fields)
        result.__doc__ = annotation.__doc__
        return result
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_with_readable_typed_dicts(arg, outer) for arg in args)]  # noqa: UP007
    if origin in (list, set, frozenset, tuple, dict):
        arguments = tuple(
            arg if arg is Ellipsis else _with_readable_typed_dicts(arg, outer) for arg in args
        )
        return origin[arguments]
    return annotation
