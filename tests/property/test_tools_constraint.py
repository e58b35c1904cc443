"""The program of a message's language against the language itself, text by text."""

from __future__ import annotations

import random
from typing import Any

import pytest

import constrain
from constrain.tools.definitions import make_tools, resolve_choice
from constrain.tools.formats import JsonArguments, ToolFormat
from constrain.tools.language import Thinking, message_language
from constrain.tools.named_formats import FORMATS
from constrain.tools.render import render_message
from tests.reference.grammar import SlowMachine
from tests.reference.tool_language import Reference

TOOLS = make_tools(
    [
        {
            "name": "add",
            "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        },
        {"name": "add_text", "parameters": {"properties": {"t": {"type": "string"}}}},
        {"name": "now", "parameters": {"properties": {}}},
    ]
)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("add", {"a": 12}),
    ("add_text", {"t": 'x "<tool_call>" \n é'}),
    ("now", {}),
]
CHOICES: list[Any] = ["auto", "required", "none", "add", ["add", "now"]]
PLAIN = sorted(
    form.name
    for form in {id(one): one for one in FORMATS.values()}.values()
    if isinstance(form.arguments, JsonArguments) and form.arguments.is_plain
)


def _texts(form: ToolFormat, rng: random.Random, mode: str | None) -> list[str]:
    """Messages of the format, and what a model might write instead."""
    some = [
        "",
        "Hi.",
        "\n",
        "{",
        "[1]",
        "<tool_call>",
        "</think>",
        "<think>hm",
        "<think>\nhm</think>",
    ]
    for _ in range(6):
        calls = [rng.choice(CALLS) for _ in range(rng.randint(1, 3 if form.parallel else 1))]
        thoughts = {None: [""], "optional": ["", "Hm."], "required": ["Hm.", "a\nb"]}
        thought = rng.choice(
            thoughts[mode if rng.random() < 0.8 or not form.reasoning else "optional"]
        )
        some.append(
            render_message(
                form,
                calls,
                text=rng.choice(["", "So be it.", "1 < 2"]) if form.prose else "",
                reasoning=thought,
            )
        )
    for text in list(some[9:]):
        for _ in range(5):
            at = rng.randrange(len(text) + 1)
            gone = rng.choice([0, 0, 1, 1, 3, 9])
            put = rng.choice(
                ["", " ", "\n", "x", "<", ">", "{", "}", '"', ",", "[", "]", "add", "_text"]
            )
            some.append(text[:at] + put + text[at + gone :])
    return some


@pytest.mark.parametrize("name", PLAIN)
def test_program_is_the_language(name: str) -> None:
    form, rng = FORMATS[name], random.Random(name)
    accepted = 0
    for choice in CHOICES:
        mode = rng.choice([None, "optional", "required"]) if form.reasoning else None
        parallel = rng.random() < 0.5
        spec = constrain.ToolCalls(
            TOOLS,
            format=form,
            tool_choice=choice,
            parallel=parallel,
            reasoning=mode,
            escapes="any",
            whitespace="bounded",
        )
        tree = message_language(
            form,
            TOOLS,
            resolve_choice(TOOLS, choice),
            parallel=parallel,
            thinking=Thinking(mode),
        )
        slow, reference = SlowMachine(spec.program()), Reference(form, tree)
        for text in _texts(form, rng, mode):
            wanted = reference.accepts(text)
            assert slow.accepts(text.encode()) == wanted, (choice, mode, parallel, text)
            accepted += wanted
            if wanted:
                message = spec.parse(text)
                assert message.failures == ()
                assert all(call.error is None for call in message.calls)
                if choice not in ("auto", "none"):
                    assert message.calls
                if choice == "none":
                    assert not message.calls
    assert accepted >= 5


@pytest.mark.parametrize("name", PLAIN)
def test_expression_is_the_program(name: str) -> None:
    """As a part of another constraint it is the same language."""
    form, rng = FORMATS[name], random.Random(name)
    mode = "optional" if form.reasoning else None
    spec = constrain.ToolCalls(TOOLS, format=form, reasoning=mode)
    alone = SlowMachine(spec.program())
    inside = SlowMachine(constrain.Sequence("(", spec, ")").program_for(_vocabulary()))
    for text in _texts(form, rng, mode):
        assert inside.accepts(f"({text})".encode()) == alone.accepts(text.encode()), text


def _vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary([bytes([one]) for one in range(256)], eos_token_ids=[256])
