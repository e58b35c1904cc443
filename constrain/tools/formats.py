"""Tool-call formats as data: how a model family writes calls.

A message of a model is, in this order: reasoning (if the format has it), prose, and calls::

    reasoning.begin ... reasoning.end   text.begin ... text.end
    after_text begin call separator call separator call end

`ToolFormat` says what these texts are.  It is frozen, hashable, compared by value and goes to and
from plain JSON (`to_dict`, `from_dict`), so a format can be written by hand, kept in a file, or
inferred from a chat template (`constrain.tools.inference`).  One description serves the constraint
(`constrain.tools.language`), the parser and the renderer.

The three styles of arguments are `JsonArguments`, `TaggedArguments` and `PythonArguments`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from constrain.tools.errors import ToolFormatError
from constrain.tools.templates import Atom, Hole, Literal, Space, compile_template, join, split_at

__all__ = [
    "ArgumentStyle",
    "JsonArguments",
    "PythonArguments",
    "Section",
    "TaggedArguments",
    "ToolFormat",
]

_CALL_HOLES = frozenset({"name", "id", "index", "arguments"})
_PARAMETER_HOLES = frozenset({"key", "value", "type", "string"})


@dataclass(frozen=True, slots=True)
class JsonArguments:
    """Arguments as one JSON object.

    ``quote`` is what stands for the quotes of a string, which is then raw text up to the next
    ``quote``; keys are then written bare, as in ``{city:<|"|>Oslo<|"|>}``.  ``sorted_keys``: the
    template writes keys in alphabetical order (they are read in any order).  ``whitespace``: where
    the template writes blanks, in the words of `JsonSchema`: "spaced" (one behind each colon and
    comma), "compact" (nowhere) or "bounded" (no rule; any are read in any case).
    """

    quote: str = '"'
    sorted_keys: bool = False
    whitespace: str = "spaced"

    @property
    def is_plain(self) -> bool:
        """Whether the arguments are JSON as it is."""
        return self.quote == '"'


@dataclass(frozen=True, slots=True)
class TaggedArguments:
    """Each argument between tags, strings as raw text.

    ``parameter`` is the template of one argument with ``$key`` and ``$value``, and where the format
    names the type of the value ``$type`` (string, number, boolean, null, array, object) or
    ``$string`` (true for strings, else false).  ``separator`` stands between arguments.

    ``values`` says how values that are no strings are written: "json", "python" (``True``,
    ``{'a': 1}``) or "nested" (members of an object and items of an array as parameters again, items
    under the key ``item``).  ``cdata``: strings may stand in ``<![CDATA[...]]>``.

    A string ends at the first text after ``$value`` that is followed by another argument or by the
    end of the call, so that a lone closing tag inside a string does no harm.
    """

    parameter: str = "<parameter=$key>\n$value\n</parameter>\n"
    separator: str = ""
    values: str = "json"
    cdata: bool = False


@dataclass(frozen=True, slots=True)
class PythonArguments:
    """Arguments as Python keywords: ``city='Oslo', days=2``.

    ``strings``: "escaped" reads the escapes of Python (unknown ones as they are); "raw" takes
    backslashes literally and ends a string where a quote is followed by what may follow a value.
    Inside lists and dicts strings are always escaped.  True, False, None and their JSON spellings
    are both read.
    """

    strings: str = "escaped"


ArgumentStyle: TypeAlias = JsonArguments | TaggedArguments | PythonArguments
_STYLES: dict[str, type] = {
    "json": JsonArguments,
    "tagged": TaggedArguments,
    "python": PythonArguments,
}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the message between two texts: reasoning, or prose where it is marked.

    ``bare_end``: a message without this part may begin with the ``end`` alone.
    """

    begin: str = ""
    end: str = ""
    bare_end: bool = False


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """How one model family writes tool calls.

    ``call``: the template of one call, with ``$name``, ``$arguments`` and, where the format has
    them, ``$id`` and ``$index`` (counted from ``first_index``).

    ``begin``, ``separator``, ``end``: before the first, between two and after the last call.

    ``after_text``: between prose and ``begin``.  Whitespace there is read freely.

    ``text``: how prose is marked, if it is.  ``reasoning``: how a thinking section is marked.

    ``prompted``: what of all this the prompt has already written when the model begins.

    ``stop``: texts that end the message.  ``parallel``: several calls are possible.  ``prose``:
    calls may follow prose; without it a message is either prose or calls, told apart by its first
    characters, which suits formats whose calls have no mark of their own.  ``prose_after``: prose
    may follow the calls as well.

    ``special_tokens``: parts of the texts above that tokenizers of this family have as special
    tokens.  ``variants``: other spellings of ``call`` that are read as well, but never rendered.
    They are written with all that stands before a first call; where that begins with ``begin``, a
    further call has the ``separator`` instead.
    """

    call: str
    arguments: ArgumentStyle = JsonArguments()
    name: str = "custom"
    begin: str = ""
    separator: str = ""
    end: str = ""
    after_text: str = ""
    text: Section | None = None
    reasoning: Section | None = None
    prompted: str = ""
    stop: tuple[str, ...] = ()
    parallel: bool = True
    prose: bool = True
    prose_after: bool = False
    first_index: int = 0
    special_tokens: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for template in (self.call, *self.variants):
            kinds = [atom.kind for atom in self._atoms(template, "call") if isinstance(atom, Hole)]
            if kinds.count("arguments") != 1 or "name" not in kinds:
                raise ToolFormatError(
                    f"needs $name and $arguments, each where it belongs, in {template!r}",
                    field="call",
                )
            if "name" not in kinds[: kinds.index("arguments")]:
                raise ToolFormatError("$name must come before $arguments", field="call")
            _check_holes(self._atoms(template, "call"), "call")
        if isinstance(self.arguments, TaggedArguments):
            self._check_tagged(self.arguments)
        elif isinstance(self.arguments, PythonArguments):
            _check_choice(self.arguments.strings, ("escaped", "raw"), "arguments.strings")
        elif not isinstance(self.arguments, JsonArguments):
            raise ToolFormatError(
                f"must be JsonArguments, TaggedArguments or PythonArguments, "
                f"found {type(self.arguments).__name__}",
                field="arguments",
            )
        elif not self.arguments.quote:
            raise ToolFormatError("a quote cannot be empty", field="arguments.quote")
        else:
            _check_choice(
                self.arguments.whitespace,
                ("spaced", "compact", "bounded"),
                "arguments.whitespace",
            )
        if self.reasoning is not None and not self.reasoning.end.strip():
            raise ToolFormatError("a thinking section needs an end", field="reasoning")
        if any(not text for text in self.stop):
            raise ToolFormatError("a stop text cannot be empty", field="stop")
        first = self.opening(first=True)[0]
        if self.prose and isinstance(first, Hole):
            raise ToolFormatError(
                "calls that follow prose need a text of their own before the name", field="begin"
            )

    def _check_tagged(self, style: TaggedArguments) -> None:
        _check_choice(style.values, ("json", "python", "nested"), "arguments.values")
        atoms = self.parameter_atoms()
        kinds = [atom.kind for atom in atoms if isinstance(atom, Hole)]
        if kinds.count("value") != 1 or "key" not in kinds[: kinds.index("value")]:
            raise ToolFormatError("needs $key before $value", field="arguments.parameter")
        _check_holes(atoms, "arguments.parameter")
        head, tail = split_at(atoms, "value")
        if not tail or not isinstance(tail[0], Literal):
            raise ToolFormatError("needs a text after $value", field="arguments.parameter")
        if not head or not isinstance(head[0], Literal):
            raise ToolFormatError("needs a text before $key", field="arguments.parameter")

    def _atoms(self, template: str, field: str) -> tuple[Atom, ...]:
        return compile_template(template, _CALL_HOLES, field)

    def parameter_atoms(self) -> tuple[Atom, ...]:
        """The atoms of one tagged argument."""
        if not isinstance(self.arguments, TaggedArguments):
            raise ToolFormatError("has no tagged arguments", field="arguments")
        return compile_template(
            self.arguments.parameter, _PARAMETER_HOLES, "arguments.parameter", True
        )

    def opening(self, first: bool, template: str | None = None) -> tuple[Atom, ...]:
        """Everything before the arguments of the first, or of a further call."""
        if template is not None and template != self.call:
            again = not first and self.begin and template.startswith(self.begin)
            text = template[len(self.begin) :] if again else template
            before, _ = split_at(self._atoms(text, "call"), "arguments")
            return join(loose_text(self.separator), before) if again else before
        before, _ = split_at(self._atoms(self.call, "call"), "arguments")
        return join(loose_text(self.begin if first else self.separator), before)

    def closing(self, template: str | None = None) -> tuple[Atom, ...]:
        """Everything after the arguments that belongs to the call."""
        return split_at(self._atoms(template or self.call, "call"), "arguments")[1]

    def ending(self) -> tuple[Atom, ...]:
        """Everything after the last call."""
        return loose_text(self.end)

    # -- as data -----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON values, without what has its default."""
        result: dict[str, Any] = {}
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if one.name == "call" or value != one.default:
                result[one.name] = list(value) if isinstance(value, tuple) else value
        for key in ("text", "reasoning"):
            if key in result and result[key] is not None:
                result[key] = dataclasses.asdict(result[key])
        style = next(key for key, kind in _STYLES.items() if type(self.arguments) is kind)
        result["arguments"] = {"style": style, **dataclasses.asdict(self.arguments)}
        return result

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolFormat:
        """The description that `to_dict` wrote.  Raises ToolFormatError for anything else."""
        known = {one.name for one in dataclasses.fields(cls)}
        values: dict[str, Any] = dict(data)
        for key in values:
            if key not in known:
                raise ToolFormatError("no such part of a format", field=key)
        if "call" not in values:
            raise ToolFormatError("is missing", field="call")
        arguments = values.get("arguments", "json")
        if not isinstance(arguments, (str, Mapping)):
            return cls(**values)
        options = {"style": arguments} if isinstance(arguments, str) else dict(arguments)
        style = _STYLES.get(str(options.pop("style", "json")))
        if style is None:
            raise ToolFormatError(
                f"style must be one of {', '.join(_STYLES)}", field="arguments.style"
            )
        try:
            values["arguments"] = style(**options)
            for key in ("text", "reasoning"):
                if isinstance(values.get(key), Mapping):
                    values[key] = Section(**values[key])
            for key in ("stop", "special_tokens", "variants"):
                if key in values:
                    values[key] = tuple(values[key])
            return cls(**values)
        except TypeError as error:
            raise ToolFormatError(str(error), field="arguments") from error


def loose_text(text: str) -> tuple[Atom, ...]:
    """Literal text, its whitespace free, dollar signs as they are."""
    return compile_template(text.replace("$", "$$"), frozenset(), "text")


def _check_choice(value: object, choices: tuple[str, ...], field: str) -> None:
    if value not in choices:
        raise ToolFormatError(f"must be one of {', '.join(choices)}, found {value!r}", field=field)


def _check_holes(atoms: tuple[Atom, ...], field: str) -> None:
    """Two holes need a text between them, or nobody could tell where one ends."""
    for left, right in pairwise(atoms):
        free = isinstance(left, Hole) and isinstance(right, (Hole, Space))
        if free and left.kind in ("id", "key", "type", "value"):  # type: ignore[union-attr]
            raise ToolFormatError(f"needs a text after ${left.kind}", field=field)  # type: ignore[union-attr]
