"""A slow, obvious evaluator of programs on Python values: what constrain/program.py says, read
literally.  Used to compare front ends with other validators, and machines with front ends.

Numbers are compared exactly (as fractions of their decimal texts).  Regex programs are turned
into patterns of Python's `re`, so their cost is that of backtracking.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from constrain.program import TYPES, Op, Program, ValueKind

__all__ = ["holds", "holds_text", "regex_matches"]


def holds(program: Program, value: object) -> bool:
    """Whether `value` (as json.loads gives it) satisfies a program of kind "json"."""
    if program.kind != "json":
        raise ValueError("the program is not about JSON values")
    return _Evaluator(program).node(program.root, value)


def holds_text(program: Program, text: str) -> bool:
    """Whether a whole text satisfies a program of kind "text"."""
    if program.kind != "text":
        raise ValueError("the program is not about texts")
    return _Evaluator(program).node(program.root, text)


def _type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _exact(value: int | float | str) -> Fraction:
    return Fraction(repr(value) if isinstance(value, float) else value)


def _canonical(value: object) -> object:
    """A hashable stand-in: equal for equal JSON values."""
    kind = _type(value)
    if kind == "number":
        return (kind, _exact(value))  # type: ignore[arg-type]
    if kind == "array":
        return (kind, tuple(_canonical(item) for item in value))  # type: ignore[attr-defined]
    if kind == "object":
        return (kind, frozenset((k, _canonical(v)) for k, v in value.items()))  # type: ignore[attr-defined]
    return (kind, value)


class _Evaluator:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.strings = [s.decode() for s in program.strings]
        self.constants: dict[int, object] = {}

    def constant(self, index: int) -> object:
        """Value `index`, canonical."""
        if index not in self.constants:
            kind, a, b = self.program.values[3 * index : 3 * index + 3]
            args = self.program.args
            made: object
            if kind == ValueKind.NULL:
                made = ("null", None)
            elif kind in (ValueKind.TRUE, ValueKind.FALSE):
                truth = kind == ValueKind.TRUE
                made = ("true" if truth else "false", truth)
            elif kind == ValueKind.NUMBER:
                made = ("number", Fraction(self.strings[a]))
            elif kind == ValueKind.STRING:
                made = ("string", self.strings[a])
            elif kind == ValueKind.ARRAY:
                made = ("array", tuple(self.constant(x) for x in args[a : a + b]))
            else:
                pairs = args[a : a + 2 * b]
                made = (
                    "object",
                    frozenset(
                        (self.strings[k], self.constant(v))
                        for k, v in zip(pairs[::2], pairs[1::2], strict=True)
                    ),
                )
            self.constants[index] = made
        return self.constants[index]

    def node(self, node: int, value: object) -> bool:
        """Whether formula `node` holds of `value`."""
        op, a, b = self.program.nodes[3 * node : 3 * node + 3]
        args = self.program.args
        if op == Op.FALSE:
            return False
        if op == Op.TRUE:
            return True
        if op == Op.AND:
            return all(self.node(n, value) for n in args[a : a + b])
        if op == Op.OR:
            return any(self.node(n, value) for n in args[a : a + b])
        if op == Op.ONE:
            return sum(self.node(n, value) for n in args[a : a + b]) == 1
        if op == Op.NOT:
            return not self.node(a, value)
        if op == Op.TYPE:
            return _type(value) == TYPES[a]
        if op == Op.REF:
            return self.node(self.program.refs[a], value)
        if op == Op.ENUM:
            mine = _canonical(value)
            return any(self.constant(v) == mine for v in args[a : a + b])
        kind = _type(value)
        if op in (Op.REGEX, Op.STRINGS, Op.MIN_LENGTH, Op.MAX_LENGTH):
            return kind != "string" or self.string(op, a, b, value)  # type: ignore[arg-type]
        if op in (Op.MINIMUM, Op.MAXIMUM, Op.MULTIPLE_OF, Op.INTEGER, Op.INTEGER_LEXICAL):
            return kind != "number" or self.number(op, a, b, value)  # type: ignore[arg-type]
        if op in (Op.OBJECT, Op.HAS, Op.UNEVALUATED_PROPERTIES):
            return kind != "object" or self.object(op, a, b, value)  # type: ignore[arg-type]
        if op in (Op.ARRAY, Op.CONTAINS_MIN, Op.CONTAINS_MAX, Op.UNIQUE, Op.UNEVALUATED_ITEMS):
            return kind != "array" or self.array(op, a, b, value)  # type: ignore[arg-type]
        raise ValueError(f"unknown operator {op}")

    def string(self, op: int, a: int, b: int, text: str) -> bool:
        """Operators about strings."""
        if op == Op.REGEX:
            return regex_matches(self.program.regexes[a], text)
        if op == Op.STRINGS:
            return any(self.strings[s] == text for s in self.program.args[a : a + b])
        return len(text) >= a if op == Op.MIN_LENGTH else len(text) <= a

    def number(self, op: int, a: int, b: int, value: int | float) -> bool:
        """Operators about numbers."""
        if op == Op.INTEGER_LEXICAL:
            return isinstance(value, int)
        mine = _exact(value)
        if op == Op.INTEGER:
            return mine.denominator == 1
        bound = Fraction(self.strings[a])
        if op == Op.MULTIPLE_OF:
            return (mine / bound).denominator == 1
        if op == Op.MINIMUM:
            return mine > bound if b else mine >= bound
        return mine < bound if b else mine <= bound

    def object(self, op: int, a: int, b: int, value: dict) -> bool:
        """Operators about objects."""
        args = self.program.args
        if op == Op.HAS:
            return self.strings[a] in value
        if op == Op.UNEVALUATED_PROPERTIES:
            rows = _rows(args, b, 2)
            return all(
                any(self.node(m, key) and self.node(c, value) for m, c in rows)
                or self.node(a, item)
                for key, item in value.items()
            )
        at, (count,) = a + 1, args[a : a + 1]
        properties = {self.strings[args[at + 2 * i]]: args[at + 2 * i + 1] for i in range(count)}
        at += 2 * count
        patterns = _rows(args, at, 2)
        at += 1 + 2 * len(patterns)
        additional, names, required = args[at : at + 3]
        fewest, most = args[at + 3 + required : at + 5 + required]
        if any(self.strings[s] not in value for s in args[at + 3 : at + 3 + required]):
            return False
        if len(value) < fewest or 0 <= most < len(value):
            return False
        for key, item in value.items():
            matched = [properties[key]] if key in properties else []
            matched += [n for m, n in patterns if self.node(m, key)]
            if not all(self.node(n, item) for n in matched or [additional]):
                return False
            if not self.node(names, key):
                return False
        return True

    def array(self, op: int, a: int, b: int, value: list) -> bool:
        """Operators about arrays."""
        args = self.program.args
        if op == Op.UNIQUE:
            return len({_canonical(item) for item in value}) == len(value)
        if op == Op.CONTAINS_MIN:
            return sum(self.node(a, item) for item in value) >= b
        if op == Op.CONTAINS_MAX:
            return sum(self.node(a, item) for item in value) <= b
        if op == Op.UNEVALUATED_ITEMS:
            rows = [(k, x) for k, x, c in _rows(args, b, 3) if self.node(c, value)]
            return all(
                any(
                    (k == 0 and index < x) or k == 1 or (k == 2 and self.node(x, item))
                    for k, x in rows
                )
                or self.node(a, item)
                for index, item in enumerate(value)
            )
        count = args[a]
        prefix = args[a + 1 : a + 1 + count]
        rest, fewest, most = args[a + 1 + count : a + 4 + count]
        if len(value) < fewest or 0 <= most < len(value):
            return False
        return all(
            self.node(prefix[i] if i < count else rest, item) for i, item in enumerate(value)
        )


def _rows(args: Sequence[int], at: int, width: int) -> list[tuple[int, ...]]:
    count = args[at]
    return [tuple(args[at + 1 + width * i : at + 1 + width * (i + 1)]) for i in range(count)]


# -- regex programs ----------------------------------------------------------------------------

_SET, _SEQ, _ALT, _REPEAT, _LOOK, _BEHIND, _END, _AUTOMATON = range(1, 9)


def _is_automaton(program: array) -> bool:
    """The program's first node is an automaton."""
    at = 3
    for _ in range(program[1]):
        at += 1 + 2 * program[at]
    return program[at] == _AUTOMATON


def _run_automaton(program: array, text: str) -> bool:
    """The same for a program that is one automaton."""
    words = iter(program[3:])
    sets = []
    for _ in range(program[1]):
        sets.append([(next(words), next(words)) for _ in range(next(words))])
    if next(words) != _AUTOMATON:
        raise ValueError("an automaton stands alone")
    states = []
    for _ in range(next(words)):
        final = next(words)
        states.append((final, [(next(words), next(words)) for _ in range(next(words))]))
    state = 0
    for char in text:
        for which, target in states[state][1]:
            if any(first <= ord(char) <= last for first, last in sets[which]):
                state = target
                break
        else:
            return False
    return bool(states[state][0])


def regex_matches(program: array, text: str) -> bool:
    """Whether the whole of `text` is in the language of a regex program."""
    if _is_automaton(program):
        return _run_automaton(program, text)
    return _pattern(program.tobytes()).fullmatch(text) is not None


@lru_cache(maxsize=512)
def _pattern(data: bytes) -> re.Pattern[str]:
    program = array("i")
    program.frombytes(data)
    version, n_sets, n_nodes = program[:3]
    if version != 1:
        raise ValueError(f"unknown version {version} of regex programs")
    at = 3
    sets: list[str] = []
    for _ in range(n_sets):
        count = program[at]
        pairs = program[at + 1 : at + 1 + 2 * count]
        at += 1 + 2 * count
        ranges = "".join(
            f"\\U{first:08x}-\\U{last:08x}"
            for first, last in zip(pairs[::2], pairs[1::2], strict=True)
        )
        sets.append(f"[{ranges}]" if ranges else r"(?!)")
    nodes: list[str] = []
    for _ in range(n_nodes):
        op = program[at]
        if op == _SET:
            nodes.append(sets[program[at + 1]])
            at += 2
        elif op in (_SEQ, _ALT):
            count = program[at + 1]
            parts = [nodes[n] for n in program[at + 2 : at + 2 + count]]
            at += 2 + count
            if op == _SEQ:
                nodes.append("(?:" + "".join(parts) + ")")
            else:
                nodes.append("(?:" + "|".join(parts) + ")" if parts else "(?!)")
        elif op == _REPEAT:
            node, least, most = program[at + 1 : at + 4]
            at += 4
            nodes.append(f"(?:{nodes[node]}){{{least},{'' if most < 0 else most}}}")
        elif op == _LOOK:
            negative, node = program[at + 1 : at + 3]
            at += 3
            nodes.append(f"(?{'!' if negative else '='}{nodes[node]})")
        elif op == _BEHIND:
            which, start = program[at + 1 : at + 3]
            at += 3
            behind = f"(?<={sets[which]})" if sets[which] != "(?!)" else "(?!)"
            nodes.append(rf"(?:{behind}|\A)" if start else behind)
        elif op == _END:
            at += 1
            nodes.append(r"\Z")
        else:
            raise ValueError(f"unknown regex operator {op}")
    return re.compile(nodes[-1])
