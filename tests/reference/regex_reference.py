"""Regular expressions the slow and obvious way: sets of end positions over a syntax tree.

No derivatives, no automata, no parser: the trees are made by the tests, written as patterns with
`render`, and matched here by their definition.  Nodes are tuples:

    ("char", c)  ("dot",)  ("class", negative, ((first, last), ...))  ("escape", letter)
    ("seq", nodes)  ("alt", nodes)  ("repeat", node, least, most or None, lazy)
    ("look", node, negative)  ("behind", node, negative)
    ("caret",)  ("dollar",)  ("boundary", negative)

`dialect` is "ecma" or "python"; they differ in what `.`, `$` and the escapes mean.
"""

from __future__ import annotations

import unicodedata
from typing import Any

Node = tuple[Any, ...]

_SPECIAL = set("\\^$.*+?()[]{}|-/")
_ECMA_SPACE = set("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff") | {
    chr(c) for c in range(0x2000, 0x200B)
}


def render(node: Node) -> str:
    """The pattern of a tree."""
    kind = node[0]
    if kind == "char":
        return "\\" + node[1] if node[1] in _SPECIAL else node[1]
    if kind == "dot":
        return "."
    if kind == "class":
        inside = "".join(
            _class_char(a) if a == b else f"{_class_char(a)}-{_class_char(b)}" for a, b in node[2]
        )
        return f"[{'^' if node[1] else ''}{inside}]"
    if kind == "escape":
        return "\\" + node[1]
    if kind == "seq":
        return "".join(render(n) if n[0] != "alt" else f"(?:{render(n)})" for n in node[1])
    if kind == "alt":
        return "|".join(render(n) if n[0] != "alt" else f"(?:{render(n)})" for n in node[1])
    if kind == "repeat":
        _, inner, least, most, lazy = node
        if (least, most) == (0, None):
            count = "*"
        elif (least, most) == (1, None):
            count = "+"
        elif (least, most) == (0, 1):
            count = "?"
        elif least == most:
            count = f"{{{least}}}"
        else:
            count = f"{{{least},{'' if most is None else most}}}"
        return f"(?:{render(inner)}){count}{'?' if lazy else ''}"
    if kind == "look":
        return f"(?{'!' if node[2] else '='}{render(node[1])})"
    if kind == "behind":
        return f"(?<{'!' if node[2] else '='}{render(node[1])})"
    if kind == "boundary":
        return "\\B" if node[1] else "\\b"
    return {"caret": "^", "dollar": "$"}[kind]


def _class_char(c: str) -> str:
    return "\\" + c if c in _SPECIAL else c


class Matcher:
    """Matches one tree against one text."""

    def __init__(self, text: str, dialect: str) -> None:
        self.text = text
        self.ecma = dialect == "ecma"
        self.memo: dict[tuple[int, int], frozenset[int]] = {}
        self.kept: list[Node] = []  # nodes stay alive, so that their ids stay theirs

    def ends(self, node: Node, at: int) -> frozenset[int]:
        """Where matches of the node that begin at `at` can end."""
        key = (id(node), at)
        known = self.memo.get(key)
        if known is None:
            self.kept.append(node)
            known = self.memo[key] = frozenset(self._ends(node, at))
        return known

    def word(self, at: int) -> bool:
        return 0 <= at < len(self.text) and self.is_word(self.text[at])

    def is_word(self, c: str) -> bool:
        return c == "_" or (c.isalnum() and (c.isascii() or not self.ecma))

    def takes(self, node: Node, c: str) -> bool:
        kind = node[0]
        if kind == "char":
            return c == node[1]
        if kind == "dot":
            return c not in ("\n\r\u2028\u2029" if self.ecma else "\n")
        if kind == "class":
            return any(a <= c <= b for a, b in node[2]) != node[1]
        if kind == "escape":
            letter = node[1].lower()
            if letter == "d":
                inside = c in "0123456789" if self.ecma else unicodedata.category(c) == "Nd"
            elif letter == "w":
                inside = self.is_word(c)
            else:
                inside = c in _ECMA_SPACE if self.ecma else c.isspace()
            return inside != node[1].isupper()
        raise ValueError(kind)

    def _ends(self, node: Node, at: int) -> set[int]:
        kind = node[0]
        size = len(self.text)
        if kind in ("char", "dot", "class", "escape"):
            return {at + 1} if at < size and self.takes(node, self.text[at]) else set()
        if kind == "seq":
            now = {at}
            for n in node[1]:
                now = {end for start in now for end in self.ends(n, start)}
            return now
        if kind == "alt":
            return {end for n in node[1] for end in self.ends(n, at)}
        if kind == "repeat":
            _, inner, least, most, _ = node
            now = {at}
            found = {at} if least == 0 else set()
            seen: set[frozenset[int]] = set()
            count = 0
            while now and (most is None or count < most):
                now = {end for start in now for end in self.ends(inner, start)}
                count += 1
                if count >= least:
                    found |= now
                    if frozenset(now) in seen:
                        break
                    seen.add(frozenset(now))
            return found
        if kind == "look":
            return {at} if bool(self.ends(node[1], at)) != node[2] else set()
        if kind == "behind":
            holds = at > 0 and self.takes(node[1], self.text[at - 1])
            return {at} if holds != node[2] else set()
        if kind == "caret":
            return {at} if at == 0 else set()
        if kind == "dollar":
            final = at == size or (not self.ecma and at == size - 1 and self.text[at] == "\n")
            return {at} if final else set()
        if kind == "boundary":
            return {at} if (self.word(at - 1) != self.word(at)) != node[1] else set()
        raise ValueError(kind)


def search(node: Node, text: str, dialect: str) -> bool:
    """Whether the tree matches anywhere in the text."""
    matcher = Matcher(text, dialect)
    return any(matcher.ends(node, at) for at in range(len(text) + 1))


def full_match(node: Node, text: str, dialect: str) -> bool:
    """Whether the tree matches the whole text."""
    return len(text) in Matcher(text, dialect).ends(node, 0)
