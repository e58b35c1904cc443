"""`JsonSchema`: a schema and the policies of its texts, as an immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from constrain.errors import ConstrainError, SchemaError
from constrain.schema.dialects import DRAFTS, Dialect
from constrain.schema.documents import Registry
from constrain.schema.loading import copy_schema, parse_schema, schema_text
from constrain.schema.translate import Translator

if TYPE_CHECKING:
    from constrain.errors import UnsatisfiableError
    from constrain.program import Program
    from constrain.schema.report import Report

__all__ = ["JsonSchema"]

_CHOICES = {
    "draft": tuple(reversed(DRAFTS)),
    "formats": ("assert", "ignore"),
    "content": ("ignore", "assert"),
    "property_order": ("any", "declared"),
    "whitespace": ("bounded", "any", "compact", "spaced"),
    "numbers": ("plain", "any"),
    "escapes": ("any", "plain"),
    "extra_properties": ("schema", "forbid"),
}


class JsonSchema:
    """JSON texts that are valid under a schema.

    Args:
        schema: a dict or bool, JSON text (str or bytes, UTF-8), or a Python type that pydantic
            understands: a model, dataclass, TypedDict, Enum, Literal, Union, ``list[T]``, ...
        draft: the dialect where the schema names none in ``$schema``: "2020-12", "2019-09", "7",
            "6" or "4".
        resources: schemas by URI, for ``$ref`` to other documents.  Nothing is ever fetched.
        formats: "assert" enforces the known formats on strings, "ignore" takes ``format`` as an
            annotation.
        content: "ignore" takes ``contentEncoding`` as the annotation that it is, "assert" enforces
            base64, base64url, base32 and base16 (RFC 4648, in one line, unused bits zero; padded,
            which is optional for base64url).  What the encoded bytes hold (``contentMediaType``,
            ``contentSchema``) is an annotation in any case.
        property_order: "any", or "declared": properties come in the order of ``properties``.
        whitespace: "bounded" (any, but no endless runs), "any", "compact" (none) or "spaced" (one
            blank behind each colon and comma and none elsewhere, as `json.dumps` writes).
        numbers: "plain" (integers without fraction or exponent, bounded numbers without exponent)
            or "any" (every spelling of a valid value).
        escapes: "any" spelling of strings and keys, or "plain": escapes only where JSON requires
            them, for a quote, a backslash and control characters, each in one form (``\\n`` and the
            like where there is a short one, else ``\\u001f`` with lowercase digits).  Then every
            string is written in one way, that of ``JSON.stringify`` and of ``json.dumps`` with
            ``ensure_ascii=False``, and keys and enumerations have long stretches without a choice.
        extra_properties: "schema" leaves objects as the schema says, "forbid" closes objects that
            declare properties and are silent about others.  The default is "forbid" for Python
            types and "schema" for everything else.

    Beside the keywords of the drafts there is ``x-grammar``: a string must belong to a grammar
    (``{"lark": text, "start": rule}``, ``{"gbnf": text, "root": rule}``) or match a pattern of
    Python's `re` as a whole (``{"regex": pattern}``).  It is the decoded string that counts, so any
    escapes may be used.  Grammars that need a stack are refused (`UnsupportedError`).

    Raises:
        SchemaError: the schema is malformed, with the JSON pointer; raised here for what is not
            JSON at all, and by `program` for what it says.
        ConstrainError: an argument has an unknown value.

    Equal by content and hashable; two schemas are equal if their JSON texts are, key order
    included.  The schema is copied, so later changes to a dict have no effect.
    """

    __slots__ = (
        "_key",
        "_program",
        "_repeated",
        "_resources",
        "_schema",
        "content",
        "draft",
        "escapes",
        "extra_properties",
        "formats",
        "numbers",
        "property_order",
        "whitespace",
    )

    content: str
    draft: str
    escapes: str
    extra_properties: str
    formats: str
    numbers: str
    property_order: str
    whitespace: str
    _key: tuple | None
    _program: Program | None
    _repeated: list[str]
    _resources: dict[str, object]
    _schema: object

    def __init__(
        self,
        schema: object,
        *,
        draft: str = "2020-12",
        resources: Mapping[str, object] | None = None,
        formats: str = "assert",
        content: str = "ignore",
        property_order: str = "any",
        whitespace: str = "bounded",
        numbers: str = "plain",
        escapes: str = "any",
        extra_properties: str | None = None,
    ) -> None:
        repeated: list[str] = []
        default = "schema"
        if isinstance(schema, (dict, bool)):
            copy = copy_schema(schema)
        elif isinstance(schema, (str, bytes, bytearray)):
            copy, repeated = parse_schema(
                bytes(schema) if isinstance(schema, bytearray) else schema
            )
        elif isinstance(schema, Mapping):
            copy = copy_schema(schema)
        elif isinstance(schema, JsonSchema):
            raise SchemaError("the schema is a JsonSchema already")
        else:
            copy = _from_type(schema)
            default = "forbid"
        if not isinstance(copy, (dict, bool)):
            raise SchemaError(
                f"a schema is an object or a boolean, found {type(copy).__name__}", pointer=""
            )
        if extra_properties is None:
            extra_properties = default
        given = {
            "draft": draft,
            "formats": formats,
            "content": content,
            "property_order": property_order,
            "whitespace": whitespace,
            "numbers": numbers,
            "escapes": escapes,
            "extra_properties": extra_properties,
        }
        put = object.__setattr__
        for name, value in given.items():
            if value not in _CHOICES[name]:
                choices = ", ".join(map(repr, _CHOICES[name]))
                raise ConstrainError(f"{name} must be one of {choices}, found {value!r}")
            put(self, name, value)
        if resources is not None and not isinstance(resources, Mapping):
            raise ConstrainError(
                f"resources must map URIs to schemas, found {type(resources).__name__}"
            )
        put(self, "_schema", copy)
        put(self, "_repeated", repeated)
        put(self, "_resources", _copy_resources(resources or {}))
        put(self, "_key", None)
        put(self, "_program", None)

    @property
    def schema(self) -> object:
        """The schema as plain JSON values: a fresh copy, free to change."""
        return copy_schema(self._schema)

    @property
    def resources(self) -> dict[str, object]:
        """The resources by URI: fresh copies, as plain JSON values."""
        return {uri: copy_schema(value) for uri, value in self._resources.items()}

    def with_schema(self, schema: object) -> JsonSchema:
        """Another schema with the resources and policies of this one."""
        options = {name: getattr(self, name) for name in _CHOICES}
        return JsonSchema(schema, resources=self._resources, **options)

    def program(self) -> Program:
        """The program, translated on the first call and kept.

        Raises:
            SchemaError: the schema is malformed or a reference cannot be resolved.
            RegexError: a pattern is malformed.
            UnsupportedError: something in the schema is not enforced.
        """
        if self._program is None:
            program = self._translate()
            program.notes["spec"] = self
            object.__setattr__(self, "_program", program)
            return program
        return self._program

    def report(self, *, analyze: bool = False) -> Report:
        """What of the schema is enforced, narrowed, unknown or surprising.

        With ``analyze`` also what can never be satisfied, what has no limits and what is likely
        to be a mistake: `Report.findings`, whose codes are listed in `constrain.schema.findings`.
        That takes longer (about a second for a schema of 100 KB) and never raises for what the
        schema says.
        """
        from constrain.schema.analysis import analyze as analysis
        from constrain.schema.report import Report

        return analysis(self) if analyze else Report.from_program(self.program())

    def unsatisfiable_error(self) -> UnsatisfiableError:
        """The error for this schema once nothing is known to satisfy it: names the keywords."""
        from constrain.schema.analysis import unsatisfiable_error

        return unsatisfiable_error(self)

    def program_as_written(self) -> Program:
        """The program without closing any object, whatever `extra_properties` says."""
        return self._translate(forbid=False)

    def _translate(self, forbid: bool | None = None) -> Program:
        dialect = Dialect(DRAFTS[self.draft], declared=False)
        registry = Registry(self._schema, self._resources, dialect)
        for key in self._repeated:
            registry.surprises.append((registry.root.place, key, "occurs twice, the last counts"))
        translator = Translator(
            registry,
            formats=self.formats == "assert",
            forbid=self.extra_properties == "forbid" if forbid is None else forbid,
            content=self.content == "assert",
        )
        return translator.run(
            whitespace=self.whitespace,
            numbers=self.numbers,
            property_order=self.property_order,
            escapes=self.escapes,
        )

    # -- value semantics -------------------------------------------------------------------

    def _content(self) -> tuple:
        if self._key is None:
            resources = tuple(
                (uri, schema_text(value)) for uri, value in sorted(self._resources.items())
            )
            key = (schema_text(self._schema), resources, *(getattr(self, n) for n in _CHOICES))
            object.__setattr__(self, "_key", key)
            return key
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonSchema):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a JsonSchema cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a JsonSchema cannot be changed")

    def __reduce__(self) -> tuple:
        return _restore, (
            schema_text(self._schema),
            self._resources,
            {name: getattr(self, name) for name in _CHOICES},
        )

    def __repr__(self) -> str:
        text = schema_text(self._schema)
        if len(text) > 120:
            text = f"{text[:100]}... {len(text)} characters"
        defaults = {name: choices[0] for name, choices in _CHOICES.items()}
        parts = [text]
        parts += [
            f"{name}={getattr(self, name)!r}"
            for name, default in defaults.items()
            if getattr(self, name) != default
        ]
        if self._resources:
            parts.append(f"resources=<{len(self._resources)}>")
        return f"JsonSchema({', '.join(parts)})"


def _restore(text: str, resources: dict[str, object], options: dict[str, str]) -> JsonSchema:
    return JsonSchema(text, resources=resources, **options)


def _copy_resources(resources: Mapping[str, object]) -> dict[str, object]:
    result: dict[str, object] = {}
    for uri, value in resources.items():
        if not isinstance(uri, str):
            raise SchemaError(f"a resource is named by a URI, found {uri!r}")
        try:
            if isinstance(value, (str, bytes, bytearray)):
                value = parse_schema(bytes(value) if isinstance(value, bytearray) else value)[0]
            else:
                value = copy_schema(value)
        except SchemaError as error:
            pointer = f"{uri}#{error.pointer or ''}"
            raise SchemaError(f"resource {uri!r}: {error.message}", pointer=pointer) from None
        if not isinstance(value, (dict, bool)):
            raise SchemaError(
                f"a resource is a schema, found {type(value).__name__}", pointer=f"{uri}#"
            )
        result[uri] = value
    return result


def _from_type(schema: object) -> object:
    from constrain.schema.python_types import is_type, schema_of_type

    if is_type(schema):
        return copy_schema(schema_of_type(schema))
    raise SchemaError(
        "a schema is a dict, a bool, JSON text or a Python type, found "
        f"{type(schema).__name__}: {str(schema)[:80]}"
    )
