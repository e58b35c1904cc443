"""`ToolCalls`: messages of a model that may call tools, as a specification to compile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from constrain.errors import ConstrainError
from constrain.parts import GrammarSpec
from constrain.tools.definitions import Tool, make_tools, resolve_choice
from constrain.tools.errors import ToolFormatError
from constrain.tools.formats import ToolFormat
from constrain.tools.language import (
    ArgumentsNode,
    Embedded,
    Json,
    Node,
    message_language,
    thinking_of,
)
from constrain.tools.named_formats import get_format
from constrain.tools.parser import ToolCallParser
from constrain.tools.trees import texts_of, without_start

if TYPE_CHECKING:
    from constrain.grammar.builder import GrammarBuilder
    from constrain.grammar.ir import Expression
    from constrain.program import Program
    from constrain.tools.events import Message
    from constrain.tools.spelling import Spelling
    from constrain.vocabulary import Vocabulary

__all__ = ["ToolCalls"]

_KEPT_TEMPLATES = 64
_inferred: dict[str, ToolFormat] = {}  # formats of tokenizers, by their chat templates


class ToolCalls(GrammarSpec):
    """Messages of a model that may call tools.

    A message is prose, or calls whose arguments satisfy their tools' schemas, or prose and then
    calls, as the format says; what the parser of the format reads of it is exactly that.  Prose is
    free, but holds no special token and no beginning of a call.

    Args:
        tools: a list of tools in any form that `make_tools` takes: functions, pydantic models,
            dictionaries of OpenAI and Anthropic, MCP tool lists, ...
        format: how calls are written: a name (`constrain.tools.named_formats`), a `ToolFormat`, or
            "auto": read from the chat template of `tokenizer`.
        tokenizer: for "auto": a tokenizer of transformers, the text of a chat template, or a
            function ``render(messages, tools, add_generation_prompt=False) -> str``.
        tool_choice: "auto", "required", "none", the name of a tool or several, one of which must
            then be called; or one of the dictionaries of OpenAI and Anthropic.
        parallel: several calls in one message, where the format has that.
        reasoning: a thinking section: None (there is none), "optional" or "required".
        arguments_order: "any", or "declared": arguments come in the order of the schema.
        escapes: of JSON strings and keys in arguments and answers: "plain" (only where JSON requires
            one) or "any", as for `JsonSchema`.
        whitespace: in calls and in JSON arguments: "template" (as the format writes it, which leaves
            long stretches without a choice) or "bounded" (any that the parser reads, but no endless
            runs).  At the ends of a message and of prose it is free.
        answer: a JSON Schema (or type) or another specification that prose must satisfy: "either a
            call or an answer".  Then no prose comes before calls.
        prompt: the end of the prompt, which says whether the message begins inside of a thinking
            section, or behind one.

    Raises:
        ToolError: a tool cannot be used; by `program_for` also for what its schema says.
        ToolChoiceError: a choice that names nobody.
        ToolFormatError: no such format, one in which a tool's name cannot be written, one without
            a thinking section; by `program_for`, a delimiter that the vocabulary cannot write.
        FormatInferenceError: the chat template renders no tools, or leaves something open.
    """

    __slots__ = (
        "_tree",
        "answer",
        "arguments_order",
        "escapes",
        "format",
        "parallel",
        "prompt",
        "reasoning",
        "tool_choice",
        "tools",
        "whitespace",
    )

    _tree: Node
    format: ToolFormat
    tools: tuple[Tool, ...]
    arguments_order: str
    answer: Any
    escapes: str
    whitespace: str
    parallel: bool
    prompt: str
    reasoning: str | None
    tool_choice: object

    def __init__(
        self,
        tools: object,
        *,
        format: ToolFormat | str | Mapping[str, Any] = "auto",
        tokenizer: Any = None,
        tool_choice: object = "auto",
        parallel: bool = True,
        reasoning: str | None = None,
        arguments_order: str = "any",
        escapes: str = "plain",
        whitespace: str = "template",
        answer: Any = None,
        prompt: str = "",
    ) -> None:
        put = object.__setattr__
        made = make_tools(tools)
        for option, value, choices in (
            ("arguments_order", arguments_order, ("any", "declared")),
            ("escapes", escapes, ("plain", "any")),
            ("whitespace", whitespace, ("template", "bounded")),
        ):
            if value not in choices:
                raise ConstrainError(f"{option} must be {' or '.join(choices)}, found {value!r}")
        if not isinstance(parallel, bool):
            raise ConstrainError(f"parallel is True or False, found {parallel!r}")
        if not isinstance(prompt, str):
            raise ConstrainError(f"prompt is a text, found {type(prompt).__name__}")
        choice = resolve_choice(made, tool_choice)
        form = _format_of(format, tokenizer)
        thinking = thinking_of(form, reasoning, prompt)
        spec = None if answer is None else _answer_spec(answer, form, made, escapes)
        put(self, "tools", made)
        put(self, "format", form)
        put(self, "tool_choice", tool_choice)
        put(self, "parallel", parallel)
        put(self, "reasoning", reasoning)
        put(self, "arguments_order", arguments_order)
        put(self, "escapes", escapes)
        put(self, "whitespace", whitespace)
        put(self, "answer", spec)
        put(self, "prompt", prompt)
        tree = message_language(
            form,
            made,
            choice,
            parallel=parallel,
            thinking=thinking,
            answer=None if spec is None else Embedded(spec),
            exact=whitespace == "template",
        )
        put(self, "_tree", without_start(tree, form.prompted))

    @property
    def language(self) -> Node:
        """The messages as a tree (see `constrain.tools.language`)."""
        return self._tree

    def program_for(self, vocabulary: Vocabulary | None) -> Program:
        """The program for a vocabulary; without one, special tokens are their texts.

        Raises what the class says, and what the schemas of tools raise, as ToolError.
        """
        from constrain.tools.nets import message_program
        from constrain.tools.spelling import Spelling

        spelling = Spelling(vocabulary)
        spelling.check(texts_of(self._tree))
        program = message_program(self._tree, spelling, self._arguments)
        options = ("escapes", "whitespace", "arguments_order")
        return replace(program, notes={name: getattr(self, name) for name in options})

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        from constrain.tools.nets import message_expression

        return message_expression(self._tree, builder, self._arguments)

    def _arguments(self, node: ArgumentsNode, spelling: Spelling) -> tuple[Program, bool]:
        from constrain.tools.arguments import arguments_program

        program, empty = arguments_program(node, spelling, self.arguments_order)
        whitespace = program.whitespace
        if self.whitespace == "template" and isinstance(node, Json) and node.style.is_plain:
            whitespace = node.style.whitespace
        return replace(program, escapes=self.escapes, whitespace=whitespace), empty

    # -- reading -------------------------------------------------------------------------------

    def parser(self, *, validate: bool = True) -> ToolCallParser:
        """A parser for one message."""
        return ToolCallParser(
            self.format,
            self.tools,
            prompt=self.prompt,
            validate=validate,
            answer=self.answer is not None,
        )

    def parse(self, text: str | bytes) -> Message:
        """The message that a text says (`Vocabulary.decode` with ``special_tokens=True``)."""
        parser = self.parser()
        parser.feed(text)
        parser.finish()
        return parser.message

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a ToolCalls cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a ToolCalls cannot be changed")

    def __repr__(self) -> str:
        names = ", ".join(tool.name for tool in self.tools[:4])
        if len(self.tools) > 4:
            names += f", ... {len(self.tools)} tools"
        return (
            f"ToolCalls([{names}], format={self.format.name!r}, tool_choice={self.tool_choice!r})"
        )


def _format_of(given: object, tokenizer: Any) -> ToolFormat:
    """The format that a caller means.  Raises ToolFormatError."""
    if isinstance(given, ToolFormat):
        return given
    if isinstance(given, Mapping):
        return ToolFormat.from_dict(given)
    if not isinstance(given, str):
        raise ToolFormatError(
            f"is a name, a ToolFormat or its dictionary, found {type(given).__name__}",
            field="format",
        )
    if given != "auto":
        return get_format(given)
    if tokenizer is None:
        raise ToolFormatError(
            '"auto" reads the format from a chat template: pass tokenizer=..., or name a format',
            field="format",
        )
    from constrain.tools.chat_templates import template_renderer, tokenizer_renderer
    from constrain.tools.inference import infer_format

    if isinstance(tokenizer, str):
        return infer_format(template_renderer(tokenizer))
    if callable(getattr(tokenizer, "apply_chat_template", None)):
        template = getattr(tokenizer, "chat_template", None)
        known = _inferred.get(template) if isinstance(template, str) else None
        if known is None:
            known = infer_format(tokenizer_renderer(tokenizer))
            if isinstance(template, str):
                if len(_inferred) >= _KEPT_TEMPLATES:
                    _inferred.clear()
                _inferred[template] = known
        return known
    if callable(tokenizer):
        return infer_format(tokenizer)
    raise ToolFormatError(
        f"a {type(tokenizer).__name__} has no chat template: pass a tokenizer of transformers, the "
        "text of a template, or name a format",
        field="format",
    )


def _answer_spec(answer: Any, form: ToolFormat, tools: Sequence[Tool], escapes: str) -> Any:
    """The specification of answers.

    Where calls are JSON without a mark of their own, a schema's answers are those that the parser
    does not read as a call.
    """
    from constrain.schema.spec import JsonSchema

    known = callable(getattr(answer, "program", None)) and not isinstance(answer, type)
    spec = answer if known else JsonSchema(answer, extra_properties="forbid", escapes=escapes)
    shape = None if form.prose or not isinstance(spec, JsonSchema) else _call_shape(form, tools)
    if shape is None:
        return spec
    schema = spec.schema
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    elif not isinstance(schema, dict):
        return spec
    return spec.with_schema({**schema, "allOf": [*schema.get("allOf", ()), {"not": shape}]})


def _call_shape(form: ToolFormat, tools: Sequence[Tool]) -> Any:
    """A schema of what begins as a call, None where calls are no JSON."""
    holes = {"$name": '"name"', "$id": "0", "$index": "0", "$arguments": "0"}
    text = form.begin + form.call + form.end
    for hole, value in holes.items():
        text = text.replace(f'"{hole}"', value).replace(hole, value)
    try:
        written = json.loads(text)
    except ValueError:
        return None
    names = [tool.name for tool in tools]

    def schema_of(value: Any) -> Any:
        if isinstance(value, dict):
            inner = {key: schema_of(one) for key, one in value.items()}
            return {"type": "object", "properties": inner, "required": list(inner)}
        if isinstance(value, list):
            return {"type": "array", "prefixItems": list(map(schema_of, value)), "minItems": 1}
        return {"enum": names} if value == "name" else {}

    return schema_of(written)
