"""Models that call tools: from messages to a prompt, and from tokens to a message.

A chat template that writes tools and calls is used as it is.  Where a template writes none, a
format has to be named; tools then stand in the system message, calls are written into the
assistant's messages as the format says, and results come back as messages of the user.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError
from constrain.tools.agent import Reply
from constrain.tools.chat_templates import tokenizer_renderer
from constrain.tools.definitions import Tool
from constrain.tools.formats import ToolFormat
from constrain.tools.inference import infer_format
from constrain.tools.named_formats import get_format
from constrain.tools.probes import Prober
from constrain.tools.render import render_message

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["ChatPrompts", "TransformersChat", "describe_tools"]


class ChatPrompts:
    """Prompts of conversations with tools, for one tokenizer of transformers.

    Args:
        tokenizer: with a chat template.
        format: "auto" (read from the template), the name of a format, or a `ToolFormat`.
        options: go to the template (``enable_thinking=False``).

    Attributes:
        format: the format of calls.
        writes_tools: whether the template itself writes tools, calls and results.

    Raises FormatInferenceError where "auto" finds no certain format, ConstrainError for a tokenizer
    without a chat template.
    """

    def __init__(self, tokenizer: Any, format: ToolFormat | str = "auto", **options: Any) -> None:
        self._render = tokenizer_renderer(tokenizer, **options)
        prober = Prober(self._render)
        self.writes_tools = prober.writes_calls()
        self._as_text = prober.arguments_as_text
        if isinstance(format, ToolFormat):
            self.format = format
        elif format == "auto":
            self.format = infer_format(self._render)
        else:
            self.format = get_format(format)

    def prompt(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]) -> str:
        """The prompt up to where the assistant's next message begins.

        Raises ConstrainError where the template refuses the messages.
        """
        if self.writes_tools:
            talk = [self._as_template_wants(one) for one in messages]
            listed = [tool.to_openai() for tool in tools] or None
        else:
            talk, listed = self._as_plain_text(messages, tools), None
        try:
            return self._render(talk, listed, add_generation_prompt=True)
        except Exception as error:  # a template may raise anything
            raise ConstrainError(f"the chat template refuses the messages: {error}") from error

    def _as_template_wants(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Content is a text; arguments are values, or text where the template wants that."""
        result = {**message, "content": message.get("content") or ""}
        if message.get("tool_calls"):
            result["tool_calls"] = [
                {**call, "function": {**call["function"], "arguments": self._arguments(call)}}
                for call in message["tool_calls"]
            ]
        return result

    def _arguments(self, call: Mapping[str, Any]) -> Any:
        arguments = call["function"]["arguments"]
        if self._as_text:
            return arguments if isinstance(arguments, str) else json.dumps(arguments)
        return json.loads(arguments) if isinstance(arguments, str) else arguments

    def _as_plain_text(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool]
    ) -> list[dict[str, Any]]:
        talk: list[dict[str, Any]] = []
        about = describe_tools(self.format, tools) if tools else ""
        for one in messages:
            role, content = one["role"], one.get("content") or ""
            if role == "system" and about:
                content, about = f"{content}\n\n{about}", ""
            if one.get("tool_calls") and not tools:
                # who shall not call is not shown how: results are facts beside the question
                if not content:
                    continue
            elif one.get("tool_calls"):
                calls = [
                    (call["function"]["name"], _values(call["function"]["arguments"]))
                    for call in one["tool_calls"]
                ]
                content = render_message(
                    self.format, calls, text=content if self.format.prose else ""
                )
            if role == "tool":
                role = "user"
                content = f"Result of {one.get('name', 'the tool')}: {content}"
                if talk and talk[-1]["role"] == "user":
                    talk[-1]["content"] += "\n" + content
                    continue
            talk.append({"role": role, "content": content})
        if about:
            talk.insert(0, {"role": "system", "content": about})
        return talk


def _values(arguments: str | Mapping[str, Any]) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def describe_tools(form: ToolFormat, tools: Sequence[Tool]) -> str:
    """The part of a system message that tells a model of its tools and of how to call them."""
    lines = ["You can call these tools:"]
    for tool in tools:
        described = {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        }
        lines.append(json.dumps(described, ensure_ascii=False))
    example = render_message(form, [("NAME", {"ARGUMENT": "VALUE"})])
    lines += ["To call a tool, write exactly:", example]
    return "\n".join(lines)


class TransformersChat:
    """A transformers model whose messages are constrained to valid calls and prose.

    Args:
        model, tokenizer: of transformers, the model in evaluation mode.
        format: see `ChatPrompts`.
        vocabulary: of the model; read from the tokenizer where it is not given.
        reasoning, arguments_order, answer: see `constrain.ToolCalls`.
        constrained: without it the model writes what it likes, for comparison.
        template_options: go to the chat template.
        sampling: ``max_tokens``, ``temperature``, ``top_k``, ``top_p``, ``seed`` of
            `constrain.decoding.generate`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        format: ToolFormat | str = "auto",
        vocabulary: Vocabulary | None = None,
        reasoning: str | None = None,
        arguments_order: str = "any",
        escapes: str = "plain",
        whitespace: str = "template",
        answer: Any = None,
        constrained: bool = True,
        template_options: Mapping[str, Any] | None = None,
        **sampling: Any,
    ) -> None:
        from constrain.vocabulary import Vocabulary

        self._model = model
        self._tokenizer = tokenizer
        self._prompts = ChatPrompts(tokenizer, format, **(template_options or {}))
        self.format = self._prompts.format
        self.vocabulary = vocabulary or Vocabulary.from_tokenizer(tokenizer, model=model)
        self._options: dict[str, Any] = {
            "reasoning": reasoning,
            "arguments_order": arguments_order,
            "escapes": escapes,
            "whitespace": whitespace,
            "answer": answer,
        }
        self._constrained = constrained
        self._sampling = sampling

    def reply(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Tool],
        tool_choice: object = "auto",
        parallel: bool = True,
    ) -> Reply:
        """The next message.  Raises ConstrainError: the prompt does not fit, a bad choice, ..."""
        import constrain
        from constrain.decoding import generate

        # a small model that must not call is better off without the description of how to
        hidden = tool_choice == "none" and not self._prompts.writes_tools
        prompt = self._prompts.prompt(messages, () if hidden else tools)
        compiled = None
        if self._constrained:
            spec = constrain.ToolCalls(
                tools,
                format=self.format,
                tool_choice=tool_choice,
                parallel=parallel,
                prompt=prompt[-200:],
                **self._options,
            )
            compiled = constrain.compile(spec, self.vocabulary)
        ids = list(self._tokenizer(prompt, add_special_tokens=False)["input_ids"])
        result = generate(self._model, self._tokenizer, ids, compiled, **self._sampling)
        text = self.vocabulary.decode(result.token_ids, special_tokens=True).decode(
            "utf-8", "replace"
        )
        return Reply(
            text, prompt[-200:], result.finish_reason == "stop" or bool(result.is_complete)
        )
