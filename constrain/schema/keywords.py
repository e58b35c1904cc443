"""The keywords: one function for each, which checks its value and adds what it means to a frame.

Functions are chosen by dialect once (`handlers_of`), so a schema is translated by one dictionary
lookup for each of its keywords.  A keyword maps to None where it is an annotation; keywords that
are in no table are unknown, ignored as JSON Schema says, and listed in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from constrain.program import TYPES, Op
from constrain.schema.builder import FALSE, INT_MAX, TRUE, decimal_text
from constrain.schema.checks import count, schema_map, schemas_of, strings_of
from constrain.schema.context import OPEN
from constrain.schema.dialects import Dialect
from constrain.schema.disjoint import are_disjoint
from constrain.schema.regexes import content_encoding, narrowed_format
from constrain.schema.sources import has_key

if TYPE_CHECKING:
    from constrain.schema.translate import Frame, Translator

__all__ = ["handlers_of"]

Handler = Callable[["Translator", "Frame", Any], None]

_TYPE = int(Op.TYPE)
_ORDER = {name: index for index, name in enumerate(TYPES)}
_NAMES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_ONE_WORD = {
    bool: "boolean",
    str: "string",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


# -- any value ---------------------------------------------------------------------------------


def _type(t: Translator, frame: Frame, value: object) -> None:
    names: list = value if type(value) is list else [value]
    if not names:
        t.fail_at(t.places.add(frame.place, "type"), "type must name at least one type")
    for name in names:
        if name == "any":
            t.note(frame, "type", "surprise", "'any' is of draft 3, read as every type")
            return
        if type(name) is not str or name not in _NAMES:
            found = repr(name) if type(name) is str else type(name).__name__
            t.fail_at(
                t.places.add(frame.place, "type"),
                f"type must be one of {', '.join(sorted(_NAMES))}, found {found}",
            )
    if _constants(frame) is not None and _decides_type(names):
        return  # the constants have been filtered by type
    builder = t.builder
    if len(names) == 1:
        name = names[0]
        if name in _ORDER:
            frame.out.append(builder.node(_TYPE, _ORDER[name]))
            return
    parts = []
    for name in names:
        if name == "boolean":
            parts += [builder.node(_TYPE, _ORDER["true"]), builder.node(_TYPE, _ORDER["false"])]
        elif name == "integer":
            if "number" not in names:
                whole = Op.INTEGER_LEXICAL if frame.context.draft == 4 else Op.INTEGER
                number = builder.node(_TYPE, _ORDER["number"])
                parts.append(builder.all((number, builder.node(whole))))
        else:
            parts.append(builder.node(_TYPE, _ORDER[name]))
    frame.out.append(TRUE if len(set(parts)) == len(TYPES) else builder.any(parts))


def _constants(frame: Frame) -> list | None:
    """The values of `const` or `enum`, where they have a meaning and the right shape."""
    schema = frame.schema
    if "const" in schema and frame.context.draft >= 6:
        return [schema["const"]]
    values = schema.get("enum")
    return values if type(values) is list else None


def _decides_type(names: list) -> bool:
    """Whether the type of a Python value decides `type`: not so where integers are told apart."""
    return "integer" not in names or "number" in names


def _filtered(frame: Frame, values: list) -> list:
    names = frame.schema.get("type")
    if names is None or frame.context.handlers.get("type") is None:
        return values
    names = names if type(names) is list else [names]
    if "any" in names or not _decides_type(names):
        return values
    return [value for value in values if _ONE_WORD[type(value)] in names]


def _enum(t: Translator, frame: Frame, value: object) -> None:
    if type(value) is not list:
        t.fail(frame, "enum", "an array", value)
    # `type` leaves the filtering to the constants it looks at: const before enum
    values = value if _constants(frame) is not value else _filtered(frame, value)
    frame.out.append(t.builder.enum(values, t.places.pointer(frame.place)))


def _const(t: Translator, frame: Frame, value: object) -> None:
    frame.out.append(t.builder.enum(_filtered(frame, [value]), t.places.pointer(frame.place)))


# -- numbers and strings -----------------------------------------------------------------------


def _bound(op: Op, keyword: str, strict_keyword: str) -> tuple[Handler, Handler]:
    code = int(op)

    def inclusive(t: Translator, frame: Frame, value: object) -> None:
        if type(value) not in (int, float):
            t.fail(frame, keyword, "a number", value)
        strict = frame.schema.get(strict_keyword) is True
        text = t.builder.string(decimal_text(value))  # type: ignore[arg-type]
        frame.out.append(t.builder.node(code, text, int(strict)))

    def exclusive(t: Translator, frame: Frame, value: object) -> None:
        draft = frame.context.draft
        if type(value) is bool:
            if draft > 4:
                t.note(frame, strict_keyword, "surprise", "a boolean, read as in draft 4")
            return
        if type(value) not in (int, float):
            t.fail(frame, strict_keyword, "a boolean" if draft == 4 else "a number", value)
        if draft == 4:
            t.note(frame, strict_keyword, "surprise", "a number, read as in draft 6 and later")
        text = t.builder.string(decimal_text(value))  # type: ignore[arg-type]
        frame.out.append(t.builder.node(code, text, 1))

    return inclusive, exclusive


_minimum, _exclusive_minimum = _bound(Op.MINIMUM, "minimum", "exclusiveMinimum")
_maximum, _exclusive_maximum = _bound(Op.MAXIMUM, "maximum", "exclusiveMaximum")


def _multiple_of(t: Translator, frame: Frame, value: object) -> None:
    if type(value) not in (int, float):
        t.fail(frame, "multipleOf", "a number", value)
    if value <= 0:  # type: ignore[operator]
        t.fail_at(t.places.add(frame.place, "multipleOf"), "multipleOf must be greater than 0")
    text = t.builder.string(decimal_text(value))  # type: ignore[arg-type]
    frame.out.append(t.builder.node(Op.MULTIPLE_OF, text))


def _min_length(t: Translator, frame: Frame, value: object) -> None:
    length = count(t, frame, "minLength", value)
    if length:
        frame.out.append(t.builder.node(Op.MIN_LENGTH, length))


def _max_length(t: Translator, frame: Frame, value: object) -> None:
    length = count(t, frame, "maxLength", value)
    if length < INT_MAX:
        frame.out.append(t.builder.node(Op.MAX_LENGTH, length))


def _pattern(t: Translator, frame: Frame, value: object) -> None:
    if type(value) is not str:
        t.fail(frame, "pattern", "a string", value)
    frame.out.append(t.pattern(value, frame.place, "pattern"))


_STARTS = {"lark": ("start", "start"), "gbnf": ("root", "root"), "regex": ("", ""), "": ("", "")}


def _grammar(t: Translator, frame: Frame, value: object) -> None:
    """``x-grammar``: the string belongs to a grammar, or matches a pattern as a whole."""
    expected = 'an object such as {"lark": "..."}, {"gbnf": "..."} or {"regex": "..."}'
    if type(value) is not dict:
        t.fail(frame, "x-grammar", expected, value)
    kinds = [kind for kind in ("lark", "gbnf", "regex") if kind in value]
    place = t.places.add(frame.place, "x-grammar")
    option, default = _STARTS[kinds[0] if kinds else ""]
    if len(kinds) != 1 or not {option or kinds[0], kinds[0]}.issuperset(value):
        t.fail_at(place, f"x-grammar must be {expected}, found {', '.join(map(repr, value))}")
    for name, text in value.items():
        if type(text) is not str:
            t.fail_at(t.places.add(place, name), f"x-grammar: {name} must be a string")
    text, start = value[kinds[0]], value.get(option, default)
    frame.out.append(t.grammar(kinds[0], text, start, frame.place))


def _format(t: Translator, frame: Frame, value: object) -> None:
    if type(value) is not str:
        t.fail(frame, "format", "a string", value)
    if not (t.formats or frame.context.resource.dialect.format_assertion):
        return
    draft = frame.context.resource.dialect.name
    node = t.format(value, draft, frame.place)
    if node is None:
        t.note(frame, "format", "unknown", f"{value!r} is not enforced")
        return
    frame.out.append(node)
    narrowing = narrowed_format(value, draft)
    if narrowing is not None:
        t.note(frame, "format", "narrowed", f"{value!r}: {narrowing}")


def _content_encoding(t: Translator, frame: Frame, value: object) -> None:
    if not t.content:
        return
    if type(value) is not str:
        t.fail(frame, "contentEncoding", "a string", value)
    program = content_encoding(value)
    if program is None:
        t.note(frame, "contentEncoding", "unknown", f"{value!r} is not enforced")
        return
    frame.out.append(t.builder.regex(program))


# -- in place ----------------------------------------------------------------------------------


def _branches(
    t: Translator, frame: Frame, keyword: str, value: object, context: object = None
) -> list[int]:
    schemas = schemas_of(t, frame, keyword, value)
    there = t.places.add(frame.place, keyword)
    where = context or frame.branches
    return [
        t.in_place(schema, where, t.places.add(there, index))  # type: ignore[arg-type]
        for index, schema in enumerate(schemas)
    ]


def _all_of(t: Translator, frame: Frame, value: object) -> None:
    frame.out += _branches(t, frame, "allOf", value)


def _any_of(t: Translator, frame: Frame, value: object) -> None:
    frame.out.append(t.builder.any(_branches(t, frame, "anyOf", value)))


def _one_of(t: Translator, frame: Frame, value: object) -> None:
    # exactly one of alternatives that exclude each other is any of them, which is far cheaper
    schemas = schemas_of(t, frame, "oneOf", value)
    if are_disjoint(t, schemas, frame.context, frame.place):
        frame.out.append(t.builder.any(_branches(t, frame, "oneOf", value)))
        return
    if frame.context.mode != OPEN:
        # counted as written, since closing a branch may make a second match go away
        frame.out.append(t.builder.any(_branches(t, frame, "oneOf", value)))
    frame.out.append(t.builder.one(_branches(t, frame, "oneOf", value, frame.context.open)))


def _not(t: Translator, frame: Frame, value: object) -> None:
    node = t.in_place(value, frame.context.open, t.places.add(frame.place, "not"))
    frame.out.append(t.builder.negate(node))


def _if(t: Translator, frame: Frame, value: object) -> None:
    builder, places, schema = t.builder, t.places, frame.schema
    condition = t.in_place(value, frame.context.open, places.add(frame.place, "if"))
    if "then" in schema:
        node = t.in_place(schema["then"], frame.branches, places.add(frame.place, "then"))
        frame.out.append(builder.any((builder.negate(condition), node)))
    if "else" in schema:
        node = t.in_place(schema["else"], frame.branches, places.add(frame.place, "else"))
        frame.out.append(builder.any((condition, node)))


def _reference(keyword: str) -> Handler:
    def reference(t: Translator, frame: Frame, value: object) -> None:
        if type(value) is not str:
            t.fail(frame, keyword, "a URI reference", value)
        if keyword == "$recursiveRef" and value != "#":
            t.fail_at(t.places.add(frame.place, keyword), "$recursiveRef must be '#'")
        where = t.target(keyword, value, frame.branches, frame.place)
        frame.out.append(t.located(where, frame.branches))

    return reference


def _dependent_required(t: Translator, frame: Frame, value: object) -> None:
    for key, names in schema_map(t, frame, "dependentRequired", value).items():
        _requires(t, frame, key, names, "dependentRequired")


def _requires(t: Translator, frame: Frame, key: str, names: object, keyword: str) -> None:
    builder = t.builder
    if type(names) is not list or not all(type(name) is str for name in names):
        t.fail_at(
            t.places.add(t.places.add(frame.place, keyword), key),
            f"the names that depend on {key!r} must be an array of strings",
        )
    has = [has_key(builder, name) for name in names]
    frame.out.append(builder.any((builder.negate(has_key(builder, key)), builder.all(has))))


def _dependent_schemas(t: Translator, frame: Frame, value: object) -> None:
    members = schema_map(t, frame, "dependentSchemas", value)
    there = t.places.add(frame.place, "dependentSchemas")
    for key, schema in members.items():
        _depends(t, frame, key, schema, there)


def _depends(t: Translator, frame: Frame, key: str, schema: object, there: int) -> None:
    node = t.in_place(schema, frame.branches, t.places.add(there, key))
    frame.out.append(t.builder.any((t.builder.negate(has_key(t.builder, key)), node)))


def _dependencies(t: Translator, frame: Frame, value: object) -> None:
    members = schema_map(t, frame, "dependencies", value)
    if frame.context.draft >= 2019:
        t.note(frame, "dependencies", "surprise", "read as in draft 7")
    there = t.places.add(frame.place, "dependencies")
    for key, item in members.items():
        if type(item) is str:
            t.note(frame, "dependencies", "surprise", "a string, read as an array of it")
            item = [item]
        if type(item) is list:
            _requires(t, frame, key, item, "dependencies")
        else:
            _depends(t, frame, key, item, there)


# -- objects: gathered for one row -------------------------------------------------------------


def _properties(t: Translator, frame: Frame, value: object) -> None:
    frame.properties = schema_map(t, frame, "properties", value)
    frame.has_object = True


def _pattern_properties(t: Translator, frame: Frame, value: object) -> None:
    frame.pattern_properties = schema_map(t, frame, "patternProperties", value)
    frame.has_object = True


def _additional_properties(t: Translator, frame: Frame, value: object) -> None:
    frame.additional = value
    frame.has_object = True
    if value is None:
        t.fail(frame, "additionalProperties", "a schema", value)


def _unevaluated_properties(t: Translator, frame: Frame, value: object) -> None:
    frame.unevaluated_properties = value
    frame.has_object = True
    if value is None:
        t.fail(frame, "unevaluatedProperties", "a schema", value)


def _property_names(t: Translator, frame: Frame, value: object) -> None:
    frame.names = t.child(value, frame.context.open, frame.place, "propertyNames")
    frame.has_object = True


def _required(t: Translator, frame: Frame, value: object) -> None:
    if type(value) is bool:
        t.note(frame, "required", "surprise", "a boolean, read as in draft 3")
        return
    frame.required = strings_of(t, frame, "required", value)
    frame.has_object = True


def _min_properties(t: Translator, frame: Frame, value: object) -> None:
    frame.min_properties = count(t, frame, "minProperties", value)
    frame.has_object = True


def _max_properties(t: Translator, frame: Frame, value: object) -> None:
    most = count(t, frame, "maxProperties", value)
    frame.max_properties = most if most < INT_MAX else -1
    frame.has_object = True


# -- arrays ------------------------------------------------------------------------------------


def _items(t: Translator, frame: Frame, value: object) -> None:
    frame.has_array = True
    if type(value) is not list:
        if value is None:
            t.fail(frame, "items", "a schema", value)
        frame.rest, frame.rest_keyword = value, "items"
        return
    if frame.context.draft >= 2020:
        if "prefixItems" in frame.schema:
            t.fail(frame, "items", "a schema beside prefixItems", value)
        t.note(frame, "items", "surprise", "an array, read as in draft 2019-09 and earlier")
    frame.prefix = value
    rest = frame.schema.get("additionalItems")
    if rest is not None:
        frame.rest, frame.rest_keyword = rest, "additionalItems"


def _additional_items(t: Translator, frame: Frame, value: object) -> None:
    if type(value) not in (dict, bool):
        t.fail(frame, "additionalItems", "a schema", value)
    if type(frame.schema.get("items")) is not list:
        t.note(frame, "additionalItems", "surprise", "has no meaning without an array of items")


def _prefix_items(t: Translator, frame: Frame, value: object) -> None:
    frame.prefix = schemas_of(t, frame, "prefixItems", value)
    frame.has_array = True


def _unevaluated_items(t: Translator, frame: Frame, value: object) -> None:
    if value is None:
        t.fail(frame, "unevaluatedItems", "a schema", value)
    frame.unevaluated_items = value
    frame.has_array = True


def _min_items(t: Translator, frame: Frame, value: object) -> None:
    frame.min_items = count(t, frame, "minItems", value)
    frame.has_array = True


def _max_items(t: Translator, frame: Frame, value: object) -> None:
    most = count(t, frame, "maxItems", value)
    frame.max_items = most if most < INT_MAX else -1
    frame.has_array = True


def _unique_items(t: Translator, frame: Frame, value: object) -> None:
    if type(value) is not bool:
        t.fail(frame, "uniqueItems", "a boolean", value)
    if value:
        frame.out.append(t.builder.node(Op.UNIQUE))


def _contains(t: Translator, frame: Frame, value: object) -> None:
    builder, schema = t.builder, frame.schema
    node = t.child(value, frame.context.open, frame.place, "contains")
    fewest, most = 1, INT_MAX
    dialect = frame.context.resource.dialect
    if dialect.draft >= 2019 and dialect.validation:
        if "minContains" in schema:
            fewest = count(t, frame, "minContains", schema["minContains"])
        if "maxContains" in schema:
            most = count(t, frame, "maxContains", schema["maxContains"])
    if fewest:
        frame.out.append(builder.node(Op.CONTAINS_MIN, node, fewest))
    if most < INT_MAX and node != FALSE:
        frame.out.append(builder.node(Op.CONTAINS_MAX, node, most))


def _contains_bound(keyword: str) -> Handler:
    def bound(t: Translator, frame: Frame, value: object) -> None:
        count(t, frame, keyword, value)
        if "contains" not in frame.schema:
            t.note(frame, keyword, "surprise", "has no meaning without contains")

    return bound


# -- keywords without a meaning of their own ---------------------------------------------------


def _definitions(keyword: str) -> Handler:
    def definitions(t: Translator, frame: Frame, value: object) -> None:
        schema_map(t, frame, keyword, value)

    return definitions


def _branch_of_if(keyword: str) -> Handler:
    def branch(t: Translator, frame: Frame, value: object) -> None:
        if "if" not in frame.schema:
            t.note(frame, keyword, "surprise", "has no meaning without if")

    return branch


def _text(keyword: str) -> Handler:
    def text(t: Translator, frame: Frame, value: object) -> None:
        if type(value) is not str:
            t.fail(frame, keyword, "a string", value)

    return text


def _legacy_id(t: Translator, frame: Frame, value: object) -> None:
    # often a property that was meant to stand under `properties`
    if type(value) is not str:
        t.note(frame, "id", "surprise", "not a string, ignored")


def _of_another_draft(keyword: str) -> Handler:
    def ignored(t: Translator, frame: Frame, value: object) -> None:
        name = frame.context.resource.dialect.name
        t.note(frame, keyword, "surprise", f"has no meaning in draft {name}, ignored")

    return ignored


_CORE: dict[str, Handler | None] = {
    "$ref": _reference("$ref"),
    "$schema": None,
    "definitions": _definitions("definitions"),
    "title": None,
    "description": None,
    "default": None,
    "examples": None,
    "$comment": None,
    "readOnly": None,
    "writeOnly": None,
    "deprecated": None,
    "contentEncoding": None,
    "contentMediaType": None,
    "contentSchema": None,
}
_VALIDATION: dict[str, tuple[int, Handler]] = {
    "type": (4, _type),
    "enum": (4, _enum),
    "const": (6, _const),
    "minimum": (4, _minimum),
    "maximum": (4, _maximum),
    "exclusiveMinimum": (4, _exclusive_minimum),
    "exclusiveMaximum": (4, _exclusive_maximum),
    "multipleOf": (4, _multiple_of),
    "minLength": (4, _min_length),
    "maxLength": (4, _max_length),
    "pattern": (4, _pattern),
    "required": (4, _required),
    "minProperties": (4, _min_properties),
    "maxProperties": (4, _max_properties),
    "minItems": (4, _min_items),
    "maxItems": (4, _max_items),
    "uniqueItems": (4, _unique_items),
    "minContains": (2019, _contains_bound("minContains")),
    "maxContains": (2019, _contains_bound("maxContains")),
    "dependentRequired": (2019, _dependent_required),
}
_APPLICATORS: dict[str, tuple[int, Handler]] = {
    "format": (4, _format),
    "x-grammar": (4, _grammar),
    "allOf": (4, _all_of),
    "anyOf": (4, _any_of),
    "oneOf": (4, _one_of),
    "not": (4, _not),
    "if": (7, _if),
    "then": (7, _branch_of_if("then")),
    "else": (7, _branch_of_if("else")),
    "properties": (4, _properties),
    "patternProperties": (4, _pattern_properties),
    "additionalProperties": (4, _additional_properties),
    "propertyNames": (6, _property_names),
    "items": (4, _items),
    "contains": (6, _contains),
    "dependentSchemas": (2019, _dependent_schemas),
    "unevaluatedItems": (2019, _unevaluated_items),
    "unevaluatedProperties": (2019, _unevaluated_properties),
    "prefixItems": (2020, _prefix_items),
    "$dynamicRef": (2020, _reference("$dynamicRef")),
    "$defs": (4, _definitions("$defs")),
    "$id": (6, _text("$id")),
    "$anchor": (2019, _text("$anchor")),
    "$dynamicAnchor": (2020, _text("$dynamicAnchor")),
}


@lru_cache(maxsize=64)
def handlers_of(dialect: Dialect) -> dict[str, Handler | None]:
    """What each keyword of `dialect` does."""
    draft = dialect.draft
    table: dict[str, Handler | None] = dict(_CORE)
    for keyword, (first, handler) in (*_VALIDATION.items(), *_APPLICATORS.items()):
        if draft >= first:
            table[keyword] = handler
        else:
            table[keyword] = _of_another_draft(keyword)
    if not dialect.validation:
        table.update(dict.fromkeys(_VALIDATION))
    # the keywords that later drafts dropped or replaced
    table["additionalItems"] = _additional_items
    # Deprecated since 2019-09, where an implementation may still honour it: enforcing what somebody
    # wrote down is the safe reading.
    table["dependencies"] = _dependencies
    if draft >= 7:
        table["contentEncoding"] = _content_encoding
    if draft == 4:
        table["id"] = _legacy_id
    if draft == 2019:
        table["$recursiveRef"] = _reference("$recursiveRef")
        table["$recursiveAnchor"] = None
    else:
        table["$recursiveRef"] = _of_another_draft("$recursiveRef")
    if draft >= 2019:
        table["$vocabulary"] = None
    return table
