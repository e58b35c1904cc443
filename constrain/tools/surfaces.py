"""Surfaces of arguments: how a format's arguments become a program for the JSON machine.

`spelled_program` takes a schema's program, gives it the `Surface` of a style of arguments, and adds
to its formula what the style cannot write and what the parser would read otherwise, so that every
text of the program is read back to arguments that satisfy the schema:

* a raw string has nothing in it that ends it, and a bare key none of the characters that would;
* where an argument may be a string or something else, the parser takes a text that is a value of
  another type for that value: strings that look like one are left out.  Of lists and dictionaries
  only the brackets are looked at: a string ``[a b]`` beside lists is left out though it is none;
* strings inside of JSON or Python values do not hold the text that ends the argument.

What the parser reads a text as depends on types that it finds in the schema (`json_types`), key by
key; the same functions are asked here.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from constrain import _native
from constrain._programs import native_program
from constrain.program import TYPES, Op, Program, Surface
from constrain.regex import compile_python
from constrain.schema.builder import FALSE, TRUE, ProgramBuilder
from constrain.tools.errors import ToolFormatError
from constrain.tools.formats import JsonArguments, PythonArguments, TaggedArguments
from constrain.tools.templates import Atom, Hole, Literal
from constrain.tools.values import (
    ALL_TYPES,
    declared_names,
    item_schema,
    json_types,
    property_schema,
    resolve,
)

__all__ = ["marked_program", "may_be_empty", "python_program", "tagged_program"]

BytesOf = Callable[[str], bytes]
"""The bytes of a text in a vocabulary, special tokens spelled as such."""

_IDENTIFIER = r"[^\W\d]\w*"
_BARE_CHARS = r"\s:{}\[\],"
_LONGEST_KEY = 200
_NESTED_ITEM = "item"
_JSON_OUTSIDE = frozenset(" \t\r\n[]{},:\"'0123456789+-.eEtrufalsnTFN\\")
_LIKE = {
    "number": r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?",
    "boolean": "true|false|True|False",
    "null": "null|None",
    "array": r"[\[(].*[\])]",
    "object": r"\{.*\}",
}
"""Texts, blanks aside, that may be read as a value of a type: all that are, and a few others."""


# -- the surfaces ------------------------------------------------------------------------------


def marked_program(program: Program, style: JsonArguments, bytes_of: BytesOf) -> Program:
    """The program of JSON whose strings stand between quotes of the format's own, keys bare."""
    mark = re.escape(style.quote)
    first, inner = f"[^{_BARE_CHARS}]", r"[^:{}\[\],\n]"
    key = rf"(?!{mark}){first}(?:{inner}*{first})?"
    builder = _Formulas(program)
    everywhere = builder.everywhere(builder.regex_of(_without(style.quote)), builder.regex_of(key))
    return builder.finish(
        everywhere, Surface(inner="quote", outer="quote", quote=bytes_of(style.quote))
    )


def python_program(program: Program, style: PythonArguments) -> Program:
    """The program of keywords: ``city='Oslo', days=2``."""
    builder = _Formulas(program)
    value = TRUE
    if style.strings == "raw":
        # No quote of the kind that a text is in is in the text.
        value = builder.for_strings("(?s)[^']*|[^\"]*")
    members = builder.object_of({}, value, builder.regex_of(_IDENTIFIER))
    outer = "unescaped" if style.strings == "raw" else "python"
    return builder.finish(
        builder.all([builder.type_is("object"), members]),
        Surface(
            "root",
            between=(b"=",),
            separator=b", ",
            outer=outer,
            inner="python",
            python_words=True,
        ),
    )


def tagged_program(
    program: Program,
    style: TaggedArguments,
    head: tuple[Atom, ...],
    tail: tuple[Atom, ...],
    parameters: Mapping[str, Any],
    bytes_of: BytesOf,
) -> Program:
    """The program of tagged arguments.

    Args:
        program: of the schema `parameters`.
        head: the atoms of one argument before its value.
        tail: the atoms behind it.
        bytes_of: the spelling of texts.

    Raises ToolFormatError for a template that leaves open where something ends.
    """
    at = next(n for n, one in enumerate(head) if isinstance(one, Hole) and one.kind == "key")
    if not all(isinstance(one, Literal) for one in head[:at]):
        raise ToolFormatError(
            "the type of a value stands behind its key", field="arguments.parameter"
        )
    if any(isinstance(one, Hole) and one.kind != "key" for one in tail):
        raise ToolFormatError(
            "the type of a value stands before the value", field="arguments.parameter"
        )
    begin = "".join(one.text for one in head[:at] if isinstance(one, Literal))
    if begin[:1].isspace():
        raise ToolFormatError("a parameter begins with its text", field="arguments.parameter")
    first, last = tail[0], tail[-1]
    if not isinstance(first, Literal) or not isinstance(last, Literal) or not last.text.strip():
        raise ToolFormatError("a parameter ends with a text", field="arguments.parameter")
    stop = first.text.rstrip() if len(tail) == 1 else first.text
    if _JSON_OUTSIDE.issuperset(stop):
        raise ToolFormatError(f"{stop!r} may stand inside of a value", field="arguments.parameter")
    behind = head[at + 1]
    if not isinstance(behind, Literal) or not behind.text[0].isascii():
        raise ToolFormatError("an ASCII character must follow the key", field="arguments.parameter")
    kinds = {one.kind for one in head if isinstance(one, Hole)} & {"type", "string"}
    nested = style.values == "nested"
    if nested and (kinds or style.separator.strip() or stop[:1].isspace()):
        raise ToolFormatError(
            "nested values have neither types nor separators", field="arguments.values"
        )
    spelled_stop = bytes_of(stop)
    cdata = style.cdata and b"\xff" not in spelled_stop
    builder = _Tagged(program, style, parameters, begin, behind.text, stop, cdata, frozenset(kinds))
    return builder.finish(
        builder.root(),
        Surface(
            "nested" if nested else "root",
            head=bytes_of(begin),
            between=_pieces(head[at + 1 :], bytes_of),
            tail=_pieces(tail, bytes_of),
            separator=bytes_of(style.separator),
            outer="tail",
            inner="python" if style.values == "python" else "json",
            python_words=style.values == "python",
            cdata=cdata,
        ),
    )


def _pieces(atoms: Iterable[Atom], bytes_of: BytesOf) -> tuple[bytes | str, ...]:
    return tuple(one.kind if isinstance(one, Hole) else bytes_of(one.text) for one in atoms)


def may_be_empty(program: Program) -> bool:
    """Whether the object without members satisfies a program."""
    builder = _Formulas(program)
    empty = builder.all([builder.type_is("object"), builder.object_of({}, FALSE, TRUE)])
    changed = builder.finish(program.root, None)
    answer = _native.Analyzer(native_program(changed)).satisfiable([[program.root], [empty]])
    return answer is True


# -- formulas ----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _regex(pattern: str) -> array[int]:
    return compile_python(pattern, re.DOTALL)


def _without(stop: str) -> str:
    """Texts whose first `stop`, written behind them, is that one."""
    parts = [f"(?!.*{re.escape(stop)})"]
    for size in range(1, len(stop)):
        if stop.endswith(stop[:size]):
            parts.append(rf"(?!.*{re.escape(stop[:-size])}\Z)")
    return "".join(parts) + ".*"


class _Formulas:
    """The formula of a program under extension."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._builder = ProgramBuilder.resumed(program)

    def regex_of(self, pattern: str) -> int:
        """The whole string matches."""
        return self._builder.regex(_regex(pattern))

    def for_strings(self, pattern: str) -> int:
        """No string, or one that matches as a whole."""
        return self.regex_of(pattern)

    def all(self, nodes: Iterable[int]) -> int:
        """Conjunction."""
        return self._builder.all(nodes)

    def type_is(self, *names: str) -> int:
        """One of these types; boolean is two."""
        numbers = []
        for name in names:
            both = ("true", "false") if name == "boolean" else (name,)
            numbers += [TYPES.index(one) for one in both]
        return self._builder.any(self._builder.node(int(Op.TYPE), one) for one in sorted(numbers))

    def object_of(self, properties: Mapping[str, int], others: int, names: int) -> int:
        """No object, or one whose members are such."""
        pairs = [x for key, node in properties.items() for x in (self._builder.string(key), node)]
        return self._builder.row(
            int(Op.OBJECT), (len(properties), *pairs, 0, others, names, 0, 0, -1)
        )

    def array_of(self, items: int, least: int = 0) -> int:
        """No array, or one whose items are such."""
        return self._builder.row(int(Op.ARRAY), (0, items, least, -1))

    def has(self, key: str) -> int:
        """No object, or one with this key."""
        return self._builder.node(int(Op.HAS), self._builder.string(key))

    def deferred(self) -> tuple[int, Callable[[int], None]]:
        """A node that is said later what it is."""
        refs = self._builder.refs
        number = len(refs)
        refs.append(FALSE)

        def set_to(node: int) -> None:
            refs[number] = node

        return self._builder.node(int(Op.REF), number), set_to

    def everywhere(self, strings: int, keys: int) -> int:
        """All strings and keys at any depth are such."""
        reference, set_to = self.deferred()
        node = self.all([strings, self.object_of({}, reference, keys), self.array_of(reference)])
        set_to(node)
        return node

    def finish(self, formula: int, surface: Surface | None) -> Program:
        """The program with `formula` added to its own."""
        builder = self._builder
        root = builder.all([self._program.root, formula])
        built = builder.build("json", root, notes=self._program.notes)
        return replace(
            self._program,
            nodes=built.nodes,
            args=built.args,
            refs=built.refs,
            regexes=built.regexes,
            strings=built.strings,
            root=root,
            surface=surface,
        )


class _Tagged(_Formulas):
    """What tagged arguments can be written and read."""

    def __init__(
        self,
        program: Program,
        style: TaggedArguments,
        parameters: Mapping[str, Any],
        begin: str,
        behind: str,
        stop: str,
        cdata: bool,
        kinds: frozenset[str],
    ) -> None:
        super().__init__(program)
        self._parameters = parameters
        self._nested = style.values == "nested"
        self._kinds = kinds
        self._begin, self._behind, self._stop = begin, behind, stop
        text = _without("]]>" + stop if cdata else stop)
        if self._nested:
            text = f"(?!.*{re.escape(begin)})" + text
        self._text = text
        # Control characters are escaped in strings of values.
        self._inside = TRUE
        if not self._nested and not any(char < " " for char in stop):
            free = self.regex_of(_without(stop))
            self._inside = self.everywhere(free, free)
        self._values: dict[tuple[str, frozenset[str], frozenset[str]], int] = {}

    def root(self) -> int:
        """The arguments themselves."""
        return self.all([self.type_is("object"), self._object(self._parameters, True)])

    def _object(self, schema: Any, is_root: bool) -> int:
        root = self._parameters
        names = _property_names(schema, root)
        properties = {}
        for key in names:
            inner = property_schema(schema, key, root)
            types = json_types(inner, root)
            properties[key] = self._value(inner, types, types)
        inner, sure, possible = _other_schema(schema, root)
        if self._nested and inner is None:  # what is inside would be read by different schemas
            sure -= {"array", "object"}
        others = self._value(inner, sure, possible)
        return self.object_of(properties, others, self._keys(is_root))

    def _keys(self, is_root: bool) -> int:
        end = re.escape(self._behind[0])
        declared = declared_names(self._parameters) if is_root else None
        if declared is not None:
            fit = [key for key in declared if key and self._behind[0] not in key]
            return self._builder.one_of_strings(fit) if fit else FALSE
        pattern = rf'(?!.*{end})[^\n"<>]{{1,{_LONGEST_KEY}}}'
        if self._stop.startswith(self._begin):
            # a closing tag is no key
            pattern = f"(?!{re.escape(self._stop[len(self._begin) :])})" + pattern
        return self.regex_of(pattern)

    def _value(self, schema: Any, sure: frozenset[str], possible: frozenset[str]) -> int:
        """An argument that the parser reads as one of `possible` types, among them `sure` ones."""
        target = resolve(schema, self._parameters) if self._nested else None
        key = (json.dumps(target), sure, possible)
        found = self._values.get(key)
        if found is not None:
            return found
        if not self._nested:
            found = self._values[key] = self._plain_value(sure, possible)
            return found
        reference, set_to = self.deferred()
        self._values[key] = reference
        set_to(self._nested_value(target, sure, possible))
        return reference

    def _plain_value(self, sure: frozenset[str], possible: frozenset[str]) -> int:
        if "type" in self._kinds:
            return self.all([self.regex_of(self._text), self._other_inside()])
        text, types = self._strings(sure, possible)
        return self.all([text, types, self._other_inside()])

    def _strings(self, sure: frozenset[str], possible: frozenset[str]) -> tuple[int, int]:
        """What strings are, and which types a value may have."""
        if self._kinds:  # the tag says whether it is a string
            others = (sure if possible - {"string"} else ALL_TYPES) - {"string"}
            return self.regex_of(self._text), self.type_is("string", *others)
        text = self._text
        if possible != {"string"}:
            like = [_LIKE[name] for name in sorted(possible - {"string"})]
            if self._nested and possible & {"array", "object"}:
                like.append("")
            text = rf"(?!\s*(?:{'|'.join(like)})\s*\Z)" + text
        return self.regex_of(text), self.type_is(*sure)

    def _other_inside(self) -> int:
        """Lists and dictionaries whose strings do not end the argument."""
        if self._inside == TRUE:
            return TRUE
        free = self.regex_of(_without(self._stop))
        return self.all([self.object_of({}, self._inside, free), self.array_of(self._inside)])

    def _nested_value(self, schema: Any, sure: frozenset[str], possible: frozenset[str]) -> int:
        root = self._parameters
        text, types = self._strings(sure, possible)
        parts = [text, types]
        if "object" in sure:
            parts.append(self._object(schema, False))
            if "array" in possible:
                # items would be read
                parts.append(
                    self._builder.any(
                        [
                            self._builder.negate(self.type_is("object")),
                            self._builder.negate(self.has(_NESTED_ITEM)),
                        ]
                    )
                )
        if "array" in sure:
            items = item_schema(schema, root)
            inner = json_types(items, root)
            # nothing at all would be read as the empty object
            least = 1 if "object" in possible else 0
            parts.append(self.array_of(self._value(items, inner, inner), least))
        return self.all(parts)


def _property_names(schema: Any, root: Mapping[str, Any], depth: int = 0) -> list[str]:
    """All names for which `property_schema` may find something of their own."""
    schema = resolve(schema, root)
    if not isinstance(schema, Mapping) or depth > 20:
        return []
    names = dict.fromkeys(schema.get("properties") or {})
    for keyword in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(keyword) or ():
            names.update(dict.fromkeys(_property_names(one, root, depth + 1)))
    return list(names)


def _other_schema(
    schema: Any, root: Mapping[str, Any]
) -> tuple[Any, frozenset[str], frozenset[str]]:
    """What other keys' values are read by: a schema, the types they have for all such keys, and
    for some.  The schema is None where it is not one for all of them."""
    found: list[Any] = []

    def without_patterns(schema: Any, depth: int) -> Any:
        schema = resolve(schema, root)
        if not isinstance(schema, Mapping) or depth > 20:
            return schema
        found.extend((schema.get("patternProperties") or {}).values())
        changed = {k: v for k, v in schema.items() if k not in ("properties", "patternProperties")}
        for keyword in ("allOf", "anyOf", "oneOf"):
            if schema.get(keyword):
                changed[keyword] = [without_patterns(one, depth + 1) for one in schema[keyword]]
        return changed

    plain = property_schema(without_patterns(schema, 0), "", root)
    kinds = [json_types(one, root) for one in (plain, *found)]
    sure = kinds[0].intersection(*kinds[1:])
    possible = kinds[0].union(*kinds[1:])
    return (None if found else plain), sure, possible
