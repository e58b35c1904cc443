"""Chat templates as the callables that `infer_format` renders its probes through."""

from __future__ import annotations

import datetime
import json
from typing import Any

from constrain.errors import ConstrainError
from constrain.tools.probes import Renderer

__all__ = ["template_renderer", "tokenizer_renderer"]


def tokenizer_renderer(tokenizer: Any, **options: Any) -> Renderer:
    """A renderer through a transformers tokenizer's ``apply_chat_template``.

    ``options`` go to the template (``enable_thinking=False``).  Raises ConstrainError for a
    tokenizer without a chat template.
    """
    if not callable(getattr(tokenizer, "apply_chat_template", None)):
        raise ConstrainError(f"a {type(tokenizer).__name__} has no apply_chat_template")

    def render(messages: Any, tools: Any, add_generation_prompt: bool = False) -> str:
        return tokenizer.apply_chat_template(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            tokenize=False,
            **options,
        )

    return render


def template_renderer(template: str, **options: Any) -> Renderer:
    """A renderer of the text of a chat template, through jinja2 in its sandbox.

    ``options`` are variables of the template, such as ``bos_token``.  Raises ConstrainError where
    jinja2 is not installed or the template is malformed.
    """
    try:
        import jinja2
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ConstrainError("a chat template needs jinja2: pip install jinja2") from None

    class Generation(Extension):
        """``{% generation %}`` marks what the model wrote; here it changes nothing."""

        tags = {"generation"}  # noqa: RUF012  (jinja2's interface)

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body).set_lineno(line)

    def to_json(value: Any, indent: int | None = None, **given: Any) -> str:
        given.setdefault("ensure_ascii", False)
        return json.dumps(value, indent=indent, **given)

    def refuse(message: str) -> None:
        raise ConstrainError(f"the chat template refuses: {message}")

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime(2026, 1, 2).strftime(form)
    try:
        compiled = environment.from_string(template)
    except jinja2.TemplateError as error:
        raise ConstrainError(f"the chat template is malformed: {error}") from error
    variables = {"bos_token": "", "eos_token": "", **options}

    def render(messages: Any, tools: Any, add_generation_prompt: bool = False) -> str:
        return compiled.render(
            messages=messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            **variables,
        )

    return render
