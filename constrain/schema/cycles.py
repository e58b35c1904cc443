"""Recursion in a program: which formulas contain themselves.

Only what values are is followed: not the keys that a pattern matches, the names that
`propertyNames` speaks of, and the conditions of `unevaluated*`.  Cost: linear in the program.
"""

from __future__ import annotations

from collections.abc import Callable

from constrain.program import Op, Program

__all__ = ["cycles"]


def _children(program: Program) -> Callable[[int], list[int]]:
    nodes, args, refs = program.nodes, program.args, program.refs

    def children(node: int) -> list[int]:
        op, a, b = nodes[3 * node : 3 * node + 3]
        if op in (Op.AND, Op.OR, Op.ONE):
            return list(args[a : a + b])
        if op in (Op.NOT, Op.CONTAINS_MIN):
            return [a]
        if op == Op.REF:
            return [refs[a]]
        if op == Op.OBJECT:
            count = args[a]
            found = list(args[a + 2 : a + 1 + 2 * count : 2])
            at = a + 1 + 2 * count
            patterns = args[at]
            found += args[at + 2 : at + 1 + 2 * patterns : 2]
            return [*found, args[at + 1 + 2 * patterns]]
        if op == Op.ARRAY:
            return list(args[a + 1 : a + 2 + args[a]])
        if op in (Op.UNEVALUATED_PROPERTIES, Op.UNEVALUATED_ITEMS):
            return [a]
        return []

    return children


def cycles(program: Program) -> dict[int, int]:
    """For each node on a cycle, the number of its strongly connected component (Tarjan)."""
    children = _children(program)
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: dict[int, int] = {}
    path: list[tuple[int, list[int]]] = []

    def enter(node: int) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        path.append((node, children(node)))

    enter(program.root)
    while path:
        node, rest = path[-1]
        if rest:
            child = rest.pop()
            if child not in index:
                enter(child)
            elif child in on_stack:
                low[node] = min(low[node], index[child])
            continue
        path.pop()
        if path:
            low[path[-1][0]] = min(low[path[-1][0]], low[node])
        if low[node] == index[node]:
            component = []
            while True:
                member = stack.pop()
                on_stack.discard(member)
                component.append(member)
                if member == node:
                    break
            if len(component) > 1:
                found.update(dict.fromkeys(component, node))
    return found
