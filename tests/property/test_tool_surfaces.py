"""Arguments that are not written as JSON: masks, texts and completions against slow references."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.tools.arguments import arguments_program
from constrain.tools.definitions import make_tools, resolve_choice
from constrain.tools.formats import JsonArguments, PythonArguments
from constrain.tools.language import Json, Keywords, Tagged, Thinking, message_language
from constrain.tools.named_formats import FORMATS
from constrain.tools.render import render_message
from constrain.tools.spelling import Spelling
from constrain.tools.templates import split_at
from tests.reference import tool_spellings as spellings
from tests.reference.masks import allowed_bits, allowed_by_trying
from tests.reference.tool_language import Reference
from tests.reference.tool_vocabularies import encode, family_vocabulary
from tests.reference.vocabularies import UnavailableError, load

NAMES = sorted(
    {
        form.name
        for form in FORMATS.values()
        if not (isinstance(form.arguments, JsonArguments) and form.arguments.is_plain)
    }
)
SCHEMAS: dict[str, dict[str, Any]] = {
    "plan": {
        "properties": {
            "to": {"type": "string", "maxLength": 9},
            "day": {"type": ["integer", "null"], "maximum": 40},
            "how": {"enum": ["by car", "on foot", 3, True, None]},
            "via": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 3},
            "note": {"type": ["string", "number", "boolean"]},
        },
        "required": ["to"],
    },
    "pay": {
        "properties": {
            "sum": {"type": "number", "minimum": 0},
            "who": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "old": {"type": "boolean"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
        "required": ["sum", "who"],
    },
    "set": {
        "properties": {"tone": {"type": "string", "pattern": "^[a-c]{1,3}$"}},
        "patternProperties": {"^x_[a-z]$": {"type": "integer"}},
        "additionalProperties": False,
    },
    "now": {"properties": {}},
}
TOOLS = make_tools([{"name": name, "parameters": one} for name, one in SCHEMAS.items()])
TOKENS = 60  # of a walk, beside those that the shortest call needs
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("plan", {"to": "Oslo"}),
    ("plan", {"to": 'a "b\\c', "day": 3, "how": "on foot", "via": ["x", "é"], "note": "hm 4"}),
    ("plan", {"to": "", "day": None, "how": True, "note": 2.5}),
    ("plan", {"to": "1", "how": 3, "via": [], "note": True}),
    ("pay", {"sum": 1.5, "who": {"name": "I's", "old": False}}),
    ("pay", {"sum": 0, "who": {"name": "[1]"}}),
    ("set", {"tone": "abc", "x_q": 4}),
    ("set", {}),
    ("now", {}),
]


@cache
def _spec(name: str, order: str = "any", exact: bool = False) -> constrain.ToolCalls:
    return constrain.ToolCalls(
        TOOLS,
        format=FORMATS[name],
        tool_choice="required",
        parallel=False,
        arguments_order=order,
        escapes="plain" if exact else "any",
        whitespace="template" if exact else "bounded",
    )


def _mask(matcher: Any, size: int) -> list[int]:
    bitmask = constrain.allocate_bitmask(1, size)
    matcher.fill_bitmask(bitmask, 0)
    return allowed_bits(bitmask[0])


def _compare(matcher: Any, size: int, said: Any) -> list[int]:
    allowed = _mask(matcher, size)
    assert allowed == allowed_by_trying(matcher, size), said
    return allowed


@pytest.mark.parametrize("name", NAMES)
def test_masks_along_messages(name: str) -> None:
    """The mask at every place of every message is what trying each token says."""
    form = FORMATS[name]
    for special in ((), form.special_tokens):
        vocabulary = family_vocabulary(special)
        compiled = constrain.compile(_spec(name), vocabulary)
        for call in CALLS:
            text = render_message(form, [call])
            matcher = compiled.matcher()
            for token_id in encode(vocabulary, text):
                assert token_id in _compare(matcher, vocabulary.size, text), (call, text)
                matcher.advance(token_id)
            assert matcher.is_accepting, text


@pytest.mark.parametrize("name", NAMES)
def test_masks_on_walks(name: str) -> None:
    """Random walks, which are read back as calls that satisfy the schemas."""
    form, rng = FORMATS[name], random.Random(name)
    for turn in range(6):
        vocabulary = family_vocabulary(form.special_tokens if turn % 3 else ())
        order = ("any", "declared")[turn % 2]
        spec = _spec(name, order, exact=turn % 3 == 1)
        matcher = constrain.compile(spec, vocabulary).matcher()
        ids: list[int] = []
        bitmask = constrain.allocate_bitmask(1, vocabulary.size)
        needed = matcher.tokens_needed
        assert needed is not None
        for left in range(needed + TOKENS, 0, -1):
            allowed = _compare(matcher, vocabulary.size, vocabulary.decode(ids))
            matcher.fill_bitmask(bitmask, 0, remaining=left)
            within = allowed_bits(bitmask[0])
            assert within, vocabulary.decode(ids)
            assert set(within) <= set(allowed)
            marks = [one for one in within if not 97 <= one <= 122]
            chosen = rng.choice(marks if marks and rng.random() < 0.4 else within)
            matcher.advance(chosen)
            if chosen in vocabulary.eos_token_ids:
                break
            ids.append(chosen)
        assert matcher.is_accepting
        text = vocabulary.decode(ids, special_tokens=True).decode()
        message = spec.parse(text)
        assert message.failures == (), text
        assert len(message.calls) == 1
        for call in message.calls:
            assert call.error is None, text
            jsonschema.validate(call.arguments, {**SCHEMAS[call.name], "type": "object"})


# What spoils a text.
DRAWN = [
    "",
    " ",
    "\n",
    "x",
    "1",
    "<",
    ">",
    "{",
    "}",
    "'",
    '"',
    ",",
    "[",
    "]",
    ":",
    "True",
    "null",
    "\\n",
    "é",
]


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_judged_as_the_parser_reads_them(name: str) -> None:
    """Messages and spoiled messages against the reader of the format and the schemas."""
    form, rng = FORMATS[name], random.Random(name)
    compiled = constrain.compile(_spec(name), family_vocabulary(()))
    tree = message_language(
        form, TOOLS, resolve_choice(TOOLS, "required"), parallel=False, thinking=Thinking()
    )
    reference = Reference(form, tree)
    seen = {True: 0, False: 0}
    for call in CALLS:
        written = render_message(form, [call])
        texts = [written]
        for _ in range(25):
            at = rng.randrange(len(written) + 1)
            gone = rng.choice([0, 0, 1, 1, 2, 7])
            put = rng.choice(DRAWN)
            texts.append(written[:at] + put + written[at + gone :])
        for text in texts:
            wanted = reference.accepts(text)
            matcher = compiled.matcher()
            found = all(matcher.try_advance(one) for one in text.encode()) and matcher.is_accepting
            seen[found] += 1
            if found:
                message = _spec(name).parse(text)
                assert message.failures == (), text
                assert all(one.error is None for one in message.calls), text
            if text == written:
                assert found, text
            # the reader forgives more than what the constraint writes
            assert wanted or not found, text
    assert min(seen.values()) >= 5


# -- arguments alone, against a strict reading ------------------------------------------------------


class _Program:
    """A specification that is a program, for `compile`."""

    def __init__(self, program: Any) -> None:
        self._program = program

    def program(self) -> Any:
        return self._program


def _arguments_case(name: str, tool: Any) -> tuple[Any, Any, Any]:
    """The compiled arguments of a tool, how some are written, and how a text of them is read."""
    form = FORMATS[name]
    spelling = Spelling(None)
    schema = {"properties": {}, **tool.parameters}
    style = form.arguments
    node: Any
    if isinstance(style, JsonArguments):
        node = Json(tool, style)
        read = lambda text: spellings.marked_arguments(text, style.quote)  # noqa: E731
    elif isinstance(style, PythonArguments):
        node = Keywords(tool, style)
        read = spellings.keyword_arguments
    else:
        head, tail = split_at(form.parameter_atoms(), "value")
        node = Tagged(tool, style, head, tail)
        begin, behind, end = _TAGS[name]
        python = style.values == "python"
        read = lambda text: spellings.tagged_arguments(  # noqa: E731
            text, begin, behind, end, schema, python
        )
    program, _ = arguments_program(node, spelling, "any")
    compiled = constrain.compile(_Program(program), family_vocabulary(()))

    def write(arguments: dict[str, Any]) -> str:
        """The longest part of the message that the arguments' program accepts."""
        text = render_message(form, [(tool.name, arguments)])
        for size in range(len(text), -1, -1):
            for at in range(len(text) - size + 1):
                if compiled_accepts(compiled, text[at : at + size]):
                    return text[at : at + size]
        raise AssertionError((name, text))

    return compiled, write, read


def compiled_accepts(compiled: Any, text: str) -> bool:
    matcher = compiled.matcher()
    return all(matcher.try_advance(one) for one in text.encode()) and matcher.is_accepting


_TAGS = {
    "minimax-m2": ('<parameter name="', '">', "</parameter>"),
    "seed-oss": ("<parameter=", ">", "</parameter>"),
}


@pytest.mark.parametrize("name", ["gemma4", "llama-pythonic", "minimax-m2", "seed-oss"])
def test_texts_of_arguments_are_judged_strictly(name: str) -> None:
    rng = random.Random(name)
    seen = {True: 0, False: 0}
    for tool in TOOLS:
        if tool.name == "set":
            continue
        compiled, write, read = _arguments_case(name, tool)
        for called, arguments in CALLS:
            if called != tool.name:
                continue
            written = write(arguments)
            texts = [written]
            for _ in range(120):
                at = rng.randrange(len(written) + 1)
                gone = rng.choice([0, 0, 1, 1, 2, 7])
                texts.append(written[:at] + rng.choice(DRAWN) + written[at + gone :])
            for text in texts:
                try:
                    value = read(text)
                    wanted = None if value is None else spellings.satisfies(value, tool.parameters)
                except (spellings.WrongError, IndexError):
                    wanted = False
                found = compiled_accepts(compiled, text)
                if wanted is not None:
                    assert found == wanted, (tool.name, text)
                    seen[found] += 1
    assert min(seen.values()) >= 10


# -- what the named formats do not write by themselves ---------------------------------------------

CDATA = [
    '<function name="plan"><param name="to"><![CDATA[a</param>]]></param></function>',
    '<function name="plan"><param name="to"><![CDATA[]]></param></function>',
    '<function name="plan"><param name="to">x</param><param name="note"><![CDATA[4 x]]></param>'
    "</function>",
    '<function name="set"><param name="tone"><![CDATA[ab]]></param><param name="x_a">7</param>'
    "</function>",
]


@pytest.mark.parametrize("text", CDATA)
def test_masks_in_cdata(text: str) -> None:
    """Tokens that hold the beginning or the end of such a string, and that reach into other units."""
    pieces = [b"<![", b"<![CDATA[", b"![CDATA[a", b"]]></param", b"]]>", b"></param></", b'">x</']
    tokens: list[bytes | None] = [bytes([one]) for one in range(256)] + pieces + [None]
    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=[len(tokens) - 1])
    compiled = constrain.compile(_spec("minicpm5"), vocabulary)
    matcher = compiled.matcher()
    for token_id in encode(vocabulary, text):
        assert token_id in _compare(matcher, vocabulary.size, text)
        matcher.advance(token_id)
    assert matcher.is_accepting
    assert compiled_accepts(compiled, text)
    message = _spec("minicpm5").parse(text)
    assert [one.error for one in message.calls] == [None]


@pytest.mark.parametrize("name", ["gemma4", "llama-pythonic", "kimi-k3", "minimax-m3", "minicpm5"])
def test_budgets_are_kept_by_every_token(name: str) -> None:
    """Near the limit: behind each token that is left, the text can still be finished in time."""
    form, rng = FORMATS[name], random.Random(name)
    vocabulary = family_vocabulary(form.special_tokens)
    matcher = constrain.compile(_spec(name, exact=True), vocabulary).matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    needed = matcher.tokens_needed
    assert needed is not None
    left = needed + 12
    while not matcher.is_accepting and left > 0:
        matcher.fill_bitmask(bitmask, 0, remaining=left)
        within = allowed_bits(bitmask[0])
        assert within
        for token_id in rng.sample(within, min(6, len(within))):
            after = matcher.fork()
            after.advance(token_id)
            rest = after.tokens_needed
            assert rest is not None
            assert rest <= left - 1
        way = matcher.shortest_completion()
        assert way is not None
        assert way[0] in within
        matcher.advance(rng.choice(within) if rng.random() < 0.5 else way[0])
        left -= 1
    assert matcher.is_accepting


@pytest.mark.parametrize("name", ["qwen3-coder", "gemma4", "llama-pythonic", "minimax-m3"])
def test_masks_of_a_real_vocabulary(name: str) -> None:
    """Every token of a real tokenizer tried, at a few places of a call."""
    try:
        vocabulary = load("tokenizer-qwen3").vocabulary
    except UnavailableError as error:
        pytest.skip(str(error))
    text = render_message(FORMATS[name], [CALLS[1]])
    ids = encode(vocabulary, text)
    matcher = constrain.compile(_spec(name), vocabulary).matcher()
    places = set(random.Random(name).sample(range(len(ids)), 6))
    for place, token_id in enumerate(ids):
        if place in places:
            _compare(matcher, vocabulary.size, text)
        matcher.advance(token_id)
    assert matcher.is_accepting


# -- random schemas ---------------------------------------------------------------------------------


def _schema(rng: random.Random, depth: int) -> dict[str, Any]:
    """A schema of one argument, or of a part of one."""
    kinds = ["string", "short", "integer", "number", "boolean", "enum", "types", "pattern", "any"]
    kind = rng.choice(kinds if depth == 0 else [*kinds, "array", "object", "open", "anyOf"])
    if kind == "string":
        return {"type": "string"}
    if kind == "short":
        return {"type": "string", "minLength": rng.randrange(3), "maxLength": rng.randrange(3, 6)}
    if kind == "integer":
        return {"type": "integer", "minimum": rng.randrange(-9, 9)}
    if kind in ("number", "boolean"):
        return {"type": kind}
    if kind == "enum":
        values = ["a", "b c", "", "1", "true", "<", 1, 2.5, True, None, "x'y", '"']
        return {"enum": rng.sample(values, rng.randrange(1, 4))}
    if kind == "types":
        return {"type": rng.sample(["string", "integer", "boolean", "null", "number"], 2)}
    if kind == "pattern":
        return {"type": "string", "pattern": rng.choice(["^[ab]+$", "^<", "x$", "^[^a]*$"])}
    if kind == "any":
        return {}
    if kind == "array":
        return {"type": "array", "items": _schema(rng, depth - 1), "maxItems": rng.randrange(3)}
    if kind == "anyOf":
        return {"anyOf": [_schema(rng, depth - 1), _schema(rng, depth - 1)]}
    found: dict[str, Any] = {
        "type": "object",
        "properties": {key: _schema(rng, depth - 1) for key in rng.sample("pqrs", 2)},
        "additionalProperties": False,
    }
    if kind == "open":
        found["patternProperties"] = {"^k[a-c]$": _schema(rng, 0)}
    return found


def _walked(name: str, seed: str, turns: int) -> int:
    """Random walks through the calls of a tool with a random schema; how many there were."""
    form, rng = FORMATS[name], random.Random(seed)
    schema = {"type": "object", "additionalProperties": False, **_schema_of_arguments(rng)}
    tools = make_tools([{"name": "do", "parameters": schema}])
    vocabulary = family_vocabulary(form.special_tokens if rng.random() < 0.5 else ())
    spec = constrain.ToolCalls(
        tools, format=form, tool_choice="required", parallel=False, whitespace="bounded"
    )
    try:
        compiled = constrain.compile(spec, vocabulary)
    except constrain.errors.UnsatisfiableError:
        return 0
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    for _ in range(turns):
        matcher = compiled.matcher()
        needed = matcher.tokens_needed
        if needed is None:
            return 0
        ids: list[int] = []
        for left in range(needed + 30, 0, -1):
            if rng.random() < 0.3:
                _compare(matcher, vocabulary.size, (schema, vocabulary.decode(ids)))
            matcher.fill_bitmask(bitmask, 0, remaining=left)
            within = allowed_bits(bitmask[0])
            marks = [one for one in within if not 97 <= one <= 122]
            assert within, (schema, vocabulary.decode(ids))
            chosen = rng.choice(marks if marks and rng.random() < 0.4 else within)
            matcher.advance(chosen)
            if chosen in vocabulary.eos_token_ids:
                break
            ids.append(chosen)
        text = vocabulary.decode(ids, special_tokens=True).decode()
        assert matcher.is_accepting, (schema, text)
        message = spec.parse(text)
        assert message.failures == (), (schema, text)
        assert [one.error for one in message.calls] == [None], (schema, text)
        jsonschema.validate(message.calls[0].arguments, schema)
    return turns


def _schema_of_arguments(rng: random.Random) -> dict[str, Any]:
    properties = {key: _schema(rng, 2) for key in rng.sample(["a", "b_c", "d", "é"], 3)}
    found: dict[str, Any] = {
        "properties": properties,
        "required": rng.sample(list(properties), rng.randrange(3)),
    }
    if rng.random() < 0.2:
        found["patternProperties"] = {"^k_": _schema(rng, 1)}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_walks_of_random_schemas(name: str) -> None:
    assert sum(_walked(name, f"{name} {number}", 2) for number in range(8)) >= 4
