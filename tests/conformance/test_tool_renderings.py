"""Messages written by published chat templates are read back exactly, by name and by inference.

The renderings are those of the shared data; the templates themselves, which inference needs, lie in
the folder that the environment variable CONSTRAIN_TEMPLATES names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from constrain.tools.chat_templates import template_renderer
from constrain.tools.errors import FormatInferenceError
from constrain.tools.events import merge
from constrain.tools.formats import ToolFormat
from constrain.tools.inference import infer_format
from constrain.tools.named_formats import get_format
from constrain.tools.parser import ToolCallParser, parse_message
from tests.reference.tool_renderings import (
    FORMAT_OF,
    as_written,
    renderings,
    wanted,
)
from tests.reference.tool_renderings import tools as tools_of


def _check(rendering: dict[str, Any], form: ToolFormat, tools: list[dict[str, Any]]) -> None:
    text, prompt = as_written(rendering, form)
    message = parse_message(form, tools, text, prompt=prompt)
    assert message.failures == ()
    assert [(one.name, one.arguments) for one in message.calls] == wanted(rendering)
    for call in message.calls:
        assert call.error is None
        assert json.loads(call.arguments_text) == call.arguments


def test_every_template_that_writes_calls_has_a_format(shared_root: Path) -> None:
    writing = {name for name, found in renderings().items() if len(found) > 1}
    assert len(writing) == 57
    assert writing == set(FORMAT_OF)


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_named_format_reads_the_calls_back(template: str, shared_root: Path) -> None:
    form, tools = get_format(FORMAT_OF[template]), tools_of(shared_root)
    for rendering in renderings()[template]:
        _check(rendering, form, tools)


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_chunks_make_no_difference(template: str, shared_root: Path) -> None:
    form, tools = get_format(FORMAT_OF[template]), tools_of(shared_root)
    for rendering in renderings()[template]:
        text, prompt = as_written(rendering, form)
        seen = []
        for chunks in (
            [text],
            list(text),
            [text[at : at + 5] for at in range(0, len(text), 5)],
            [bytes([byte]) for byte in text.encode("utf-8")],
        ):
            parser = ToolCallParser(form, tools, prompt=prompt, validate=False)
            events = [event for chunk in chunks for event in parser.feed(chunk)]
            seen.append(merge([*events, *parser.finish()]))
        assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_plain_text_has_no_calls(template: str, shared_root: Path) -> None:
    form, tools = get_format(FORMAT_OF[template]), tools_of(shared_root)
    for rendering in renderings()[template]:
        if rendering["scenario"] == "text_only" and rendering["exact"]:
            text, prompt = as_written(rendering, form)
            message = parse_message(form, tools, text, prompt=prompt)
            assert message.calls == ()
            assert message.failures == ()
            assert "It is cold in Oslo." in message.text + message.reasoning


# -- inference -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def templates() -> Path:
    folder = os.environ.get("CONSTRAIN_TEMPLATES")
    if not folder:
        pytest.skip("CONSTRAIN_TEMPLATES does not name a folder of chat templates")
    pytest.importorskip("jinja2")
    return Path(folder)


def _renderer(templates: Path, name: str) -> Any:
    path = templates / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"there is no template {path}")
    return template_renderer(path.read_text(encoding="utf-8"), bos_token="<bos>", eos_token="<eos>")


@pytest.mark.parametrize("template", sorted(FORMAT_OF))
def test_inferred_format_reads_the_calls_back(
    template: str, shared_root: Path, templates: Path
) -> None:
    form = infer_format(_renderer(templates, template))
    assert ToolFormat.from_dict(json.loads(json.dumps(form.to_dict()))) == form
    tools = tools_of(shared_root)
    for rendering in renderings()[template]:
        _check(rendering, form, tools)


def test_templates_without_calls_are_refused(shared_root: Path, templates: Path) -> None:
    silent = sorted(name for name, found in renderings().items() if len(found) == 1)
    assert silent
    for name in silent:
        with pytest.raises(FormatInferenceError) as caught:
            infer_format(_renderer(templates, name))
        assert caught.value.unclear
