"""Small questions whose answers fill the support table: what a keyword does in each draft, which
constructs of a regular expression are read, what the policies admit.

A probe holds texts and the verdicts that the answer predicts; `keyword_status` and its like run
them through masks, so that an answer which is not true cannot be given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.reference import vocabularies
from tests.reference.drive import judge, new_row

EXACT: dict[str, Any] = {"whitespace": "any", "numbers": "any"}


def accepts(spec: Any, text: str) -> bool:
    """Whether `text` is accepted, byte by byte under the masks of `spec`."""
    import constrain

    vocabulary = vocabularies.byte_vocabulary()
    try:
        compiled = constrain.compile(spec, vocabulary.vocabulary)
    except constrain.UnsatisfiableError:
        return False
    row = new_row(vocabulary.vocabulary)
    return judge(compiled, list(text.encode()), vocabulary.eos_ids, row).accepted


# -- keywords ----------------------------------------------------------------------------------

_ANY_OF_TWO = [{"required": ["a"]}, {"required": ["b"]}]
_LIST = {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"type": "integer"}}}
KEYWORDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "type": ({"type": ["string", "null"]}, "null", "1"),
    "enum": ({"enum": [1, {"a": [2]}]}, '{"a": [2.0]}', '{"a": [3]}'),
    "const": ({"const": [1]}, "[1]", "[2]"),
    "minimum": ({"minimum": 1.5}, "1.5", "1.49"),
    "maximum": ({"maximum": 1.5}, "1.5", "1.51"),
    "exclusiveMinimum": ({"exclusiveMinimum": 1}, "1.1", "1"),
    "exclusiveMaximum": ({"exclusiveMaximum": 1}, "0.9", "1"),
    "exclusiveMinimum: true": ({"minimum": 1, "exclusiveMinimum": True}, "1.1", "1"),
    "exclusiveMaximum: true": ({"maximum": 1, "exclusiveMaximum": True}, "0.9", "1"),
    "multipleOf": ({"multipleOf": 0.01}, "1.23", "1.234"),
    "minLength": ({"minLength": 2}, '"ab"', '"\\ud83d\\ude00"'),
    "maxLength": ({"maxLength": 1}, '"\\ud83d\\ude00"', '"ab"'),
    "pattern": ({"pattern": "^a"}, '"\\u0061b"', '"ba"'),
    "format (see below)": ({"format": "date"}, '"2024-02-29"', '"2023-02-29"'),
    "contentEncoding": ({"contentEncoding": "base64"}, '"Zm9v"', '"Zm9"'),
    "contentMediaType": ({"contentMediaType": "application/json"}, '"{}"', '"{:}"'),
    "contentSchema": (
        {"contentMediaType": "application/json", "contentSchema": {"type": "array"}},
        '"[]"',
        '"{}"',
    ),
    "allOf": ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, "2", "4"),
    "anyOf": ({"anyOf": [{"type": "null"}, {"enum": ["a"]}]}, '"a"', '"b"'),
    "oneOf": ({"oneOf": _ANY_OF_TWO}, '{"a": 1}', '{"a": 1, "b": 1}'),
    "not": ({"not": {"required": ["a"]}}, '{"b": 1}', '{"a": 1}'),
    "if, then": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        '{"a": 1, "b": 1}',
        '{"a": 1}',
    ),
    "if, else": ({"if": {"required": ["a"]}, "else": {"required": ["b"]}}, '{"b": 1}', "{}"),
    "properties": ({"properties": {"a": {"type": "null"}}}, '{"a": null}', '{"a": 1}'),
    "patternProperties": ({"patternProperties": {"^a": False}}, '{"b": 1}', '{"ab": 1}'),
    "additionalProperties": (
        {"properties": {"a": True}, "additionalProperties": False},
        '{"a": 1}',
        '{"b": 1}',
    ),
    "propertyNames": ({"propertyNames": {"maxLength": 1}}, '{"a": 1}', '{"ab": 1}'),
    "required": ({"required": ["a"]}, '{"b": 1, "a": 1}', '{"b": 1}'),
    "minProperties": ({"minProperties": 1}, '{"a": 1}', "{}"),
    "maxProperties": ({"maxProperties": 1}, '{"a": 1}', '{"a": 1, "b": 1}'),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, '{"b": 1}', '{"a": 1}'),
    "dependentSchemas": ({"dependentSchemas": {"a": {"minProperties": 2}}}, "{}", '{"a": 1}'),
    "dependencies": ({"dependencies": {"a": ["b"]}}, '{"b": 1}', '{"a": 1}'),
    "dependencies with schemas": (
        {"dependencies": {"a": {"minProperties": 2}}},
        '{"a": 1, "b": 2}',
        '{"a": 1}',
    ),
    "unevaluatedProperties": (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        '{"a": 1}',
        '{"b": 1}',
    ),
    "prefixItems": ({"prefixItems": [{"type": "null"}]}, "[null, 1]", "[1]"),
    "items": ({"items": {"type": "null"}}, "[null]", "[null, 1]"),
    "items as an array": ({"items": [{"type": "null"}]}, "[null, 1]", "[1]"),
    "additionalItems": ({"items": [{}], "additionalItems": False}, "[1]", "[1, 2]"),
    "unevaluatedItems": ({"items": [{}], "unevaluatedItems": False}, "[1]", "[1, 2]"),
    "contains": ({"contains": {"type": "null"}}, "[1, null]", "[1]"),
    "minContains": ({"contains": {"type": "null"}, "minContains": 2}, "[null, null]", "[null]"),
    "maxContains": ({"contains": {"type": "null"}, "maxContains": 1}, "[null]", "[null, null]"),
    "minItems": ({"minItems": 1}, "[1]", "[]"),
    "maxItems": ({"maxItems": 1}, "[1]", "[1, 2]"),
    "uniqueItems": (
        {"uniqueItems": True},
        '[{"a": 1}, {"a": 2}]',
        '[{"a": 1, "b": 2}, {"b": 2.0, "\\u0061": 1}]',
    ),
    "$ref": (_LIST, '{"next": {"v": 1}}', '{"next": {"v": "x"}}'),
    "$dynamicRef, $dynamicAnchor": (
        {"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "required": ["b"]},
        '{"a": {"b": 1}, "b": 1}',
        '{"a": {}, "b": 1}',
    ),
    "$recursiveRef, $recursiveAnchor": (
        {"$recursiveAnchor": True, "properties": {"a": {"$recursiveRef": "#"}}, "required": ["b"]},
        '{"a": {"b": 1}, "b": 1}',
        '{"a": {}, "b": 1}',
    ),
    "definitions": (
        {"definitions": {"d": {"type": "null"}}, "properties": {"a": {"$ref": "#/definitions/d"}}},
        '{"a": null}',
        '{"a": 1}',
    ),
    "$defs": (
        {"$defs": {"d": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/d"}}},
        '{"a": null}',
        '{"a": 1}',
    ),
    "$anchor": (
        {"$defs": {"d": {"$anchor": "x", "type": "null"}}, "properties": {"a": {"$ref": "#x"}}},
        '{"a": null}',
        '{"a": 1}',
    ),
    "$id": (
        {
            "$defs": {"d": {"$id": "urn:d", "type": "null"}},
            "properties": {"a": {"$ref": "urn:d"}},
        },
        '{"a": null}',
        '{"a": 1}',
    ),
    "id": (
        {
            "definitions": {"d": {"id": "urn:d", "type": "null"}},
            "properties": {"a": {"$ref": "urn:d"}},
        },
        '{"a": null}',
        '{"a": 1}',
    ),
    **{
        keyword: ({keyword: value}, "1", "")
        for keyword, value in {
            "title": "t",
            "description": "d",
            "default": 2,
            "examples": [2],
            "$comment": "c",
            "readOnly": True,
            "writeOnly": True,
            "deprecated": True,
        }.items()
    },
}
"""Keyword to a schema with it, a text that is valid under it, and one that it forbids ("": none).

Identifiers are probed by a reference to them.
"""


def keyword_status(keyword: str, draft: str) -> str:
    """What a keyword does in a draft: "enforced", "annotation", "not in this draft", ....

    Raises AssertionError where texts and report do not bear out any of them.
    """
    import constrain

    schema, valid, invalid = KEYWORDS[keyword]
    name = keyword.split()[0].rstrip(":,")
    spec = constrain.JsonSchema(schema, draft=draft, **EXACT)
    try:
        report = spec.report()
    except constrain.SchemaError as error:
        if "reference" not in str(error) and "resolve" not in str(error):
            raise
        return "not in this draft"
    notes = [entry for entry in report if entry.keyword == name]
    said = {entry.status for entry in notes}
    good = accepts(spec, valid)
    bad = bool(invalid) and not accepts(spec, invalid)
    assert good, f"{keyword} in draft {draft}: {valid} is refused"
    if bad:
        if "surprise" in said:
            return "enforced: " + next(e.detail for e in notes if e.status == "surprise")
        assert said <= {"enforced", "narrowed"}, f"{keyword} in draft {draft}: said to be {said}"
        return "enforced"
    if said == {"annotation"}:
        content = constrain.JsonSchema(schema, draft=draft, content="assert", **EXACT)
        if invalid and not accepts(content, invalid):
            return 'annotation, or enforced (`content="assert"`)'
        return "annotation"
    assert said <= {"surprise", "unknown"}, f"{keyword} in draft {draft}: said to be {said}"
    assert said, f"{keyword} in draft {draft}: ignored, and the report does not say so"
    return "not in this draft"


# -- regular expressions -----------------------------------------------------------------------


@dataclass(frozen=True)
class Construct:
    """A construct of regular expressions: patterns that use it, with texts for and against."""

    name: str
    pattern: str
    matching: str
    other: str


ECMA = [
    Construct("alternatives, groups", "^(ab|c)d$", "abd", "ad"),
    Construct("non-capturing groups", "^(?:ab)+$", "abab", "aba"),
    Construct("named groups", "^(?<year>[0-9]{4})$", "2024", "24"),
    Construct("greedy quantifiers", "^a{2,3}b*c+d?$", "aac", "acc"),
    Construct("lazy quantifiers", "^a+?b??$", "aab", "b"),
    Construct("unanchored search", "b.d", "abcde", "abd"),
    Construct("anchors inside a pattern", "^a$|^b", "bx", "ax"),
    Construct("classes, ranges, negation", "^[a-c][^x-z]$", "bw", "bx"),
    Construct("`\\d \\w \\s` and their complements", "^\\d\\w\\s\\D\\W\\S$", "1_ a-a", "a_ a-a"),
    Construct("`\\s` as in ECMA-262", "^\\s$", "\ufeff", "\u180e"),
    Construct("`.` without line terminators", "^.$", "\u0085", "\u2028"),
    Construct("characters beyond U+FFFF as one", "^.$", "😀", "ab"),
    Construct("word boundaries `\\b \\B`", "^a\\b.\\Bb?", "a- ", "ab"),
    Construct("lookahead `(?=...)`", "^(?=.*[0-9])[a-z0-9]+$", "a1", "ab"),
    Construct("negative lookahead `(?!...)`", "^(?!no)[a-z]+$", "yes", "nope"),
    Construct("lookbehind of one code point", "^.(?<=a)b$", "ab", "bb"),
    Construct("negative lookbehind of one code point", "^.(?<!a)b$", "bb", "ab"),
    Construct("`\\uXXXX` and surrogate pairs", "^\\u0061\\ud83d\\ude00$", "a😀", "b😀"),
    Construct("`\\u{...}`, `\\xXX`, `\\cX`", "^\\u{1F600}\\x41\\cJ$", "😀A\n", "😀B\n"),
    Construct("`\\p{...}`: general categories", "^\\p{Lu}\\P{L}$", "É1", "é1"),
    Construct("`\\p{Script=...}`", "^\\p{Script=Greek}+$", "αβγ", "abc"),
    Construct("inline flags `(?i)`, `(?i:...)`", "^(?i:ab)c$", "aBc", "aBC"),
    Construct("backreferences", "^(a|b)\\1$", "aa", "ab"),
    Construct("named backreferences", "^(?<n>a|b)\\k<n>$", "aa", "ab"),
    Construct("longer lookbehind", "(?<=ab)c", "abc", "bbc"),
    Construct("escapes of other dialects: `\\A`", "\\Aa", "a", "b"),
    Construct("escapes of other dialects: `\\Z`", "a\\Z", "a", "b"),
    Construct("atomic groups", "^(?>a+)b$", "aab", "b"),
]
PYTHON = [
    Construct("alternatives, groups, classes, quantifiers", "(ab|[c-e]){1,2}f?", "abcf", "f"),
    Construct("lazy quantifiers", "a+?b", "aab", "b"),
    Construct("named groups", "(?P<n>a)b", "ab", "b"),
    Construct("`\\d \\w \\s`, Unicode as in `re`", "\\d\\w", "٣é", "ab"),
    Construct("flags `(?i)`, `(?s)`, `(?x)`", "(?isx) a .", "A\n", "b\n"),
    Construct("anchors `\\A ^ $ \\Z`", "\\A^a$\\Z", "a", "b"),
    Construct("word boundaries", "a\\b.b", "a-b", "acb"),
    Construct("lookahead", "(?=.b)(?!a).*", "bb", "ab"),
    Construct("lookbehind of one character", ".(?<=a)b", "ab", "bb"),
    Construct("lookbehind of several characters", ".*(?<=ab)c", "abc", "bbc"),
    Construct("backreferences", "(a|b)\\1", "aa", "ab"),
    Construct("conditionals", "(a)?(?(1)b|c)", "ab", "b"),
    Construct("atomic groups", "(?>a+)b", "aab", "b"),
    Construct("possessive quantifiers", "a++b", "aab", "b"),
]


def construct_status(make: Callable[[str], Any], construct: Construct) -> str:
    """ "supported", or by which error the construct is refused."""
    import constrain

    spec = make(construct.pattern)
    is_json = isinstance(spec, constrain.JsonSchema)
    try:
        spec.program()
    except constrain.ConstrainError as error:
        feature = getattr(error, "feature", "") or getattr(error, "message", str(error))
        return f"refused: {type(error).__name__}, {feature}"
    texts = [construct.matching, construct.other]
    if is_json:
        texts = [json.dumps(text) for text in texts]
    verdicts = [accepts(spec, text) for text in texts]
    assert verdicts == [True, False], f"{construct.name}: {texts} are judged {verdicts}"
    return "supported"


# -- policies ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """An option, its values (the default first), and a text judged under each of them."""

    option: str
    values: tuple[str, ...]
    what: str
    schema: Any
    text: str

    def verdicts(self) -> Iterable[tuple[str, bool]]:
        """(value, whether the text is accepted)."""
        import constrain

        for value in self.values:
            spec = constrain.JsonSchema(self.schema, **{self.option: value})
            yield value, accepts(spec, self.text)


_NUMBERS = ("plain", "any")
_WHITESPACE = ("bounded", "any", "compact", "spaced")
_ESCAPES = ("any", "plain")
_AB = {"properties": {"a": True, "b": True}}
POLICIES = [
    Policy("numbers", _NUMBERS, "an integer with a zero fraction", {"type": "integer"}, "1.0"),
    Policy("numbers", _NUMBERS, "an integer with an exponent", {"type": "integer"}, "10e-1"),
    Policy("numbers", _NUMBERS, "minus zero as an integer", {"type": "integer"}, "-0"),
    Policy("numbers", _NUMBERS, "a bounded number with an exponent", {"minimum": 0}, "1e1"),
    Policy("numbers", _NUMBERS, "an unbounded number with an exponent", {"type": "number"}, "1e1"),
    Policy("numbers", _NUMBERS, "an integer of thirty digits", {"type": "integer"}, "1" * 30),
    Policy("whitespace", _WHITESPACE, "none", True, '{"a":[1,2]}'),
    Policy("whitespace", _WHITESPACE, "a space behind `:` and `,`", True, '{"a": [1, 2]}'),
    Policy("whitespace", _WHITESPACE, "indented lines", True, '{\n  "a": [\n    1\n  ]\n}'),
    Policy("whitespace", _WHITESPACE, "three empty lines", True, "[\n\n\n\n1]"),
    Policy("whitespace", _WHITESPACE, "300 spaces", True, "[" + " " * 300 + "1]"),
    Policy("whitespace", _WHITESPACE, "before and behind the value", True, " 1\n"),
    Policy("escapes", _ESCAPES, 'the short form of a line break: `"\\n"`', True, '"\\n"'),
    Policy("escapes", _ESCAPES, 'its long form: `"\\u000a"`', True, '"\\u000a"'),
    Policy(
        "escapes",
        _ESCAPES,
        'a control character without a short form: `"\\u001f"`',
        True,
        '"\\u001f"',
    ),
    Policy("escapes", _ESCAPES, 'the same in capitals: `"\\u001F"`', True, '"\\u001F"'),
    Policy("escapes", _ESCAPES, 'a letter as an escape: `"\\u0061"`', True, '"\\u0061"'),
    Policy("escapes", _ESCAPES, 'a slash as an escape: `"\\/"`', True, '"\\/"'),
    Policy("escapes", _ESCAPES, "a key with an escaped letter", True, '{"\\u0061": 1}'),
    Policy("extra_properties", ("schema", "forbid"), "an undeclared key", _AB, '{"c": 1}'),
    Policy(
        "extra_properties",
        ("schema", "forbid"),
        "an undeclared key where the schema allows it",
        {**_AB, "additionalProperties": True},
        '{"c": 1}',
    ),
    Policy(
        "extra_properties",
        ("schema", "forbid"),
        "any key where none is declared",
        {"type": "object"},
        '{"c": 1}',
    ),
    Policy("property_order", ("any", "declared"), "declared order", _AB, '{"a": 1, "b": 1}'),
    Policy("property_order", ("any", "declared"), "another order", _AB, '{"b": 1, "a": 1}'),
    Policy("formats", ("assert", "ignore"), "an invalid date", {"format": "date"}, '"2023-02-29"'),
    Policy("formats", ("assert", "ignore"), "an unknown format", {"format": "colour"}, '"x"'),
    Policy(
        "content",
        ("ignore", "assert"),
        "broken base64",
        {"contentEncoding": "base64"},
        '"Zm9"',
    ),
    Policy(
        "content",
        ("ignore", "assert"),
        "broken JSON as `application/json`",
        {"contentMediaType": "application/json"},
        '"{:}"',
    ),
]
ALWAYS = [
    ("duplicate keys", True, '{"a": 1, "a": 1}'),
    ("duplicate keys, one escaped", True, '{"a": 1, "\\u0061": 1}'),
    ("a lone surrogate", True, '"\\ud800"'),
    ("escapes of any character", {"const": "a/b"}, '"\\u0061\\/b"'),
    ("a key written with escapes", {"required": ["a"]}, '{"\\u0061": 1}'),
    ("a byte order mark before the value", True, "\ufeff1"),
    ("raw control characters in strings", True, '"\t"'),
    ("scalars at the root", True, "null"),
]
"""What no option changes: what, schema, text; judged under the widest options."""


# -- limits ------------------------------------------------------------------------------------


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


LIMITS: list[tuple[str, Callable[[], Any]]] = [
    ("a bound of 10,000 digits", lambda: {"minimum": 10**9_999}),
    ("a bound of 1e-400, in a schema given as text", lambda: '{"minimum": 1e-400}'),
    ("a bound of 1e400, in a schema given as text", lambda: '{"minimum": 1e400}'),
    ("a divisor of 400 digits", lambda: {"multipleOf": int("1" * 400)}),
    ("a divisor of 401 digits", lambda: {"multipleOf": int("1" * 401)}),
    (
        "twelve different divisors",
        lambda: {
            "allOf": [{"multipleOf": n} for n in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)]
        },
    ),
    ("lengths and counts of 10^30", lambda: {"maxLength": 10**30, "maxItems": 10**30}),
    ("a pattern with 500 nested groups", lambda: {"pattern": "(" * 500 + "a" + ")" * 500}),
    ("a pattern with 501 nested groups", lambda: {"pattern": "(" * 501 + "a" + ")" * 501}),
    ("a repetition of 2,147,483,646", lambda: {"pattern": "^a{2147483646}$"}),
    ("a repetition of 2,147,483,647", lambda: {"pattern": "^a{2147483647}$"}),
    ("a constant of 200 levels", lambda: {"const": _nested(199)}),
    ("a constant of 201 levels", lambda: {"const": _nested(201)}),
]
"""What, and a function that gives the schema."""


def limit_status(schema: Any) -> str:
    """ "compiles", or the error."""
    import constrain

    try:
        constrain.compile(constrain.JsonSchema(schema), vocabularies.byte_vocabulary().vocabulary)
    except constrain.ConstrainError as error:
        return f"refused: {type(error).__name__}"
    return "compiles"
