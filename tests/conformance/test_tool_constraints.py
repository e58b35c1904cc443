"""Messages written by published chat templates under the constraint of their format.

Every template: its messages are accepted token by token, with the format's special tokens as tokens
and as text, and spoiled ones are refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.tools.chat_templates import template_renderer
from constrain.tools.definitions import make_tools
from constrain.tools.formats import ToolFormat
from constrain.tools.inference import infer_format
from constrain.tools.named_formats import get_format
from constrain.tools.render import render_message
from tests.reference.tool_renderings import FORMAT_OF, as_written, cuts, renderings, tools, wanted
from tests.reference.tool_vocabularies import encode, family_vocabulary, real_vocabulary
from tests.reference.vocabularies import load

TEMPLATES = sorted(FORMAT_OF)
INSIDE = ("\\\\ </tool_call> ", "\\ </tool_call> ")  # of a string, not of the message


def _accepts(compiled: Any, text: str, masks: bool = False) -> bool:
    vocabulary = compiled.vocabulary
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    for token_id in encode(vocabulary, text, INSIDE):
        if masks:
            matcher.fill_bitmask(bitmask, 0)
        if not matcher.try_advance(token_id):
            return False
        if masks and not bitmask[0, token_id // 32] >> token_id % 32 & 1:
            raise AssertionError(f"token {token_id} was allowed, but its mask is closed")
    return matcher.is_accepting


def _vocabularies(form: ToolFormat) -> list[constrain.Vocabulary]:
    found = [family_vocabulary(()), family_vocabulary(form.special_tokens)]
    found.append(load("small").vocabulary)
    real = real_vocabulary(form)
    return found if real is None else [*found, real]


def _check_messages(template: str, form: ToolFormat, made: Any, vocabularies: Any) -> None:
    """All messages of a template are accepted, and read back as the calls that they say."""
    for rendering in renderings()[template]:
        text, prompt = as_written(rendering, form)
        spec = constrain.ToolCalls(
            made,
            format=form,
            prompt=prompt,
            reasoning="optional" if form.reasoning else None,
            escapes="any",
            whitespace="bounded",
        )
        for number, vocabulary in enumerate(vocabularies):
            compiled = constrain.compile(spec, vocabulary)
            read = []
            for message in cuts(form, text):
                if _accepts(compiled, message, masks=number < 2):
                    calls = spec.parse(message).calls
                    read.append([(one.name, one.arguments) for one in calls])
            assert wanted(rendering) in read, (rendering["scenario"], vocabulary, text)


@pytest.mark.parametrize("template", TEMPLATES)
def test_messages_are_accepted(template: str, shared_root: Path) -> None:
    form, made = get_format(FORMAT_OF[template]), make_tools(tools(shared_root))
    _check_messages(template, form, made, _vocabularies(form))


@pytest.mark.parametrize("template", TEMPLATES)
def test_messages_are_accepted_in_inferred_formats(template: str, shared_root: Path) -> None:
    """Needs the templates themselves, in the folder that CONSTRAIN_TEMPLATES names."""
    folder = os.environ.get("CONSTRAIN_TEMPLATES")
    if not folder:
        pytest.skip("CONSTRAIN_TEMPLATES does not name a folder of chat templates")
    path = Path(folder) / f"{template}.jinja"
    if not path.is_file():
        pytest.skip(f"there is no template {path}")
    text = path.read_text(encoding="utf-8")
    form = infer_format(template_renderer(text, bos_token="<bos>", eos_token="<eos>"))
    _check_messages(template, form, make_tools(tools(shared_root)), [family_vocabulary(())])


def _spoiled(form: ToolFormat) -> dict[str, str]:
    """Messages that must be refused."""
    good = ("get_weather", {"city": "Oslo", "unit": "celsius"})
    event = {"title": "x", "when": {"start": "now", "minutes": 45}}
    written = render_message(form, [good])
    longer = render_message(form, [("create_event", event)])
    found = {
        "wrong name": written.replace("get_weather", "get_whether"),
        "longer name": written.replace("get_weather", "get_weathers"),
        "missing argument": render_message(form, [("get_weather", {"unit": "celsius"})]),
        "missing member": render_message(
            form, [("create_event", {**event, "when": {"start": "now"}})]
        ),
        "unknown argument": render_message(form, [("get_weather", {"city": "Oslo", "cty": "x"})]),
        "other value": render_message(form, [("get_weather", {"city": "Oslo", "unit": "kelvin"})]),
        "wrong type": longer.replace("45", "true"),
        "wrong type of an array": render_message(form, [("create_event", {**event, "guests": 3})]),
        "cut off": written[:-1],
        "behind the end": written + "x",
    }
    opening = written[: written.index("get_weather")]
    for at in range(len(opening)):
        if not opening[at].isspace():
            found[f"broken opening {at}"] = (
                opening[:at] + opening[at + 1 :] + written[len(opening) :]
            )
    closing = written[written.rindex("celsius") + len("celsius") :]
    for at in range(len(closing)):
        if not closing[at].isspace():
            kept = written[: len(written) - len(closing)]
            found[f"broken closing {at}"] = kept + closing[:at] + closing[at + 1 :]
    return found


@pytest.mark.parametrize("template", TEMPLATES)
def test_spoiled_messages_are_refused(template: str, shared_root: Path) -> None:
    form, made = get_format(FORMAT_OF[template]), make_tools(tools(shared_root))
    spec = constrain.ToolCalls(made, format=form, tool_choice="required", parallel=False)
    for special in ((), form.special_tokens):
        compiled = constrain.compile(spec, family_vocabulary(special))
        assert _accepts(compiled, render_message(form, [("get_weather", {"city": "Oslo"})]))
        for what, text in _spoiled(form).items():
            assert not _accepts(compiled, text), (what, text)
