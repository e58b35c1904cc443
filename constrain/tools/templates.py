"""Templates of calls and parameters: text with holes, as atoms that can be read and written.

A template is text with holes ``$name``, ``$id``, ``$index``, ``$arguments`` (of a call) or ``$key``,
``$value``, ``$type``, ``$string`` (of a tagged parameter); ``$$`` is a dollar sign.  As atoms:

``Literal``  exactly this text
``Space``    written as its text, read as any whitespace or none
``Hole``     what varies; ``json`` where it stands inside a JSON string

Where a template is JSON around its holes (``{"name": "$name", "arguments": $arguments}``) the
whitespace between JSON tokens is `Space`, as is whitespace at the borders of other literals.  In the
templates of tagged parameters whitespace is part of the value's delimiters and stays literal.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from constrain.tools.errors import ToolFormatError

__all__ = ["Atom", "Hole", "Literal", "Space", "compile_template", "split_at", "strip_spaces"]


class Literal(NamedTuple):
    """Exactly this text."""

    text: str


class Space(NamedTuple):
    """Written as this text, read as any whitespace or none."""

    text: str


class Hole(NamedTuple):
    """A place for what varies; with ``json`` it is inside the quotes of a JSON string."""

    kind: str
    json: bool = False


Atom: TypeAlias = Literal | Space | Hole

_HOLE = re.compile(r"\$(\$|\{\w+\}|\w+)?")
_SPACES = re.compile(r"\s+")


def split_template(template: str, holes: frozenset[str], field: str) -> list[str | Hole]:
    """Text and holes in turn.  Raises ToolFormatError for a hole that is none of `holes`."""
    pieces: list[str | Hole] = []
    text, at = "", 0
    for found in _HOLE.finditer(template):
        text += template[at : found.start()]
        at = found.end()
        name = (found.group(1) or "").strip("{}")
        if name == "$":
            text += "$"
            continue
        if name not in holes:
            # "$nameX" is the hole $name before other letters only with braces
            known = ", ".join("$" + hole for hole in sorted(holes))
            raise ToolFormatError(
                f"unknown hole {found.group(0)!r} (holes are {known}; $$ is a dollar sign)",
                field=field,
            )
        if text:
            pieces.append(text)
        text = ""
        pieces.append(Hole(name))
    text += template[at:]
    if text:
        pieces.append(text)
    return pieces


@lru_cache(maxsize=1024)
def compile_template(
    template: str, holes: frozenset[str], field: str, exact: bool = False
) -> tuple[Atom, ...]:
    """The atoms of a template.

    Args:
        template: the text with holes.
        holes: the names of holes that may occur.
        field: where the template stands, for errors.
        exact: take all whitespace literally and look for no JSON.

    Raises ToolFormatError.
    """
    pieces = split_template(template, holes, field)
    if exact:
        return tuple(Literal(piece) if isinstance(piece, str) else piece for piece in pieces)
    region = _json_region(pieces)
    atoms: list[Atom] = []
    at, quoted = 0, False
    for piece in pieces:
        width = len(_stand_in(piece))
        if isinstance(piece, Hole):
            atoms.append(Hole(piece.kind, quoted))
        elif region is None or at + width <= region[0] or at >= region[1]:
            atoms.extend(_loose(piece))
        else:
            low, high = max(region[0] - at, 0), min(region[1] - at, width)
            atoms.extend(_loose(piece[:low]))
            inner, quoted = _json_atoms(piece[low:high], quoted)
            atoms.extend(inner)
            atoms.extend(_loose(piece[high:]))
        at += width
    return _joined(atoms)


def _stand_in(piece: str | Hole) -> str:
    if isinstance(piece, str):
        return piece
    return {"arguments": "null", "index": "0"}.get(piece.kind, "n")


def _json_region(pieces: list[str | Hole]) -> tuple[int, int] | None:
    """The part of the template that is one JSON object around its arguments, if there is one."""
    if Hole("arguments") not in pieces:
        return None
    plain = "".join(map(_stand_in, pieces))
    inside = sum(len(_stand_in(piece)) for piece in pieces[: pieces.index(Hole("arguments"))])
    decoder = json.JSONDecoder()
    at = plain.find("{")
    while 0 <= at < inside:
        try:
            _, end = decoder.raw_decode(plain, at)
        except ValueError:
            end = -1
        if end > inside:
            return at, end
        at = plain.find("{", at + 1)
    return None


def _loose(text: str) -> list[Atom]:
    """Literal text whose whitespace is free, except between two words."""
    atoms: list[Atom] = []
    at = 0
    for found in _SPACES.finditer(text):
        start, end = found.span()
        if start > 0 and end < len(text) and text[start - 1].isalnum() and text[end].isalnum():
            continue
        if text[at:start]:
            atoms.append(Literal(text[at:start]))
        atoms.append(Space(found.group()))
        at = end
    if text[at:]:
        atoms.append(Literal(text[at:]))
    return atoms


def _json_atoms(text: str, quoted: bool) -> tuple[list[Atom], bool]:
    """The JSON tokens of a part of a JSON text; `quoted`: it begins inside a string."""
    atoms: list[Atom] = []
    current, escaped, space = "", False, ""
    for char in text:
        if quoted:
            current += char
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
                atoms.append(Literal(current))
                current = ""
        elif char.isspace():
            space += char
        else:
            atoms.append(Space(space))
            space = ""
            if char == '"':
                current, quoted = char, True
            else:
                atoms.append(Literal(char))
    if current:
        atoms.append(Literal(current))
    if not quoted:
        atoms.append(Space(space))
    return atoms, quoted


def _joined(atoms: list[Atom]) -> tuple[Atom, ...]:
    """Adjacent spaces as one; adjacent literals stay apart where a space is between them."""
    result: list[Atom] = []
    for atom in atoms:
        last = result[-1] if result else None
        if isinstance(atom, Space) and isinstance(last, Space):
            result[-1] = Space(last.text + atom.text)
        elif isinstance(atom, Literal) and isinstance(last, Literal):
            result[-1] = Literal(last.text + atom.text)
        else:
            result.append(atom)
    return tuple(result)


def join(*parts: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """The atoms of all parts in turn."""
    return _joined([atom for part in parts for atom in part])


def split_at(atoms: tuple[Atom, ...], kind: str) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
    """The atoms before and after the only hole of a kind."""
    for at, atom in enumerate(atoms):
        if isinstance(atom, Hole) and atom.kind == kind:
            return atoms[:at], atoms[at + 1 :]
    raise ToolFormatError(f"there is no ${kind} hole")


def strip_spaces(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """Without spaces at the ends."""
    low, high = 0, len(atoms)
    while low < high and isinstance(atoms[low], Space):
        low += 1
    while high > low and isinstance(atoms[high - 1], Space):
        high -= 1
    return atoms[low:high]
