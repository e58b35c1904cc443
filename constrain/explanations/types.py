"""What an explanation consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Explanation", "Place", "Reason", "Refusal", "shown"]

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a byte is refused.

    ``kind``: "keyword" (of a JSON Schema, with `pointer`, `keyword` and `value`), "policy" (an
    option of `constrain.JsonSchema`, named by `keyword`), "syntax" (JSON itself), "grammar" (no rule
    reads it), "pattern", "choice", "end" (the text may not end here), "budget" (too few tokens are
    left) or "special" (a token that writes no text is not asked for).
    """

    kind: str
    message: str
    pointer: str | None = None
    keyword: str | None = None
    value: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is left out."""
        found = {"kind": self.kind, "message": self.message}
        if self.pointer is not None:
            found["pointer"] = self.pointer
        if self.keyword is not None:
            found["keyword"] = self.keyword
        if self.kind == "keyword":
            found["value"] = self.value
        return found


@dataclass(frozen=True, slots=True)
class Place:
    """Where the constraint stands: a schema, a rule of a grammar, a pattern or a list of choices.

    ``kind``: "schema", "rule", "pattern" or "choice".  Of a schema: `pointer` is the JSON pointer of
    the schema, `instance` that of the value in the text that is read, `role` what of it is read
    ("value", "key", "colon", "next", "end").  Of a rule: its `name`, and `line` and `column` in its
    grammar where they are known; `role` is what is being read in it (a terminal).  `inside` names
    what is around it: the rule or the tool whose text the JSON is.
    """

    kind: str
    name: str = ""
    pointer: str | None = None
    instance: str | None = None
    role: str = ""
    line: int | None = None
    column: int | None = None
    inside: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is left out."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value not in (None, "")} | (
            {"pointer": self.pointer, "instance": self.instance} if self.kind == "schema" else {}
        )

    def __str__(self) -> str:
        where = f" in {self.inside}" if self.inside else ""
        if self.kind == "schema":
            value = f"the value at {self.instance}" if self.instance else "the whole value"
            what = {"key": "a property name of ", "colon": "behind the name of ", "next": "in "}
            said = f"{what.get(self.role, '')}{value}"
            return f"schema {self.pointer or 'root'}: {said}{where}"
        if self.kind == "rule":
            line = "" if self.line is None else f" (line {self.line}, column {self.column})"
            return f"rule {self.name}{line}: {self.role}{where}"
        return f"{self.kind} {self.name}{where}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a token is not allowed.

    ``token_id`` is None where a text was asked about.  ``text``: what the token writes (None: no
    text).  ``read``: how much of it could be read.  ``byte``: the byte behind that, which is refused
    (None: it is the end that is).  ``expected``: what may stand there.
    """

    token_id: int | None
    text: bytes | None
    read: bytes
    byte: int | None
    expected: str
    reasons: tuple[Reason, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; bytes as text, with escapes where they are no UTF-8."""
        return {
            "token_id": self.token_id,
            "text": None if self.text is None else _plain(self.text),
            "read": _plain(self.read),
            "byte": self.byte,
            "expected": self.expected,
            "reasons": [reason.to_dict() for reason in self.reasons],
        }

    def __str__(self) -> str:
        name = "the text" if self.token_id is None else f"token {self.token_id}"
        if self.text is not None and self.token_id is not None:
            name += f" {shown(self.text)}"
        said = f"{name} is not allowed"
        if self.byte is not None and self.text is not None:
            behind = f" behind {shown(self.read[-_SHOWN:])}" if self.read else ""
            said += f": {shown(bytes((self.byte,)))}{behind} is refused"
        lines = [said, f"  expected: {self.expected}"]
        return "\n".join(lines + [f"  because: {reason.message}" for reason in self.reasons])


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a sequence stands, what may come next, and why a token may not.

    ``text``: what was read so far, special tokens by their spelling (`Vocabulary.token_bytes`).
    ``expected``: what may come next, for people.  ``next_bytes``: the same exactly, as ranges of
    bytes, both ends included; the byte FF stands for special tokens.  ``forced``: the text that has
    no alternative from here.  ``completion``: a short text that would complete this one, or None.
    ``literals``: names, constants and words that are read or may begin here, each as a whole; those
    that the schema or grammar lists, some dozens at most.
    ``is_accepting``: the text is valid as it is.  ``places``: where in the constraint this is, the
    most general first.  ``refusal``: why the token (or text) that was asked about is not allowed;
    None if it is, or none was asked about.
    """

    text: bytes
    expected: str
    next_bytes: tuple[tuple[int, int], ...]
    forced: bytes
    completion: bytes | None
    is_accepting: bool
    places: tuple[Place, ...]
    literals: tuple[bytes, ...] = ()
    refusal: Refusal | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "text": _plain(self.text),
            "offset": len(self.text),
            "expected": self.expected,
            "next_bytes": [list(pair) for pair in self.next_bytes],
            "forced": _plain(self.forced),
            "literals": [_plain(literal) for literal in self.literals],
            "completion": None if self.completion is None else _plain(self.completion),
            "is_accepting": self.is_accepting,
            "places": [place.to_dict() for place in self.places],
            "refusal": None if self.refusal is None else self.refusal.to_dict(),
        }

    def __str__(self) -> str:
        before = shown(self.text[-_SHOWN:]) if self.text else "nothing"
        if len(self.text) > _SHOWN:
            before = "..." + before
        state = ", which is valid as it is" if self.is_accepting else ""
        lines = [f"at byte {len(self.text)}, behind {before}{state}", f"  next: {self.expected}"]
        if self.forced:
            lines.append(f"  no alternative to: {shown(self.forced)}")
        if self.literals:
            lines.append(f"  such as: {', '.join(map(shown_literal, self.literals))}")
        if self.completion and not self.is_accepting:
            lines.append(f"  a short way to its end: {shown(self.completion)}")
        lines += [f"  in {place}" for place in self.places]
        if self.refusal is not None:
            lines += str(self.refusal).splitlines()
        return "\n".join(lines)


def shown(data: bytes) -> str:
    """Bytes for people: quoted, what is no UTF-8 as escapes."""
    return repr(data.decode(errors="backslashreplace"))


def shown_literal(data: bytes) -> str:
    """A word as it is written; quoted where that could not be read."""
    text = data.decode(errors="backslashreplace")
    return text if text.isprintable() and text.strip() == text else repr(text)


def _plain(data: bytes) -> str:
    return data.decode(errors="backslashreplace")
