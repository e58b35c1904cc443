"""The program format: what front ends emit and machines execute.

A program is flat and immutable: int32 tables and byte strings, no native object.  It can be
printed, pickled, hashed and compared, so front ends are tested without a tokenizer and without C++.

``nodes`` is a table of formulas, three int32 a row: ``(op, a, b)``.  Node 0 is FALSE and node 1 is
TRUE.  A formula says something about one JSON value.  An operator about strings (numbers, objects,
arrays) holds of every value of another type, as the keywords of JSON Schema do.

====================== ============================ ===============================================
op                     a, b                         meaning
====================== ============================ ===============================================
FALSE, TRUE
AND, OR, ONE           offset in args, count        all, any, exactly one of the nodes at args
NOT                    node
TYPE                   index into TYPES             the value is of this type
REF                    index into refs              the formula ``refs[a]`` (allows recursion)
ENUM                   offset in args, count        equal to one of ``values[args[...]]``
REGEX                  index into regexes           the whole string is in the regex's language
STRINGS                offset in args, count        the string is one of ``strings[args[...]]``
MIN_LENGTH, MAX_LENGTH n                            code points
MINIMUM, MAXIMUM       string index, strict (0/1)   bound written as a decimal text
MULTIPLE_OF            string index
INTEGER                                             mathematically an integer
INTEGER_LEXICAL                                     written without fraction or exponent (draft 4)
OBJECT                 offset in args               conjunctive object keywords, layout below
HAS                    string index                 the object has this key
UNEVALUATED_PROPERTIES node, offset in args         [n, (matcher node, condition node) * n]
ARRAY                  offset in args               conjunctive array keywords, layout below
CONTAINS_MIN/_MAX      node, n                      at least / at most n items satisfy node
UNIQUE                                              items pairwise different
UNEVALUATED_ITEMS      node, offset in args         [n, (kind, x, condition node) * n], kind 0: items
                                                    of index < x; 1: all items; 2: items that
                                                    satisfy node x
====================== ============================ ===============================================

OBJECT layout at args[a]::

    n_properties, (string index, node) * n_properties,
    n_patterns, (matcher node, node) * n_patterns,     # matcher: a formula about the key as a string
    additional node,          # for keys matched by no property and no pattern; TRUE when absent
    names node,               # every key, as a string, satisfies it; TRUE when absent
    n_required, string index * n_required,
    min_properties, max_properties (-1: no bound)

ARRAY layout at args[a]::

    n_prefix, node * n_prefix, rest node (TRUE when absent), min_items, max_items (-1: no bound)

``values`` is a table of constants, three int32 a row ``(kind, a, b)``: kind 0 null, 1 true,
2 false, 3 number (a: string index of a decimal text), 4 string (a: string index), 5 array
(a, b: offset and count in args of value indices), 6 object (offset and count in args of pairs
(string index, value index)).  Equal values need not be merged; numbers compare by value.

A REF may stand wherever a node may, also in place (below AND, OR, ONE, NOT), where it never leads
back to itself.  Conditions of UNEVALUATED_* speak of the object or array itself.

``regexes`` are regex programs, one int32 array each (see ``constrain/regex``).  ``strings`` are
UTF-8 byte strings.  ``root`` is a node for kind "json".  For kind "text" the whole text, read as
UTF-8, is the string that ``root`` speaks of: used by Regex and Choice.

``notes`` of a JSON Schema, for reports and explanations; no machine reads them::

    places   (parents, tokens): places in documents as a forest; a root has parent -1 and its URI
    schemas  [(place, node, schema, draft number)]: the formula of each schema translated
    entries  [(place, keyword, status, detail)]: what is unusual (see ``constrain/schema/report``)
    formats  whether ``format`` is asserted
    content  whether ``contentEncoding`` is asserted
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

__all__ = ["TYPES", "Op", "Program", "Surface", "ValueKind"]

TYPES = ("null", "true", "false", "number", "string", "array", "object")


class Op(IntEnum):
    """Operators of formula nodes.  The numbers are shared with program.hpp."""

    FALSE = 0
    TRUE = 1
    AND = 2
    OR = 3
    ONE = 4
    NOT = 5
    TYPE = 6
    REF = 7
    ENUM = 8
    REGEX = 9
    STRINGS = 10
    MIN_LENGTH = 11
    MAX_LENGTH = 12
    MINIMUM = 13
    MAXIMUM = 14
    MULTIPLE_OF = 15
    INTEGER = 16
    INTEGER_LEXICAL = 17
    OBJECT = 20
    HAS = 21
    UNEVALUATED_PROPERTIES = 22
    ARRAY = 25
    CONTAINS_MIN = 26
    CONTAINS_MAX = 27
    UNIQUE = 28
    UNEVALUATED_ITEMS = 29


class ValueKind(IntEnum):
    """Kinds of constants.  The numbers are shared with program.hpp."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    NUMBER = 3
    STRING = 4
    ARRAY = 5
    OBJECT = 6


class Surface(NamedTuple):
    """How the values of a program of kind "json" are written where that is not JSON.

    Texts are bytes: UTF-8, in which special tokens may be spelled (0xFF and three bytes).  A tuple
    of pieces is texts (bytes) and holes (str): "key" is the key of the member, "type" the type of
    its value (null, boolean, number, string, array, object), "string" whether that is a string
    (true, false).

    Attributes:
        members: "braces" (objects have brackets, as in JSON), "root" (the root, an object, is
            written as bare members), "nested" (all objects and arrays are).
        head: before the key of a bare member.
        between: from the key to the value; its first piece is a text that begins with an ASCII
            character or a special token, which no key has in it.
        tail: behind the value.
        separator: between two bare members.  Whitespace around it, and at the end of `tail`, is
            free as whitespace of JSON is (compact: exactly as it stands).
        outer: how strings are written that are values of bare members: "json", "python" (in single
            or double quotes, with Python's escapes), "unescaped" (in such quotes, without escapes),
            "tail" (as they are, up to the first text of `tail`).  With "tail" a value's text may be
            read both as a string and as another value: the program's formulas must say which.
        inner: the same for all other strings: "json", "python" or "quote" (as they are, between
            two `quote`; keys of objects are then bare, up to a colon).
        quote: see `inner`.
        python_words: True, False and None may stand for true, false and null.
        cdata: strings up to the tail may stand in ``<![CDATA[...]]>``.

    What a surface cannot write (a string with the tail in it, a key with a space in it) the
    program's formulas must forbid; `constrain.tools.surfaces` adds that.
    """

    members: str = "braces"
    head: bytes = b""
    between: tuple[bytes | str, ...] = ()
    tail: tuple[bytes | str, ...] = ()
    separator: bytes = b""
    outer: str = "json"
    inner: str = "json"
    quote: bytes = b""
    python_words: bool = False
    cdata: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled constraint before it meets a vocabulary.

    ``kind`` is "json", "text" or "grammar".  ``whitespace`` is "bounded", "any", "compact" or
    "spaced"; ``numbers`` is "plain" or "any", ``escapes`` "any" or "plain" (see `JsonSchema`); they
    matter to kind "json" only.  All arrays hold int32.
    ``surface`` is None for JSON.
    ``parts`` are the programs of kind "json" that a grammar embeds, by foreign number; several may
    be one program (see ``constrain/grammar/program.py``).
    """

    kind: str
    nodes: array
    args: array
    refs: array
    values: array
    regexes: tuple[array, ...]
    strings: tuple[bytes, ...]
    root: int
    whitespace: str = "bounded"
    numbers: str = "plain"
    property_order: str = "any"
    escapes: str = "any"
    parts: tuple[Program, ...] = ()
    surface: Surface | None = None
    notes: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(
            (
                self.kind,
                self.nodes.tobytes(),
                self.args.tobytes(),
                self.strings,
                self.root,
                self.parts,
                self.surface,
            )
        )
