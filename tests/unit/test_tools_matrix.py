"""Every tool_choice with and without parallel calls, for one, three and 128 tools; and spellings."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import constrain
from constrain.errors import ConstrainError
from constrain.tools.formats import JsonArguments
from constrain.tools.named_formats import FORMATS
from constrain.tools.render import render_message
from tests.reference.masks import allowed_bits, allowed_by_trying
from tests.reference.tool_catalogue import example_arguments, tool_catalogue
from tests.reference.tool_vocabularies import encode, family_vocabulary

VOCABULARY = family_vocabulary(FORMATS["hermes"].special_tokens)
COUNTS = (1, 3, 128)


def _accepts(compiled: Any, text: str) -> bool:
    ids = encode(compiled.vocabulary, text)
    matcher = compiled.matcher()
    return all(map(matcher.try_advance, ids)) and matcher.is_accepting


def _choices(names: list[str]) -> list[tuple[Any, list[str]]]:
    """Each choice with the names that may be called; [] for none."""
    some = [names[0], names[-1]] if len(names) > 1 else names
    return [
        ("auto", names),
        ("required", names),
        ("none", []),
        (names[-1], names[-1:]),
        (some, some),
        ({"type": "function", "function": {"name": names[0]}}, names[:1]),
    ]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("parallel", [True, False])
def test_choices(count: int, parallel: bool) -> None:
    tools = tool_catalogue(count)
    names = [tool["name"] for tool in tools]
    written = {
        tool["name"]: render_message(FORMATS["hermes"], [(tool["name"], example_arguments(tool))])
        for tool in tools
    }
    broken = written[names[0]].replace(names[0], names[0] + "_x")
    for choice, open_names in _choices(names):
        spec = constrain.ToolCalls(tools, format="hermes", tool_choice=choice, parallel=parallel)
        compiled = constrain.compile(spec, VOCABULARY)
        prose = choice in ("auto", "none")
        assert _accepts(compiled, "Let me see.") == prose
        assert _accepts(compiled, "") == prose
        assert not _accepts(compiled, broken)
        for name in dict.fromkeys((names[0], names[count // 2], names[-1])):
            call = written[name]
            fits = name in open_names
            assert _accepts(compiled, call) == fits, (choice, name)
            assert _accepts(compiled, f"Wait.\n{call}") == (fits and choice == "auto")
            assert _accepts(compiled, f"{call}\n{call}") == (fits and parallel)
            assert not _accepts(compiled, call[:-1])
            assert not _accepts(compiled, call.replace('"arguments": {', '"arguments": {"zz": 1, '))
        # a mask before a name and one behind it
        begun = '<tool_call>\n{"name": "'
        matcher = compiled.matcher()
        row = constrain.allocate_bitmask(1, VOCABULARY.size)
        for token in encode(VOCABULARY, begun):
            if not matcher.try_advance(token):
                assert choice == "none"
                break
            matcher.fill_bitmask(row, 0)
            assert allowed_bits(row[0]) == allowed_by_trying(matcher, VOCABULARY.size)


@pytest.mark.parametrize("count", COUNTS)
def test_walks_call_what_may_be_called(count: int) -> None:
    tools = tool_catalogue(count)
    names = [tool["name"] for tool in tools]
    rng = random.Random(count)
    for choice, open_names in _choices(names)[1:]:
        if not open_names:
            continue
        spec = constrain.ToolCalls(tools, format="hermes", tool_choice=choice)
        matcher = constrain.compile(spec, VOCABULARY).matcher()
        row = constrain.allocate_bitmask(1, VOCABULARY.size)
        remaining = matcher.tokens_needed + 40
        ids: list[int] = []
        while remaining:
            matcher.fill_bitmask(row, 0, remaining=remaining)
            token = rng.choice(allowed_bits(row[0]))
            if token in VOCABULARY.eos_token_ids:
                break
            matcher.advance(token)
            ids.append(token)
            remaining -= 1
        assert matcher.is_accepting
        message = spec.parse(VOCABULARY.decode(ids, special_tokens=True).decode())
        assert message.failures == ()
        assert message.calls
        assert {call.name for call in message.calls} <= set(open_names)
        assert all(call.error is None for call in message.calls)


# -- spellings -----------------------------------------------------------------------------------

FIXED = sorted(
    form.name
    for form in {id(one): one for one in FORMATS.values()}.values()
    if isinstance(form.arguments, JsonArguments)
    and form.arguments.whitespace != "bounded"
    and form.arguments.is_plain
    and not form.variants
    and "$id" not in form.call
)
TOOLS = [
    {
        "name": "note",
        "parameters": {
            "properties": {"text": {"type": "string"}, "tags": {"items": {"type": "integer"}}},
            "required": ["text"],
        },
    },
    {"name": "stop", "parameters": {"properties": {}}},
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("note", {"text": 'a "b" \n/é', "tags": [1, 2]}),
    ("stop", {}),
    ("note", {"tags": [], "text": "\u001f\\"}),
]


@pytest.mark.parametrize("name", FIXED)
def test_calls_are_written_as_the_format_writes_them(name: str) -> None:
    """What is accepted is what the renderer makes of it again, blanks at the ends aside."""
    form, rng = FORMATS[name], random.Random(name)
    vocabulary = family_vocabulary(())
    options: dict[str, Any] = {"format": form, "tool_choice": "required"}
    exact = constrain.ToolCalls(TOOLS, **options)
    free = constrain.ToolCalls(TOOLS, whitespace="bounded", escapes="any", **options)
    compiled, wide = (constrain.compile(spec, vocabulary) for spec in (exact, free))
    texts = [render_message(form, [call]) for call in CALLS]
    if form.parallel:
        texts.append(render_message(form, CALLS))
    for text in list(texts):
        assert _accepts(compiled, text), text
        for _ in range(12):
            at = rng.randrange(len(text) + 1)
            cut = rng.choice([0, 0, 1])
            texts.append(text[:at] + rng.choice([" ", "", "\n"]) + text[at + cut :])
        texts += [text.replace("/", "\\/"), text.replace("\\n", "\\u000a"), f" {text}\n"]
        texts += [text.replace("tags", "t\\u0061gs"), text.replace("\\u001f", "\\u001F")]
    narrowed = 0
    for text in texts:
        wanted = _accepts(wide, text)
        if wanted:
            calls = [(call.name, call.arguments) for call in exact.parse(text).calls]
            wanted = text.strip() == render_message(form, calls).strip()
            narrowed += not wanted
        assert _accepts(compiled, text) == wanted, text
    assert narrowed


def test_compact_and_unruled_formats() -> None:
    vocabulary = family_vocabulary(())
    base = FORMATS["hermes"].to_dict()
    texts = {
        "spaced": '{"text": "x", "tags": [1, 2]}',
        "compact": '{"text":"x","tags":[1,2]}',
        "mixed": '{"text":"x", "tags": [1,2] }',
    }
    for whitespace, wanted in (
        ("spaced", {"spaced"}),
        ("compact", {"compact"}),
        ("bounded", {*texts}),
    ):
        form = type(FORMATS["hermes"]).from_dict(
            {**base, "arguments": {"style": "json", "whitespace": whitespace}}
        )
        compiled = constrain.compile(constrain.ToolCalls(TOOLS, format=form), vocabulary)
        found = {
            key
            for key, text in texts.items()
            if _accepts(
                compiled,
                '<tool_call>\n{"name": "note", "arguments": ' + text + "}\n</tool_call>",
            )
        }
        assert found == wanted
    with pytest.raises(ConstrainError, match="whitespace"):
        type(FORMATS["hermes"]).from_dict(
            {**base, "arguments": {"style": "json", "whitespace": "wide"}}
        )


def test_blanks_are_read_from_chat_templates() -> None:
    pytest.importorskip("jinja2")
    for written, wanted in (
        ("c.function.arguments | tojson", "spaced"),
        ('c.function.arguments | tojson(separators=(",", ":"))', "compact"),
        ("c.function.arguments | tojson(indent=2)", "bounded"),
    ):
        template = (
            "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
            "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}"
            "({{ " + written + " }})</call>{% endfor %}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}"
        )
        style = constrain.ToolCalls(TOOLS, tokenizer=template).format.arguments
        assert isinstance(style, JsonArguments)
        assert style.whitespace == wanted


def test_options_are_reported_and_checked() -> None:
    compiled = constrain.compile(constrain.ToolCalls(TOOLS, format="hermes"), VOCABULARY)
    assert compiled.report() == {
        "escapes": "plain",
        "whitespace": "template",
        "arguments_order": "any",
    }
    for options in ({"escapes": "some"}, {"whitespace": "spaced"}):
        with pytest.raises(ConstrainError, match=next(iter(options))):
            constrain.ToolCalls(TOOLS, format="hermes", **options)


def test_answers_are_plain_too() -> None:
    answer = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    for escapes, wanted in (("plain", False), ("any", True)):
        spec = constrain.ToolCalls(TOOLS, format="hermes", answer=answer, escapes=escapes)
        compiled = constrain.compile(spec, VOCABULARY)
        assert _accepts(compiled, json.dumps({"city": "Oslo"}))
        assert _accepts(compiled, '{"city": "\\u004fslo"}') == wanted
