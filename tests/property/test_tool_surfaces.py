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
            put = rng.choice(
                [
                    "",
                    " ",
                    "\n",
                    "x",
                    "1",
                    "<",
                    ">",
                    "{",
                    "}",
                    '"',
                    "'",
                    ",",
                    "[",
                    "]",
                    "True",
                    "null",
                ]
            )
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
