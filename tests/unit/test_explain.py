"""Explanations: places, what may come next, and reasons, against slow references."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import (
    Choice,
    Gbnf,
    JsonSchema,
    Lark,
    OneOf,
    Regex,
    Repeat,
    Sequence,
    Text,
    Token,
    ToolCalls,
)
from constrain.cli.main import main
from constrain.errors import ConstrainError
from constrain.explanations import Explanation
from constrain.explanations.grammar_place import _Chart
from constrain.explanations.json_place import json_place
from constrain.grammar import GrammarBuilder
from constrain.vocabulary import Vocabulary, spelled

EOS, SPECIAL = 256, 257
EXTRA = [b"13", b"131", b"abc", b'"x', b'"},']
VOCABULARY = Vocabulary(
    [*(bytes((byte,)) for byte in range(256)), None, None, *EXTRA],
    eos_token_ids=[EOS],
    special_tokens={"<think>": SPECIAL},
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True},
        "shape": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "size": {"type": "integer"}},
                    "required": ["kind"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "line"}, "size": {"type": "string"}},
                    "required": ["kind"],
                },
            ]
        },
    },
    "required": ["name", "age"],
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["red", "green"]}},
}


def explained(spec: Any, text: bytes, token: Any = None, **options: Any) -> Explanation:
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    for byte in text:
        matcher.advance(byte)
    if isinstance(token, bytes):
        token = token[0] if len(token) == 1 else VOCABULARY.tokens.index(token)
    before = matcher.state_id
    found = matcher.explain(token, **options)
    assert matcher.state_id == before
    assert matcher.tokens == list(text)
    return found


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pointer", "instance", "role", "literals"),
    [
        ("", "", "", "value", []),
        ('{"', "", "", "key", ["name", "age", "tags", "shape"]),
        ('{"name":"a","', "", "", "key", ["age", "tags", "shape"]),
        ('{"t', "", "", "key", ["tags"]),
        ('{"age"', "/properties/age", "/age", "colon", []),
        ('{"age": 1', "/properties/age", "/age", "value", []),
        ('{"age": 1 ', "", "", "next", []),
        ('{"tags":["red", ', "/$defs/tag", "/tags/1", "value", ["green"]),
        ('{"tags":["red"', "/properties/tags", "/tags", "next", []),
        ('{"shape":{"kind":', "/properties/shape/oneOf/0/properties/kind", "/shape/kind", "value",
         ["circle", "line"]),
        ('{"shape":{"kind":"l', "/properties/shape/oneOf/0/properties/kind", "/shape/kind",
         "value", ["line"]),
        ('{"shape":{"kind":"line","size":', "/properties/shape/oneOf/1/properties/size",
         "/shape/size", "value", []),
        ('{"name":"","age":0}', "", "", "end", []),
    ],
)  # fmt: skip
def test_places_in_schemas(
    text: str, pointer: str, instance: str, role: str, literals: list[str]
) -> None:
    found = explained(JsonSchema(SCHEMA), text.encode())
    if text != '{"shape":{"kind":"l':  # there the first branch is out of the question
        assert found.places[0].pointer == pointer
    assert found.places[0].instance == instance
    assert found.places[0].role == role
    assert [json.loads(literal) for literal in found.literals] == literals
    assert json.loads((text.encode() + found.completion).decode()) is not None


@pytest.mark.parametrize(
    ("text", "token", "read", "reasons"),
    [
        ("", b"[", "", ["/type"]),
        ('{"age":', b'"', "", ["/properties/age/type"]),
        ('{"age":13', b"13", "", ["/properties/age/maximum"]),
        ('{"age":', b"131", "13", ["/properties/age/maximum"]),
        ('{"name":"a', b"abc", "ab", ["/properties/name/maxLength"]),
        ('{"name":"', b"A", "", ["/properties/name/pattern"]),
        ('{"tags":["', b'"x', "", ["/$defs/tag/enum"]),
        ('{"tags":["red","', b"r", "", ["/$defs/tag/enum", "/properties/tags/uniqueItems"]),
        ('{"', b"z", "", ["/additionalProperties"]),
        ('{"age":1', b"}", "", ["/required"]),
        ('{"shape":{"kind":"line","size":', b"1", "",
         ["/properties/shape/oneOf", "/properties/shape/oneOf/1/properties/size/type"]),
    ],
)  # fmt: skip
def test_keywords_that_refuse(text: str, token: bytes, read: str, reasons: list[str]) -> None:
    refusal = explained(JsonSchema(SCHEMA), text.encode(), token).refusal
    assert refusal is not None
    assert refusal.text == token
    assert refusal.read == read.encode()
    assert refusal.byte == token[len(read)]
    assert sorted(reason.pointer or "" for reason in refusal.reasons) == sorted(reasons)
    assert {reason.kind for reason in refusal.reasons} == {"keyword"}


@pytest.mark.parametrize(
    ("options", "text", "token", "kind", "name"),
    [
        ({"extra_properties": "forbid"}, '{"', b"z", "policy", "extra_properties"),
        ({}, '{"a":1', b".", "policy", "numbers"),
        ({"whitespace": "compact"}, "{", b" ", "policy", "whitespace"),
        ({"property_order": "declared"}, '{"b":1,"a', b'"', "policy", "property_order"),
        ({"escapes": "plain"}, '{"b":"\\', b"/", "policy", "escapes"),
        ({}, "{", b",", "syntax", None),
        ({}, '{"a":1}', b"}", "syntax", None),
    ],
)
def test_policies_and_syntax_that_refuse(
    options: Any, text: str, token: bytes, kind: str, name: str | None
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}
    refusal = explained(JsonSchema(schema, **options), text.encode(), token).refusal
    assert refusal is not None
    assert [(reason.kind, reason.keyword) for reason in refusal.reasons] == [(kind, name)]


class _Writer:
    """Writes a value and notes, at every offset, what the place there is."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.text = b""
        self.places: list[tuple[tuple[Any, ...], str]] = []

    def put(self, data: bytes, path: tuple[Any, ...], role: str) -> None:
        self.places += [(path, role)] * len(data)
        self.text += data

    def blank(self, path: tuple[Any, ...], role: str) -> None:
        self.put(self.rng.choice([b"", b"", b" ", b"\n "]), path, role)

    def write(self, value: Any, path: tuple[Any, ...]) -> None:
        self.blank(path, "value")
        if isinstance(value, dict) and value:
            self.put(b"{", path, "value")
            for index, (key, member) in enumerate(value.items()):
                self.blank(path, "key")
                self.put(json.dumps(key).encode(), path, "key")
                self.blank((*path, key), "colon")
                self.put(b":", (*path, key), "colon")
                self.write(member, (*path, key))
                self.blank(path, "next")
                self.put(b"}" if index == len(value) - 1 else b",", path, "next")
        elif isinstance(value, list) and value:
            self.put(b"[", path, "value")
            for index, item in enumerate(value):
                self.write(item, (*path, index))
                self.blank(path, "next")
                self.put(b"]" if index == len(value) - 1 else b",", path, "next")
        elif isinstance(value, (dict, list)):
            self.put(json.dumps(value)[:1].encode(), path, "value")
            empty = (path, "key") if isinstance(value, dict) else ((*path, 0), "value")
            self.put(json.dumps(value)[1:].encode(), *empty)
        else:
            self.put(
                json.dumps(value, ensure_ascii=self.rng.random() < 0.5).encode(), path, "value"
            )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_places_in_values(value: Any, rng: random.Random) -> None:
    """Before each byte the place is where that byte stands.

    Except behind a scalar, where the text alone cannot say whether a number goes on.
    """
    writer = _Writer(rng)
    writer.write(value, ())
    for offset, (path, role) in enumerate(writer.places):
        found = json_place(writer.text[:offset])
        bare = writer.text[offset - 1 : offset].isalnum() and offset
        if bare and role in ("next", "end"):
            assert found.role in (role, "value")
            continue
        assert (found.path, found.role) == (path, role), writer.text[:offset]
        starts = [*found.starts, offset]
        assert starts == sorted(starts)
        assert 0 <= found.begun <= offset
    assert json_place(writer.text + b" ").role == "end"


KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "object", "array", ["string", "null"]]),
        "minimum": st.integers(0, 20),
        "maximum": st.integers(10, 40),
        "multipleOf": st.integers(2, 5),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "b", "^[ab]*$"]),
        "enum": st.lists(st.sampled_from(["a", "ab", 1, 12, None]), min_size=1, max_size=3),
        "not": st.sampled_from([{"type": "null"}, {"const": 1}, {"maxLength": 1}]),
    },
)


def _only(schema: Any, pointers: list[list[str]]) -> Any:
    """The schema with the named keywords and what leads to them."""
    if any(not pointer for pointer in pointers):
        return schema
    return {
        key: _only(schema[key], [p[1:] for p in pointers if p[0] == key])
        for key in {pointer[0] for pointer in pointers}
    }


@settings(max_examples=150, deadline=None)
@given(KEYWORDS, KEYWORDS, st.randoms(use_true_random=False))
def test_reasons_are_enough(inner: Any, other: Any, rng: random.Random) -> None:
    """A schema of nothing but the keywords that are named refuses the same text."""
    schema = {"type": "object", "properties": {"a": inner, "b": other}, "required": ["a"]}
    try:
        matcher = constrain.compile(JsonSchema(schema), VOCABULARY).matcher()
    except constrain.UnsatisfiableError:
        return
    for _ in range(rng.randrange(14)):
        wanted = rng.choice(b'{}[]",:ab0123 n')
        if not matcher.try_advance(wanted):
            bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
            matcher.fill_bitmask(bitmask)
            allowed = [t for t in b'{}[]",:ab0123u' if bitmask[0, t // 32] >> t % 32 & 1]
            if not allowed:
                break
            matcher.advance(rng.choice(allowed))
    text = bytes(matcher.tokens)
    for token in b'{}[]",:ab019n':
        refusal = matcher.explain(token).refusal
        assert (refusal is None) == (matcher.validate([token]) == 1)
        if refusal is None or any(reason.kind != "keyword" for reason in refusal.reasons):
            continue
        named = [(reason.pointer or "").split("/")[1:] for reason in refusal.reasons]
        weak = constrain.compile(JsonSchema(_only(schema, named)), VOCABULARY).matcher()
        assert weak.validate([*text, token]) <= len(text), (schema, text, token, refusal)


# --- what may come next --------------------------------------------------------------------------

EXPRESSION = 'root ::= expr\nexpr ::= term ("+" term)*\nterm ::= [0-9]+ | "(" expr ")"\n'
LARK = """
start: stmt+
stmt: NAME "=" expr ";"
expr: NUMBER | NAME | "(" expr ")" | expr "*" expr
NAME: /[a-c]+/
NUMBER: /[0-9]+/
"""


def weather(city: str, days: int = 1) -> str:
    """The weather."""
    return city * days


SPECS = {
    "json": JsonSchema(SCHEMA),
    "regex": Regex("[a-c]{2}(x|yz)+[0-9]?"),
    "choice": Choice(["yes", "yet", "no", "ноль"]),
    "gbnf": Gbnf(EXPRESSION),
    "lark": Lark(LARK),
    "ignored": Lark('start: "a" B+\nB: "b" | "bb"\n%ignore " "\n'),
    "sequence": Sequence(
        "<a>", Repeat(JsonSchema({"enum": [1, "x"]}), 1, 3, separator=","), OneOf("</a>", "<b>")
    ),
    "special": Sequence(Token("<think>"), Text(until="</think>"), Regex("[0-9]+")),
    "tools": ToolCalls([weather], format="hermes"),
}


@pytest.mark.parametrize("name", SPECS)
def test_next_bytes_and_refusals_agree_with_the_mask(name: str) -> None:
    rng = random.Random(name)
    compiled = constrain.compile(SPECS[name], VOCABULARY)
    for _ in range(4):
        matcher = compiled.matcher()
        for _ in range(rng.randrange(25)):
            bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
            matcher.fill_bitmask(bitmask)
            bits = [t for t in range(VOCABULARY.size) if bitmask[0, t // 32] >> t % 32 & 1]
            bits = [t for t in bits if t != EOS] or bits
            matcher.advance(rng.choice(bits))
            if matcher.is_finished:
                break
        found = matcher.explain()
        listed = [b for first, last in found.next_bytes for b in range(first, last + 1)]
        if not matcher.is_finished:
            assert [b for b in range(255) if matcher.validate([b])] == [
                b for b in listed if b < 255
            ]
            assert (255 in listed) == bool(matcher.validate([SPECIAL]))
        assert found.is_accepting == matcher.is_accepting
        assert bool(found.places) or found.is_accepting
        for token in rng.sample(range(VOCABULARY.size), 12):
            refusal = matcher.explain(token).refusal
            assert (refusal is None) == bool(matcher.validate([token])), (found.text, token)
            if refusal is not None and refusal.byte is not None and not matcher.is_finished:
                assert refusal.text is not None
                assert matcher.validate(list(refusal.read)) == len(refusal.read)
                assert refusal.byte == refusal.text[len(refusal.read)]
                assert matcher.validate([*refusal.read, refusal.byte]) == len(refusal.read)
                assert refusal.reasons
        json.dumps(found.to_dict())
        assert f"at byte {len(found.text)}" in str(found)


@pytest.mark.parametrize("name", ["gbnf", "lark", "ignored", "sequence", "tools"])
def test_the_chart_reads_what_the_machine_reads(name: str) -> None:
    """Grammars without lookahead: a byte keeps something alive if and only if it is allowed."""
    builder = GrammarBuilder(VOCABULARY)
    grammar = builder.grammar(builder.part(SPECS[name]))
    rng = random.Random(name)
    compiled = constrain.compile(SPECS[name], VOCABULARY)
    for _ in range(3):
        matcher = compiled.matcher()
        chart = _Chart(grammar)
        for _ in range(20):
            allowed = [b for b in range(255) if matcher.validate([b])]
            if not allowed:
                break
            for byte in {*rng.sample(allowed, min(3, len(allowed))), *rng.sample(range(255), 3)}:
                fresh = _Chart(grammar)
                for read in matcher.tokens:
                    fresh.step(read)
                fresh.step(byte)
                alive = bool(list(fresh.active())) or (grammar.start, 1, 0) in fresh.seen
                assert alive == (byte in allowed), (matcher.tokens, byte)
            byte = rng.choice(allowed)
            matcher.advance(byte)
            chart.step(byte)


def test_rules_have_lines() -> None:
    found = explained(Gbnf(EXPRESSION), b"(1+2", b"a")
    assert [(p.name, p.line, p.column) for p in found.places] == [("term", 3, 1), ("expr", 2, 1)]
    assert set(found.literals) == {b")", b"+"}
    assert found.refusal is not None
    assert found.refusal.reasons[0].kind == "grammar"
    found = explained(Lark(LARK), b"a=1")
    assert ("expr", 4) in [(place.name, place.line) for place in found.places]
    assert "reads NUMBER" in str(found)


def test_json_inside_of_other_constraints() -> None:
    spec = Sequence("<a>", Repeat(JsonSchema(SCHEMA), 1, 3, separator=","), "</a>")
    found = explained(spec, b'<a>{"name":"a","age":7},{"age":13', b"131")
    assert ("schema", "/properties/age", "/age") in [
        (place.kind, place.pointer, place.instance) for place in found.places
    ]
    assert found.refusal is not None
    assert [r.pointer for r in found.refusal.reasons] == ["/properties/age/maximum"]
    found = explained(
        SPECS["tools"], b'<tool_call>\n{"name": "weather", "arguments": {"days": ', b'"'
    )
    schemas = [place for place in found.places if place.kind == "schema"]
    assert [place.pointer for place in schemas] == ["/properties/days"]
    assert "weather" in schemas[0].inside
    assert found.refusal is not None
    assert [r.pointer for r in found.refusal.reasons] == ["/properties/days/type"]


def test_ends_special_tokens_and_budgets() -> None:
    spec = SPECS["special"]
    found = explained(spec, b"", SPECIAL)
    assert found.refusal is None
    assert found.next_bytes == ((255, 255),)
    matcher = constrain.compile(spec, VOCABULARY).matcher()
    matcher.advance(SPECIAL)
    found = matcher.explain(SPECIAL)
    assert found.text == spelled(SPECIAL)
    assert found.refusal is not None
    assert [reason.kind for reason in found.refusal.reasons] == ["special"]
    found = explained(JsonSchema(SCHEMA), b"{", EOS)
    assert found.refusal is not None
    assert [reason.kind for reason in found.refusal.reasons] == ["end"]
    assert explained(Choice(["a"]), b"a", EOS).refusal is None
    matcher = constrain.compile(Choice(["a", "ab"]), VOCABULARY).matcher()
    for token in (ord("a"), EOS):
        matcher.advance(token)
    assert matcher.explain(EOS).refusal is None
    found = matcher.explain(ord("b"))
    assert found.text == b"a"
    assert found.refusal is not None
    assert "finished" in found.refusal.reasons[0].message
    found = explained(JsonSchema(SCHEMA), b"", b"{", remaining=5)
    assert found.refusal is not None
    assert [reason.kind for reason in found.refusal.reasons] == ["budget"]
    assert explained(JsonSchema(SCHEMA), b"", b"{", remaining=500).refusal is None


def test_wrong_tokens_are_refused() -> None:
    matcher = constrain.compile(Choice(["a"]), VOCABULARY).matcher()
    for wrong in (-1, VOCABULARY.size, "a", True, 1.0):
        with pytest.raises(ConstrainError, match="token_id"):
            matcher.explain(wrong)  # type: ignore[arg-type]


def test_too_ambiguous_grammars_have_no_rules_but_reasons() -> None:
    spec = Gbnf('root ::= x\nx ::= x x | "a"\n')
    found = explained(spec, b"a" * 150, b"b")
    assert found.next_bytes == ((97, 97),)
    assert found.refusal is not None
    assert [reason.kind for reason in found.refusal.reasons] == ["grammar"]


# --- the command ---------------------------------------------------------------------------------


def test_command(tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA), encoding="utf-8")
    assert main(["explain", '{"age":13', "--schema", str(path)]) == 0
    assert "/properties/age" in capsys.readouterr().out
    assert main(["explain", '{"age":1377, "x', "--schema", str(path), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["offset"] == len('{"age":13')
    assert shown["refusal"]["byte"] == ord("7")
    assert [r["pointer"] for r in shown["refusal"]["reasons"]] == ["/properties/age/maximum"]
    text = tmp_path / "text"
    text.write_bytes(b'{"name":"a"')
    argv = ["explain", "--file", str(text), "--schema", str(path)]
    assert main(argv) == 0
    capsys.readouterr()
    assert main([*argv, "--complete"]) == 1
    assert "not valid yet" in capsys.readouterr().out
    assert main(["explain", "2024-1x", "--grammar", "iso8601"]) == 1
    assert "'x' is refused" in capsys.readouterr().out
    assert main(["explain", "--regex", "a"]) == 2
    assert "nothing to explain" in capsys.readouterr().err
    assert main(["explain", "a", "--file", "b", "--regex", "a"]) == 2
    assert main(["explain", "--file", str(tmp_path / "no"), "--regex", "a"]) == 3
