"""Probe conversations: tool calls whose every part is recognisable in a rendered prompt.

The names, keys and values occur nowhere else, are words to every template, and sort in the order in
which they are used.  Call ids have nine letters and digits, which is what the strictest templates
ask for.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Probe", "Prober", "Renderer"]

Renderer = Callable[..., str]
"""``render(messages, tools) -> text``, and if it can ``add_generation_prompt=True``."""

USER = "quezalprobe"
TEXT = "Plumirbo text."
THOUGHT = "Trimolga thought."
_TYPED_PROPERTIES = {
    "karoba": {"type": "string", "description": "A text."},
    "kelumo": {"type": "string", "description": "A text."},
    "kinoti": {"type": "integer", "description": "A number."},
    "kobeta": {"type": "boolean", "description": "A flag."},
    "kuzala": {
        "type": "object",
        "description": "An object.",
        "properties": {"lamiro": {"type": "string"}, "lemoxa": {"type": "integer"}},
    },
    "kyfino": {"type": "array", "description": "Texts.", "items": {"type": "string"}},
}


def _tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": []}
    function = {"name": name, "description": "Does something.", "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    _tool("zorbital_one", _TYPED_PROPERTIES),
    _tool("zumarine_two", _TYPED_PROPERTIES),
    _tool("zyklopod_nil", {}),
]
ONE, TWO, NIL = "zorbital_one", "zumarine_two", "zyklopod_nil"


@dataclass(frozen=True, slots=True)
class Probe:
    """An assistant message and what a template made of it: the text behind the user's question."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    text: str
    thought: str
    rendered: str


def call_id(number: int) -> str:
    """The id of a call, counted from 0."""
    return f"qzid0000{number + 1}"


class Prober:
    """Renders probes through a chat template; nothing a template raises escapes."""

    def __init__(self, render: Renderer) -> None:
        self._render = render
        self._as_text = False  # some templates want arguments as JSON text
        self.failure = ""
        try:
            names = inspect.signature(render).parameters.values()
            self._prompts = any(
                one.name == "add_generation_prompt" or one.kind is one.VAR_KEYWORD for one in names
            )
        except (TypeError, ValueError):
            self._prompts = False

    @property
    def arguments_as_text(self) -> bool:
        """Whether arguments have to be JSON text rather than values; known after a probe."""
        return self._as_text

    def writes_calls(self) -> bool:
        """Whether the template writes tool calls at all."""
        probe = self.probe(((ONE, {"karoba": "vexalon"}),))
        return probe is not None and ONE in probe.rendered

    def prompt(self) -> str | None:
        """What a template writes behind the user's question for the model to go on from."""
        if not self._prompts:
            return None
        return self._behind([], True)

    def probe(
        self,
        calls: tuple[tuple[str, dict[str, Any]], ...] = (),
        text: str = "",
        thought: str = "",
        key: str = "reasoning_content",
    ) -> Probe | None:
        """The rendering of one assistant message, None where the template refuses it."""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thought:
            message[key] = thought
        if calls:
            message["tool_calls"] = [
                {
                    "id": call_id(number),
                    "type": "function",
                    "function": {
                        "name": name,
                        "arguments": json.dumps(arguments, ensure_ascii=False)
                        if self._as_text
                        else arguments,
                    },
                }
                for number, (name, arguments) in enumerate(calls)
            ]
        rendered = self._behind([message], False)
        wanted = calls[0][1] if calls else {}
        if calls and not self._as_text and wanted:
            shown = rendered is not None and all(key in rendered for key in wanted)
            if not shown:
                self._as_text = True
                again = self.probe(calls, text, thought, key)
                if again is not None and all(key in again.rendered for key in wanted):
                    return again
                self._as_text = False
        return None if rendered is None else Probe(calls, text, thought, rendered)

    def _behind(self, messages: list[dict[str, Any]], prompt: bool) -> str | None:
        conversation = [{"role": "user", "content": USER}, *messages]
        options = {"add_generation_prompt": True} if prompt else {}
        tools = json.loads(json.dumps(TOOLS))
        try:
            text = self._render(conversation, tools, **options)
        except Exception as error:  # a template may raise anything
            self.failure = f"{type(error).__name__}: {error}"
            return None
        at = text.rfind(USER)
        if at < 0:
            self.failure = "the user's question does not occur in the prompt"
            return None
        return text[at + len(USER) :]
