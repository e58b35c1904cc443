"""Constraints made of constraints: `Sequence`, `OneOf`, `Repeat`, `Text`, `Token`, `TokenRange`.

A *part* is a str (which means itself) or any spec::

    call = constrain.Sequence("<call>", constrain.JsonSchema(schema), "</call>")
    thought = constrain.Sequence("<think>", constrain.Text(until="</think>"))
    spec = constrain.Sequence(constrain.Repeat(thought, 0, 1), constrain.Repeat(call, 1))

A part's language is its own: what a Lark grammar ignores is ignored within that grammar, a
pattern's anchors and lookaheads see the pattern's text alone, and a text may be read as the parts
in every way there is.  JSON keeps its options, white space around the value included.

Specs here are immutable values, equal by content.  Where a token is asked for, the program depends
on the vocabulary: `constrain.compile` asks `program_for` with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError, LimitExceededError
from constrain.parts import GrammarSpec, Part, Size, check_parts, checked_text

if TYPE_CHECKING:
    from constrain.grammar.builder import GrammarBuilder
    from constrain.grammar.ir import Expression

__all__ = ["OneOf", "Repeat", "Sequence", "Text", "Token", "TokenRange"]

_MAX_REPEAT = 100_000
_SHOWN = 300


def _shown(parts: Iterable[object]) -> str:
    """Parts for a repr, cut where it gets long."""
    found: list[str] = []
    total = 0
    for part in parts:
        text = repr(part)
        total += len(text)
        if found and total > _SHOWN:
            found.append("...")
            break
        found.append(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
    return ", ".join(found)


class _Parts(GrammarSpec):
    """A constraint of several parts."""

    __slots__ = ("_size", "parts")

    parts: tuple[Part, ...]
    _size: Size

    def __init__(self, *parts: Part) -> None:
        name = type(self).__name__
        size = check_parts(parts, name, parts)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "_size", size)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._size == other._size and self.parts == other.parts

    def __hash__(self) -> int:
        return self._size.hash

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self.parts)})"


class Sequence(_Parts):
    """One part after the other; of no part: the empty text.

    Args:
        parts: strings and specs.

    Raises ConstrainError for what is no part, LimitExceededError beyond 100 levels or 100,000
    parts.
    """

    __slots__ = ()

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        found: list[Expression] = []
        literal = ""
        for part in (*self.parts, None):
            if isinstance(part, str):
                literal += part
                continue
            if literal:
                found.append(builder.literal(literal.encode()))
                literal = ""
            if part is not None:
                found.append(builder.part(part))
        return found[0] if len(found) == 1 else ("seq", tuple(found))


class OneOf(_Parts):
    """Any of the parts, at least one.

    Args:
        parts: strings and specs.

    Raises as `Sequence`, and ConstrainError if there is no part.
    """

    __slots__ = ()

    def __init__(self, *parts: Part) -> None:
        super().__init__(*parts)
        if not parts:
            raise ConstrainError("OneOf needs at least one part")

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        found = tuple(dict.fromkeys(builder.part(part) for part in self.parts))
        return found[0] if len(found) == 1 else ("alt", found)


@dataclass(frozen=True, slots=True, repr=False)
class Repeat(GrammarSpec):
    """A part, some number of times.

    Args:
        part: a str or a spec.
        min: at least so often.
        max: at most so often; None for no bound.
        separator: what stands between two of them.

    Raises ConstrainError for impossible numbers or what is no part, LimitExceededError for numbers
    above 100,000.
    """

    part: Part
    min: int = 0
    max: int | None = None
    separator: Part | None = None
    _size: Size = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("min", self.min), ("max", self.max)):
            if value is None and name == "max":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConstrainError(f"Repeat: {name} must be a number, found {value!r}")
            if value > _MAX_REPEAT:
                raise LimitExceededError(
                    f"Repeat: {name} is {value}, more than {_MAX_REPEAT}", limit="repeat"
                )
        if self.max is not None and self.max < self.min:
            raise ConstrainError(f"Repeat: max {self.max} is smaller than min {self.min}")
        parts = (self.part,) if self.separator is None else (self.part, self.separator)
        content = (*parts, self.min, self.max, self.separator is None)
        object.__setattr__(self, "_size", check_parts(parts, "Repeat", content))

    def __hash__(self) -> int:
        return self._size.hash

    def __repr__(self) -> str:
        text = _shown([self.part])
        if self.max is not None or self.min:
            text += f", {self.min}" if self.max is None else f", {self.min}, {self.max}"
        if self.separator is not None:
            text += f", separator={_shown([self.separator])}"
        return f"Repeat({text})"

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        item = builder.part(self.part)
        if self.separator is None or self.max == 0:
            return ("repeat", item, self.min, self.max)
        rest = None if self.max is None else self.max - 1
        more = ("seq", (builder.part(self.separator), builder.part(self.part)))
        some = ("seq", (item, ("repeat", more, max(self.min - 1, 0), rest)))
        return ("repeat", some, 0, 1) if self.min == 0 else some


@dataclass(frozen=True, slots=True, repr=False)
class Token(GrammarSpec):
    """One token of the vocabulary, by its id or its name (``Token("<|im_end|>")``).

    A token that writes text means that text, however it is cut into tokens; a special token means
    itself.

    Args:
        reference: the id or the name.

    Raises ConstrainError for anything else; TokenizerError (by `program_for`) if the vocabulary
    lacks it.
    """

    reference: int | str

    def __post_init__(self) -> None:
        found = self.reference
        if isinstance(found, str):
            if not checked_text(found, "the name of a token"):
                raise ConstrainError("the name of a token is not empty")
        elif isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise ConstrainError(f"a token is named by its id or its name, found {found!r}")

    def __repr__(self) -> str:
        return f"Token({self.reference!r})"

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        return builder.token(self.reference)


@dataclass(frozen=True, slots=True, repr=False)
class TokenRange(GrammarSpec):
    """One token of a range of ids, both ends included: audio tokens of a speech model, say.

    Tokens of the range that write text mean their text.

    Raises ConstrainError for what is no range; TokenizerError (by `program_for`) if the vocabulary
    has fewer ids.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        for value in (self.first, self.last):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConstrainError(f"TokenRange: an id is a number, found {value!r}")
        if self.last < self.first:
            raise ConstrainError(f"TokenRange: {self.last} is smaller than {self.first}")

    def __repr__(self) -> str:
        return f"TokenRange({self.first}, {self.last})"

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        return builder.ids(((self.first, self.last),))


class Text(GrammarSpec):
    """Free text.

    Args:
        until: a str or `Token`, or several: the text ends with one of them, at the first place
            where one occurs, however it is cut into tokens.  None: the text ends anywhere.
        max_chars: at most so many code points (without what ends the text).
        excluding: a str, or several, that occur nowhere in the text.

    A text has no special token but the one that ends it, and may be empty.

    Raises ConstrainError for malformed arguments, or an `until` in which something of `excluding`
    occurs; LimitExceededError (by `program_for`) if the bound needs too many states.
    """

    __slots__ = ("excluding", "max_chars", "until")

    until: tuple[str | Token, ...]
    max_chars: int | None
    excluding: tuple[str, ...]

    def __init__(
        self,
        *,
        until: str | Token | Iterable[str | Token] | None = None,
        max_chars: int | None = None,
        excluding: str | Iterable[str] = (),
    ) -> None:
        put = object.__setattr__
        stops = _listed(until, "until", (str, Token)) if until is not None else ()
        if until is not None and not stops:
            raise ConstrainError("Text: until names no text: leave it out, or give one")
        put(self, "until", stops)
        if max_chars is not None and (
            isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 0
        ):
            raise ConstrainError(f"Text: max_chars must be a number, found {max_chars!r}")
        put(self, "max_chars", max_chars)
        put(self, "excluding", _listed(excluding, "excluding", (str,)))
        for stop in stops:
            _check_stop(stop, stop, self.excluding)

    def _key(self) -> tuple[Any, ...]:
        return self.until, self.max_chars, self.excluding

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Text):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Text cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Text cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return _text, self._key()

    def __repr__(self) -> str:
        found = []
        for name, several in (("until", self.until), ("excluding", self.excluding)):
            if several:
                found.append(f"{name}={several[0]!r}" if len(several) == 1 else f"{name}={several}")
        if self.max_chars is not None:
            found.insert(1 if self.until else 0, f"max_chars={self.max_chars}")
        return f"Text({', '.join(found)})"

    def expression(self, builder: GrammarBuilder) -> Expression:
        """See `GrammarSpec.expression`."""
        from constrain.grammar.texts import free_terminal

        stops = []
        for stop in self.until:
            if isinstance(stop, str):
                stops.append(stop.encode())
                continue
            data = builder.token_text(stop.reference)
            if data[0] < 0x80 or data[0] < 0xF8:
                try:
                    _check_stop(stop, data.decode(), self.excluding)
                except UnicodeDecodeError:
                    raise ConstrainError(
                        f"{stop!r} writes {data!r}, a piece of a character, which ends no text"
                    ) from None
            stops.append(data)
        excluded = tuple(text.encode() for text in self.excluding)
        terminal = free_terminal(repr(self), tuple(stops), excluded, self.max_chars)
        found = builder.terminal(terminal)
        return found if stops else ("repeat", found, 0, 1)


def _text(until: Any, max_chars: int | None, excluding: Any) -> Text:
    return Text(until=until or None, max_chars=max_chars, excluding=excluding)


def _listed(value: Any, name: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    """One or several texts (or tokens), without repetitions."""
    expected = "a str" if kinds == (str,) else "a str or a Token"
    if isinstance(value, kinds):
        value = (value,)
    elif isinstance(value, bytes) or not isinstance(value, Iterable):
        raise ConstrainError(f"Text: {name} is {expected}, or several, found {value!r}")
    found = tuple(value)
    for one in found:
        if not isinstance(one, kinds):
            raise ConstrainError(f"Text: {name} is {expected}, or several, found {one!r} in it")
        if isinstance(one, str) and not checked_text(one, f"Text: {name}"):
            raise ConstrainError(f"Text: {name} has the empty text, which occurs everywhere")
    return tuple(dict.fromkeys(found))


def _check_stop(stop: str | Token, text: str | Token, excluding: tuple[str, ...]) -> None:
    """A stop in which an excluded text occurs can never be reached."""
    if isinstance(text, str):
        for other in excluding:
            if other in text:
                raise ConstrainError(f"Text: until={stop!r} has {other!r} in it, which is excluded")
