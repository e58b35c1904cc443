"""The language of a message as a tree, for whoever compiles it into a constraint.

`message_language` says, for a format, tools and a tool choice, which messages there are: a tree of
a few kinds of nodes that no more says tool call.  It is the contract between the descriptions and
the grammar machine; it uses neither a tokenizer nor the native core.  Every message of the language
is read back by the parser: as the calls that it writes, or as prose.

============ ====================================================================================
Text         exactly this text; special tokens in it are matched as tokens where the vocabulary has
             them as such
Space        written as ``text``; any whitespace may stand there instead, or none
Symbols      ``least`` to ``most`` of some ASCII characters
Chain        one after the other
Choice       one of them
Repeat       ``least`` to ``most`` times (None: no bound)
Free         any text in which none of ``stops`` occurs, and which begins (whitespace aside) with
             none of the characters of ``first``; it may be empty
Embedded     a text of another specification
Calls        one of some tools: its name, then what stands before its arguments, these, and the rest
Json         a JSON text of ``schema`` (local references resolve within it); ``style`` says how
             strings and keys are written where that is not plain JSON
Tagged       the arguments of ``schema`` as tagged parameters, see `TaggedArguments`
Keywords     the arguments of ``schema`` as Python keywords, see `PythonArguments`
============ ====================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from constrain.tools.definitions import Tool, ToolChoice
from constrain.tools.errors import ToolFormatError
from constrain.tools.formats import (
    JsonArguments,
    PythonArguments,
    Section,
    TaggedArguments,
    ToolFormat,
    loose_text,
)
from constrain.tools.templates import Atom, Hole
from constrain.tools.templates import Space as SpaceAtom

__all__ = [
    "ArgumentsNode",
    "Calls",
    "Case",
    "Chain",
    "Choice",
    "Embedded",
    "Free",
    "Json",
    "Keywords",
    "Node",
    "Repeat",
    "Space",
    "Symbols",
    "Tagged",
    "Text",
    "Thinking",
    "message_language",
    "sequence",
    "thinking_of",
]

_BRACKET = re.compile(r"[<>\[\]{}|]")
_DIGITS = "0123456789"
_COUNTED = 6  # calls whose numbers are known; behind them any larger number
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 9  # what the strictest chat templates ask for


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Space:
    """Written as this; any whitespace may be admitted."""

    text: str


@dataclass(frozen=True, slots=True)
class Symbols:
    """From `least` to `most` of these ASCII characters."""

    characters: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Chain:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of them."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `least` to `most` times."""

    part: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Free:
    """Any text without `stops` that does not begin with a character of `first`."""

    stops: tuple[str, ...]
    first: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """A text of another specification."""

    spec: Any


@dataclass(frozen=True, slots=True, eq=False)
class Json:
    """A JSON text of a schema; undeclared properties are forbidden unless the schema says so."""

    tool: Tool
    style: JsonArguments


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Tagged arguments between `head` and `tail`."""

    tool: Tool
    style: TaggedArguments
    head: tuple[Atom, ...]
    tail: tuple[Atom, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Keywords:
    """Python keywords."""

    tool: Tool
    style: PythonArguments


ArgumentsNode: TypeAlias = Json | Tagged | Keywords


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The call of one tool from its name on: ``name middle arguments closing``.

    What is equal for all tools is one object in all cases.
    """

    name: str
    middle: Chain
    arguments: ArgumentsNode
    closing: Chain


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """One of these calls."""

    cases: tuple[Case, ...]


Node: TypeAlias = (
    Text | Space | Symbols | Chain | Choice | Repeat | Free | Embedded | Calls | ArgumentsNode
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """The thinking section of a message.

    ``mode``: None (there is none), "optional" or "required".  ``state``: "fresh", or what the
    prompt has done already: "open" (the model begins inside of it) or "closed".
    """

    mode: str | None = None
    state: str = "fresh"


def thinking_of(form: ToolFormat, mode: str | None, prompt: str = "") -> Thinking:
    """Where a message begins, from the end of the prompt that it follows.

    Raises ToolFormatError for an unknown `mode`, and for a thinking section where there is none.
    """
    if mode not in (None, "optional", "required"):
        raise ToolFormatError(
            f"must be None, optional or required, found {mode!r}", field="reasoning"
        )
    section, asked = form.reasoning, prompt.rstrip()
    if section is None:
        if mode is not None:
            raise ToolFormatError(f"{form.name} has no thinking section", field="reasoning")
        return Thinking()
    # an end that also begins the next message ends every prompt, closed thoughts or not
    if section.end.strip()[-1] in ">])}" and asked.endswith(section.end.strip()):
        return Thinking(mode, "closed")
    if section.begin.strip() and asked.endswith(section.begin.strip()):
        return Thinking(mode, "open")
    return Thinking(mode)


def message_language(
    form: ToolFormat,
    tools: Sequence[Tool],
    choice: ToolChoice,
    *,
    parallel: bool = True,
    thinking: Thinking = Thinking(),
    answer: Node | None = None,
    exact: bool = False,
) -> Node:
    """The messages that there are, what the prompt has written of them (`prompted`) included.

    Args:
        form: the format.
        tools: all tools; `choice` (see `resolve_choice`) says which may be called.
        parallel: several calls in one message, where the format has that.
        thinking: see `thinking_of`.
        answer: what prose is instead of free text: "a call, or an answer of this schema".
        exact: whitespace in calls and between them is as the format writes it; else any is read.

    Prose comes before calls where the format has that and a call is no must; where one is, a marked
    section of prose may stay, empty.  Raises ToolFormatError for a name that cannot be written.
    """
    return _Language(form, tools, choice, parallel, thinking, answer, exact).message()


class _Language:
    def __init__(
        self,
        form: ToolFormat,
        tools: Sequence[Tool],
        choice: ToolChoice,
        parallel: bool,
        thinking: Thinking,
        answer: Node | None,
        exact: bool,
    ) -> None:
        self._form = form
        self._exact = exact
        self._choice = choice
        self._parallel = parallel and form.parallel
        self._thinking = thinking
        self._answer = answer
        chosen = set(choice.names)
        self._tools = [] if choice.mode == "none" else [one for one in tools if one.name in chosen]
        self._cases: dict[tuple[str, int | None], Calls] = {}
        self._made: dict[str, ArgumentsNode] = {}

    def message(self) -> Node:
        form, thinking = self._form, self._thinking
        calls = self._calls() if self._tools else None
        if calls is None:
            body = self._prose()
        elif self._choice.mode == "required":
            body = sequence(Space(""), Repeat(self._empty_text(), 0, 1), calls)
        elif form.prose and self._answer is None:
            body = Choice(
                (self._prose(), sequence(Repeat(self._prose(False), 0, 1), Space(""), calls))
            )
        else:
            body = Choice((self._prose(), sequence(Space(""), calls)))
        section = form.reasoning
        if section is None:
            return sequence(body, Space(""))
        if thinking.state == "open":
            inner = Space("") if thinking.mode is None else Free(self._unthinkable(section))
            lead: Node = sequence(inner, self._text(section.end), Space(""))
        elif thinking.mode is None or thinking.state == "closed":
            lead = Chain(())
        elif thinking.mode == "required":
            lead = self._thought(section)
        else:
            lead = Repeat(self._thought(section), 0, 1)
            if section.bare_end:
                lead = Choice((lead, sequence(self._text(section.end), Space(""))))
        return sequence(lead, body, Space(""))

    # -- prose and thought ---------------------------------------------------------------------

    def _prose(self, alone: bool = True) -> Node:
        """Prose with its marks; not `alone`: with what stands between it and calls."""
        form = self._form
        stops, first = self._unspeakable()
        inner: Node = self._answer or Free(stops, first)
        parts: list[Node] = [inner]
        if form.text is not None:
            parts = [Space(""), self._text(form.text.begin), inner, self._text(form.text.end)]
        if not alone:
            parts.append(self._text(form.after_text))
        return sequence(*parts)

    def _empty_text(self) -> Node:
        """A marked section of prose without any, before calls that are a must."""
        text = self._form.text
        if text is None or not text.end.strip():
            return Chain(())
        between = self._text(self._form.after_text)
        empty = (self._text(text.begin), Space(""), self._text(text.end))
        return sequence(Space(""), *empty, between)

    def _thought(self, section: Section) -> Node:
        return sequence(
            Space(""),
            self._text(section.begin),
            Free(self._unthinkable(section)),
            self._text(section.end),
            Space(""),
        )

    def _unthinkable(self, section: Section) -> tuple[str, ...]:
        """What a thought must not contain: its end, and with that a call that is left half-open."""
        words = [section.end.strip(), *self._unspeakable()[0]]
        return tuple(dict.fromkeys(words))

    def _unspeakable(self) -> tuple[tuple[str, ...], str]:
        """Texts that prose must not contain, and characters that it must not begin with.

        These are the texts that begin or end another part; of a call the first text with a bracket,
        since there is no call without it.  Calls that follow no prose and begin with no tag are told
        from it by their first character.
        """
        form, words, first = self._form, [], ""
        for template in (form.call, *form.variants):
            literals = [
                atom.text
                for atom in form.opening(True, template)
                if not isinstance(atom, (SpaceAtom, Hole))
            ]
            if form.prose or "<" in literals[0]:
                marked = [text for text in literals if _BRACKET.search(text)]
                words.append((marked or literals)[0])
            else:
                first += literals[0][:1]
        for section in (form.text, form.reasoning):
            if section is not None:
                words += [section.begin.strip(), section.end.strip()]
        words += form.stop
        return tuple(dict.fromkeys(one for one in words if one)), first

    # -- calls ---------------------------------------------------------------------------------

    def _calls(self) -> Node:
        """All calls of the message."""
        section, form = self._section(0), self._form
        if form.prose_after and self._answer is None and self._choice.mode == "auto":
            section = sequence(section, Repeat(sequence(Space(""), self._prose()), 0, 1))
        if not self._parallel or self._thinking.mode is None or form.reasoning is None:
            return section
        if not form.reasoning.begin.strip():
            return section
        again = self._section(None) if self._is_counted() else section
        more = sequence(Space(""), self._thought(form.reasoning), again)
        return sequence(section, Repeat(more))

    def _section(self, count: int | None) -> Node:
        """Calls behind so many others; None: it is not known behind how many."""
        parts: list[Node] = [self._call(True, count)]
        if self._parallel:
            parts.append(self._further(count))
        ending = self._form.ending()
        last = ending[-1] if ending else None
        if isinstance(last, SpaceAtom):  # what ends the message is free
            return sequence(*parts, *self._written(ending[:-1]), Space(last.text))
        return sequence(*parts, *self._written(ending))

    def _further(self, count: int | None) -> Node:
        """Any number of further calls; where they are counted, the first ones each by its number."""
        if count is None or not self._is_counted():
            return Repeat(self._call(False, None))
        rest: Node = Repeat(self._call(False, _COUNTED))
        for number in range(_COUNTED - 1, count, -1):
            rest = Repeat(sequence(self._call(False, number), rest), 0, 1)
        return rest

    def _is_counted(self) -> bool:
        """Whether calls have a number."""
        templates = (self._form.call, *self._form.variants)
        return any(
            isinstance(one, Hole) and one.kind == "index"
            for template in templates
            for one in (*self._form.opening(True, template), *self._form.closing(template))
        )

    def _call(self, first: bool, count: int | None) -> Node:
        form = self._form
        templates = (form.call, *form.variants)
        options = []
        for template in templates:
            opening = form.opening(first, template)
            at = next(
                n for n, one in enumerate(opening) if isinstance(one, Hole) and one.kind == "name"
            )
            before = opening[:at]
            lead: list[Node] = []
            if first and before and isinstance(before[0], SpaceAtom):
                lead, before = self._atoms(before[:1]), before[1:]
            nodes = (*lead, *self._written(before, None, count), self._dispatch(template, count))
            options.append(sequence(*nodes))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _dispatch(self, template: str, count: int | None) -> Calls:
        """The tools' calls from their names on: the same for first and further calls, as far as
        their numbers are not written."""
        if not self._is_counted():
            count = None
        found = self._cases.get((template, count))
        if found is None:
            opening, closing = self._form.opening(True, template), self._form.closing(template)
            holes = [
                n for n, one in enumerate(opening) if isinstance(one, Hole) and one.kind == "name"
            ]
            hole, middle = opening[holes[0]], opening[holes[0] + 1 :]
            named = len(holes) > 1
            shared = None if named else sequence(*self._written(middle, None, count))
            again = any(isinstance(one, Hole) and one.kind == "name" for one in closing)
            ending = None if again else sequence(*self._written(closing, None, count))
            found = self._cases[template, count] = Calls(
                tuple(
                    Case(
                        self._name(tool, hole, middle),
                        shared or sequence(*self._written(middle, tool, count)),
                        self._arguments(tool),
                        ending or sequence(*self._written(closing, tool, count)),
                    )
                    for tool in self._tools
                )
            )
        return found

    def _arguments(self, tool: Tool) -> ArgumentsNode:
        found = self._made.get(tool.name)
        if found is None:
            found = self._made[tool.name] = self._new_arguments(tool)
        return found

    def _new_arguments(self, tool: Tool) -> ArgumentsNode:
        style = self._form.arguments
        if isinstance(style, JsonArguments):
            return Json(tool, style)
        if isinstance(style, PythonArguments):
            return Keywords(tool, style)
        atoms = self._form.parameter_atoms()
        at = next(n for n, one in enumerate(atoms) if isinstance(one, Hole) and one.kind == "value")
        return Tagged(tool, style, atoms[:at], atoms[at + 1 :])

    # -- texts ---------------------------------------------------------------------------------

    def _text(self, text: str) -> Node:
        return sequence(*self._atoms(loose_text(text)))

    def _written(
        self, atoms: Sequence[Atom], tool: Tool | None = None, count: int | None = None
    ) -> list[Node]:
        """The nodes of a part of a call."""
        nodes = self._atoms(atoms, tool, count)
        if not self._exact:
            return nodes
        fixed = [Text(one.text) if isinstance(one, Space) else one for one in nodes]
        return [one for one in fixed if one != Text("")]

    def _atoms(
        self, atoms: Sequence[Atom], tool: Tool | None = None, count: int | None = None
    ) -> list[Node]:
        nodes: list[Node] = []
        for number, atom in enumerate(atoms):
            if isinstance(atom, SpaceAtom):
                nodes.append(Space(atom.text))
            elif not isinstance(atom, Hole):
                nodes.append(Text(atom.text))
            elif atom.kind == "index":
                nodes.append(self._number(count))
            elif atom.kind == "name" and tool is not None:
                nodes.append(Text(self._name(tool, atom, atoms[number + 1 :])))
            else:
                nodes.append(Symbols(_LETTERS + _DIGITS, _ID_LENGTH, _ID_LENGTH))
        return nodes

    def _number(self, count: int | None) -> Node:
        """The number of a call behind `count` others: `_COUNTED` stands for that many or more."""
        number = None if count is None else count + self._form.first_index
        if count is not None and count < _COUNTED:
            return Text(str(number))
        longer = Chain((Symbols(_DIGITS[1:], 1, 1), Symbols(_DIGITS, 0, 8)))
        if number is None or number > 9:
            return Choice((Text("0"), longer))
        two = Chain((Symbols(_DIGITS[1:], 1, 1), Symbols(_DIGITS, 1, 8)))
        return Choice((Symbols(_DIGITS[number:], 1, 1), two))

    @staticmethod
    def _name(tool: Tool, hole: Atom, behind: Sequence[Atom]) -> str:
        """The name as it is written.  Raises ToolFormatError where it would not be read back."""
        if isinstance(hole, Hole) and hole.json:
            return json.dumps(tool.name, ensure_ascii=False)[1:-1]
        stop = "" if not behind or isinstance(behind[0], Hole) else behind[0].text
        unreadable = any(char in '<>"' or char.isspace() for char in tool.name)
        if unreadable or (stop and stop in tool.name):
            raise ToolFormatError(f"the name {tool.name!r} cannot be written in it", field="call")
        return tool.name


def sequence(*parts: Node) -> Chain:
    """One after the other; chains are opened, neighbouring spaces are one."""
    flat: list[Node] = []
    for one in parts:
        for part in one.parts if isinstance(one, Chain) else (one,):
            if isinstance(part, Space) and flat and isinstance(flat[-1], Space):
                flat[-1] = Space(flat[-1].text + part.text)
            else:
                flat.append(part)
    return Chain(tuple(flat))
