"""The language of a message as a tree, for whoever compiles it into a constraint.

`message_language` says, for a format, tools and a tool choice, which messages there are: a tree of
a few kinds of nodes that no more says tool call.  It is the contract between the descriptions and
the grammar machine; it uses neither a tokenizer nor the native core.

============ ====================================================================================
Text         exactly this text; ``special``: the whole text is a special token of the family, to be
             matched as that token where the tokenizer has it, else as text
Space        written as ``text``; any whitespace may stand there instead if the reader is lenient
Chain        one after the other
Choice       one of them
Repeat       ``least`` to ``most`` times (None: no bound)
Free         any text in which none of ``stops`` occurs (may be empty)
Json         a JSON text of ``schema`` (local references resolve within it); ``style`` says how
             strings and keys are written where that is not plain JSON
Tagged       the arguments of ``schema`` as tagged parameters, see `TaggedArguments`
Keywords     the arguments of ``schema`` as Python keywords, see `PythonArguments`
============ ====================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from constrain.tools.definitions import Tool, ToolChoice
from constrain.tools.errors import ToolFormatError
from constrain.tools.formats import JsonArguments, PythonArguments, TaggedArguments, ToolFormat
from constrain.tools.templates import Atom, Hole
from constrain.tools.templates import Space as SpaceAtom

__all__ = [
    "Chain",
    "Choice",
    "Free",
    "Json",
    "Keywords",
    "Node",
    "Repeat",
    "Space",
    "Tagged",
    "Text",
    "message_language",
]


@dataclass(frozen=True)
class Text:
    """Exactly this text."""

    text: str
    special: bool = False


@dataclass(frozen=True)
class Space:
    """Written as this; any whitespace may be admitted."""

    text: str


@dataclass(frozen=True)
class Chain:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of them."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """From `least` to `most` times."""

    part: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Free:
    """Any text in which none of `stops` occurs."""

    stops: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Json:
    """A JSON text of a schema; undeclared properties are forbidden unless the schema says so."""

    schema: Mapping[str, Any]
    style: JsonArguments = JsonArguments()  # noqa: RUF009  (frozen)


@dataclass(frozen=True, eq=False)
class Tagged:
    """Tagged arguments; ``closing`` is what follows them, which no string may run into."""

    schema: Mapping[str, Any]
    style: TaggedArguments
    head: tuple[Atom, ...]
    tail: tuple[Atom, ...]
    closing: str


@dataclass(frozen=True, eq=False)
class Keywords:
    """Python keywords."""

    schema: Mapping[str, Any]
    style: PythonArguments


Node: TypeAlias = Text | Space | Chain | Choice | Repeat | Free | Json | Tagged | Keywords


def message_language(
    form: ToolFormat,
    tools: Sequence[Tool],
    choice: ToolChoice,
    *,
    parallel: bool = True,
    reasoning: str | None = None,
    answer: Node | None = None,
) -> Node:
    """The messages that there are.

    Args:
        form: the format.
        tools: all tools; `choice` (see `resolve_choice`) says which may be called.
        parallel: several calls in one message, where the format has that.
        reasoning: None (no thinking section), "optional" or "required".
        answer: what prose is instead of free text: "a call, or an answer of this schema".

    Raises ToolFormatError: a name that cannot be written in the format, a thinking section in a
    format that has none.
    """
    if reasoning not in (None, "optional", "required"):
        raise ToolFormatError(f"{reasoning!r} is not optional or required", field="reasoning")
    chosen = [tool for tool in tools if tool.name in choice.names]
    words = _words(form)
    call_starts = _call_starts(form) if choice.mode != "none" else ()
    prose: Node = answer or Free(tuple(dict.fromkeys((*call_starts, *words, *form.stop))))
    if form.text is not None:
        prose = _sequence(_text(form, form.text.begin), prose, _text(form, form.text.end))
    body: Node = prose
    if choice.mode != "none" and chosen:
        section = _calls(form, chosen, parallel and form.parallel)
        lead: list[Node] = []
        if form.prose and answer is None:
            lead = [Choice((Chain(()), _sequence(prose, _text(form, form.after_text))))]
        calls = _sequence(*lead, section)
        body = calls if choice.mode == "required" else Choice((prose, calls))
    if reasoning is None:
        return body
    if form.reasoning is None:
        raise ToolFormatError("it has no thinking section", field="reasoning")
    end = form.reasoning.end
    thought = _sequence(_text(form, form.reasoning.begin), Free((end.strip(),)), _text(form, end))
    if reasoning == "required":
        return _sequence(thought, body)
    return _sequence(Repeat(thought, 0, 1), body)


def _words(form: ToolFormat) -> tuple[str, ...]:
    """Texts that prose must not contain: those that begin or end another part."""
    found = []
    for section in (form.text, form.reasoning):
        if section is not None:
            found += [section.begin.strip(), section.end.strip()]
    return tuple(one for one in found if one)


def _call_starts(form: ToolFormat) -> tuple[str, ...]:
    """The literal texts with which calls begin; none for formats whose calls have no mark."""
    if not form.prose:
        return ()
    starts = []
    for template in (form.call, *form.variants):
        for atom in form.opening(True, template):
            if not isinstance(atom, SpaceAtom):
                starts += [] if isinstance(atom, Hole) else [atom.text]
                break
    return tuple(starts)


def _calls(form: ToolFormat, tools: list[Tool], several: bool) -> Node:
    first = Choice(tuple(_call(form, tool, True) for tool in tools))
    parts: list[Node] = [first]
    if several:
        parts.append(Repeat(Choice(tuple(_call(form, tool, False) for tool in tools))))
    return _sequence(*parts, *_atoms(form, form.ending(), None))


def _call(form: ToolFormat, tool: Tool, first: bool) -> Node:
    opening, closing = form.opening(first), form.closing()
    style = form.arguments
    arguments: Node
    if isinstance(style, JsonArguments):
        arguments = Json(tool.parameters, style)
    elif isinstance(style, PythonArguments):
        arguments = Keywords(tool.parameters, style)
    else:
        atoms = form.parameter_atoms()
        at = next(n for n, one in enumerate(atoms) if isinstance(one, Hole) and one.kind == "value")
        behind = "".join("" if isinstance(one, Hole) else one.text for one in closing)
        arguments = Tagged(tool.parameters, style, atoms[:at], atoms[at + 1 :], behind)
    return _sequence(*_atoms(form, opening, tool), arguments, *_atoms(form, closing, tool))


def _atoms(form: ToolFormat, atoms: tuple[Atom, ...], tool: Tool | None) -> list[Node]:
    nodes: list[Node] = []
    for number, atom in enumerate(atoms):
        if isinstance(atom, SpaceAtom):
            nodes.append(Space(atom.text))
        elif not isinstance(atom, Hole):
            nodes.extend(_split_special(form, atom.text))
        elif atom.kind == "name" and tool is not None:
            nodes.append(Text(_name(tool, atom, atoms[number + 1 :])))
        elif atom.kind == "index":
            nodes.append(Repeat(Choice(tuple(Text(str(digit)) for digit in range(10))), 1, 9))
        else:
            letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
            nodes.append(Repeat(Choice(tuple(Text(one) for one in letters)), 9, 9))
    return nodes


def _name(tool: Tool, hole: Hole, behind: tuple[Atom, ...]) -> str:
    """The name as it is written.  Raises ToolFormatError where it would not be read back."""
    if hole.json:
        return json.dumps(tool.name, ensure_ascii=False)[1:-1]
    stop = "" if not behind or isinstance(behind[0], Hole) else behind[0].text
    if any(char in '<>"' or char.isspace() for char in tool.name) or (stop and stop in tool.name):
        raise ToolFormatError(f"the name {tool.name!r} cannot be written in it", field="call")
    return tool.name


def _text(form: ToolFormat, text: str) -> Node:
    return Chain(tuple(_split_special(form, text)))


def _split_special(form: ToolFormat, text: str) -> list[Node]:
    """Text with the special tokens in it as parts of their own, longest first."""
    nodes: list[Node] = []
    tokens = sorted(form.special_tokens, key=len, reverse=True)
    at = start = 0
    while at < len(text):
        token = next((one for one in tokens if text.startswith(one, at)), None)
        if token is None:
            at += 1
            continue
        if start < at:
            nodes.append(Text(text[start:at]))
        nodes.append(Text(token, True))
        at = start = at + len(token)
    if start < len(text):
        nodes.append(Text(text[start:]))
    return nodes


def _sequence(*parts: Node) -> Node:
    flat: list[Node] = []
    for one in parts:
        flat.extend(one.parts if isinstance(one, Chain) else (one,))
    return Chain(tuple(flat))
