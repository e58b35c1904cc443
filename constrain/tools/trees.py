"""What is asked of the trees of `constrain.tools.language`: their texts, and what follows a start."""

from __future__ import annotations

from constrain.tools.errors import ToolFormatError
from constrain.tools.language import (
    ArgumentsNode,
    Calls,
    Chain,
    Choice,
    Json,
    Keywords,
    Node,
    Repeat,
    Space,
    Text,
    sequence,
)
from constrain.tools.templates import Literal

__all__ = ["texts_of", "without_start"]


def texts_of(tree: Node) -> list[str]:
    """Every text of a tree, each once."""
    found: dict[str, None] = {}
    todo: list[Node] = [tree]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if isinstance(node, Text):
            found[node.text] = None
        elif isinstance(node, Chain):
            todo += node.parts
        elif isinstance(node, Choice):
            todo += node.options
        elif isinstance(node, Repeat):
            todo.append(node.part)
        elif isinstance(node, Calls) and id(node) not in seen:
            seen.add(id(node))
            for text in _texts_of_style(node.cases[0].arguments) if node.cases else ():
                found[text] = None
            for case in node.cases:
                found[case.name] = None
                if id(case.middle) not in seen:
                    seen.add(id(case.middle))
                    todo.append(case.middle)
                if id(case.closing) not in seen:
                    seen.add(id(case.closing))
                    todo.append(case.closing)
    return list(found)


def _texts_of_style(node: ArgumentsNode) -> list[str]:
    """What stands between arguments, whichever they are."""
    if isinstance(node, Json):
        return [node.style.quote]
    if isinstance(node, Keywords):
        return []
    atoms = [one.text for one in (*node.head, *node.tail) if isinstance(one, Literal)]
    return [one for one in (*atoms, node.style.separator) if one]


def without_start(tree: Node, text: str) -> Node:
    """What may follow where a message has begun with `text`.

    Raises ToolFormatError if no message begins with it literally.
    """
    if not text:
        return tree
    rest = _rest(tree, text)
    if rest is None:
        raise ToolFormatError(f"no message begins with {text!r}", field="prompted")
    return rest


def _rest(node: Node, text: str) -> Node | None:
    if isinstance(node, Text):
        return Text(node.text[len(text) :]) if node.text.startswith(text) else None
    if isinstance(node, Choice):
        found = [one for one in (_rest(option, text) for option in node.options) if one is not None]
        return Choice(tuple(found)) if found else None
    if isinstance(node, Chain) and node.parts:
        head, tail = node.parts[0], Chain(node.parts[1:])
        options: list[Node] = []
        inner: Node = head.part if isinstance(head, Repeat) else head
        begun = _rest(inner, text)
        if begun is not None:
            more: tuple[Node, ...] = ()
            if isinstance(head, Repeat) and head.most != 1:
                most = None if head.most is None else head.most - 1
                more = (Repeat(head.part, max(head.least - 1, 0), most),)
            options.append(sequence(begun, *more, tail))
        if isinstance(head, Space) or (isinstance(head, Repeat) and head.least == 0):
            skipped = _rest(tail, text)
            if skipped is not None:
                options.append(skipped)
        if options:
            return options[0] if len(options) == 1 else Choice(tuple(options))
    return None
