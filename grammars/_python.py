"""Python's grammar from rules over tokens: `python.lark` tells how these are written.

Lark's own answer to indentation and to line ends inside of brackets is code that runs behind its
lexer. Here both are in the grammar: every rule is made once for the outside of brackets and once for
the inside, and rules with lines in them once for each level of indentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from constrain.errors import ConstrainError
from constrain.grammars._templates import pruned

__all__ = ["expression", "program"]

_MAX_DEPTH = 20
_INDENT = 4
_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|/(?:\\.|[^/\\])+/|\w+|[()|*+?]')
_DEFINITION = re.compile(r"(\w+)(\{[^}]*\})?: *(.*)|(\w+) = (.*)", re.DOTALL)
_DEEPER = ("block", "cases")
_OPENING = ('"("', '"["', '"{"')
_CLOSING = ('")"', '"]"', '"}"')


def program(source: str, depth: int = 4) -> str:
    """Python: a module, or a part of one, of Python 3.10 and later.

    Reads all statements and expressions; blocks are indented by four blanks a level.
    Parameter depth=4: how many levels of blocks there may be (0 to 20); blocks on the line of their
    colon do not count.
    Leaves out: other indentation, type statements and parameters, except*, parentheses around the
    items of `with`, `match` on several subjects, sums as patterns, stars in subscripts; in strings
    \\N{...}; in the fields of format strings all but names, numbers, strings, arithmetic, calls and
    items; format strings that are raw or joined to bytes; letters of names beyond Latin, Greek,
    Cyrillic, kana and common ideographs; carriage returns and form feeds; key words without white space before them
    behind brackets and strings. What Python's compiler
    refuses although its parser accepts it (a return outside of functions) is accepted.
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= _MAX_DEPTH:
        raise ConstrainError(f"depth: expected a number from 0 to {_MAX_DEPTH}, found {depth!r}")
    return _Writer(source, depth).grammar("program")


def expression(source: str) -> str:
    """Python expressions: what `eval` takes, of Python 3.10 and later.

    Reads all operators, calls, subscripts, displays, comprehensions, lambdas, conditions, numbers,
    strings, bytes and format strings; inside of brackets line ends and comments.
    Leaves out: stars in subscripts; in strings \\N{...}; in the fields of format strings all but
    names, numbers, strings, arithmetic, calls and items; format strings that are raw or joined to
    bytes; letters of names beyond Latin, Greek, Cyrillic, kana and common ideographs; carriage
    returns and form feeds; key words without white space before them behind brackets and strings, as in
    (a)if b else c.
    """
    return _Writer(source, 0).grammar("expressions")


@dataclass(frozen=True, slots=True)
class _Place:
    """A rule as it is used: inside of brackets or not, and at which level of indentation."""

    name: str
    inside: bool
    level: int | None  # None: the rule has no lines

    def __str__(self) -> str:
        where = "in" if self.inside else "out"
        return f"{self.name}_{where}" + ("" if self.level is None else f"_{self.level}")


class _Writer:
    """Writes a grammar in Lark's syntax."""

    def __init__(self, source: str, depth: int) -> None:
        self.depth = depth
        self.rules: dict[str, list[list[str]]] = {}
        self.tokens: dict[str, str] = {}
        self.macros: dict[str, str] = {}
        self.symbols: dict[str, str] = {}
        self.used: dict[str, str] = {}
        rules, self.verbatim = source.split("// -- verbatim ")
        for name, _, body, macro, value in self.lines(rules):
            if macro:
                self.macros[macro] = value
            elif name.lstrip("_").isupper():
                self.tokens[name] = body
            else:
                self.rules[name] = _options(body)
        kept = []
        for name, parameters, body, macro, value in self.lines("// " + self.verbatim):
            if macro:
                self.macros[macro] = value
            else:
                kept.append((name, f"{name}{parameters}: {body}"))
        self.verbatim_names = {name for name, _ in kept}
        self.verbatim = "\n".join(line for _, line in kept)
        self.with_lines = self.callers({"_LINE"})

    @staticmethod
    def lines(text: str) -> Iterator[tuple[str, ...]]:
        """Definitions: name, template parameters and body, or name and value of a macro."""
        for line in re.sub(r"\n +", " ", text).split("\n"):
            if line and not line.startswith("//"):
                match = _DEFINITION.fullmatch(line)
                if match is None:
                    raise ConstrainError(f"python.lark: this is no definition: {line!r}")
                yield tuple(part or "" for part in match.groups())

    def callers(self, names: set[str]) -> set[str]:
        """The rules that have one of these names, or one of the rules found, in them."""
        found: set[str] = set()
        while True:
            more = {
                rule
                for rule, options in self.rules.items()
                if any((names | found).intersection(option) for option in options)
            }
            if more == found:
                return found
            found = more

    def grammar(self, start: str) -> str:
        """The whole text, for a start rule."""
        first = self.place(start, False, 0)
        done: dict[_Place, list[list[_Place | str]]] = {}
        todo = [first]
        while todo:
            place = todo.pop()
            if place in done:
                continue
            done[place] = [list(self.pieces(option, place)) for option in self.rules[place.name]]
            for option in done[place]:
                todo += [p for p in option if isinstance(p, _Place) and self.exists(p)]
        lines = [f"start: {first}", ""]
        for place, options in _alive(done).items():
            lines.append(f"{place}: " + "\n    | ".join(" ".join(map(str, o)) for o in options))
        lines += ["", *(f"{name}: {body}" for name, body in self.used.items())]
        known = self.verbatim_names | set(self.used)
        needed = [name for name in self.tokens if name not in known and name[0] != "_"]
        lines += [f"{name}: {self.tokens[name]}" for name in needed]
        lines += [f"{name}: /<{name}>*/" for name in ("OUTSIDE", "INSIDE")]
        return self.expanded(pruned("\n".join([*lines, "", self.verbatim, ""])))

    def place(self, name: str, inside: bool, level: int) -> _Place:
        if name not in self.with_lines:
            return _Place(name, inside, None)
        return _Place(name, False, level + (name in _DEEPER))

    def exists(self, place: _Place) -> bool:
        return place.level is None or place.level <= self.depth

    def pieces(self, option: list[str], place: _Place) -> Iterator[_Place | str]:
        """The pieces of a rule's option, with white space behind tokens."""
        level = place.level or 0
        brackets = 0
        for piece in option:
            if piece[0] in "()|*+?":
                yield piece
            elif piece in self.rules:
                yield self.place(piece, place.inside or brackets > 0, level)
            elif piece[0] == "_":
                yield self.raw(piece, place.inside or brackets > 0, level)
            else:
                brackets += (piece in _OPENING) - (piece in _CLOSING)
                yield self.token(piece, place.inside or brackets > 0)

    def raw(self, name: str, inside: bool, level: int) -> str:
        """A token behind which there is no white space."""
        if name == "_GAP":
            return self.space(inside)
        body = self.tokens[name]
        if "<INDENT>" in body:
            name, body = f"{name}_{level}", body.replace("<INDENT>", " " * (_INDENT * level))
        self.used[name] = body
        return name

    def token(self, piece: str, inside: bool) -> str:
        """The name of a token with white space behind it (a rule made of tokens for `format`)."""
        name = body = piece
        if piece[0] == '"':
            word = piece[1:-1]
            if word.isidentifier():
                name, body = f"KEY_{word.upper()}", f"/{word}\\b/"
            else:
                name = self.symbols.setdefault(piece, f"SIGN_{len(self.symbols)}")
        elif piece in self.verbatim_names:
            # A rule: white space is a token of its own there.
            return f"{piece} {self.space(inside)}?"
        name = f"{name}_IN" if inside else f"{name}_OUT"
        self.used[name] = f"({body}) {'INSIDE' if inside else 'OUTSIDE'}"
        return name

    def space(self, inside: bool) -> str:
        """The name of a token of white space alone."""
        name = "SPACE_IN" if inside else "SPACE_OUT"
        self.used[name] = "/<INSIDE>+/" if inside else "/<OUTSIDE>+/"
        return name

    def expanded(self, text: str) -> str:
        """The text with its macros replaced."""
        while True:
            again = re.sub(r"<([A-Z_]+)>", lambda found: self.macros[found[1]], text)
            if again == text:
                return text
            text = again


def _options(body: str) -> list[list[str]]:
    """The options of a rule's body, as pieces."""
    options: list[list[str]] = [[]]
    nesting = 0
    for piece in _PIECE.findall(body):
        nesting += (piece == "(") - (piece == ")")
        if piece == "|" and not nesting:
            options.append([])
        else:
            options[-1].append(piece)
    return options


def _alive(
    rules: dict[_Place, list[list[_Place | str]]],
) -> dict[_Place, list[list[_Place | str]]]:
    """The rules without options that refer to a rule without options."""
    while True:
        left = {
            place: [
                option
                for option in options
                if all(isinstance(p, str) or rules.get(p) for p in option)
            ]
            for place, options in rules.items()
        }
        left = {place: options for place, options in left.items() if options}
        if left == rules:
            return left
        rules = left
