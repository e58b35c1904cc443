"""Building programs: interned nodes, strings, constants and regexes.

Everything is hash-consed: equal formulas have one node number, so that sharing in a schema stays
sharing in the program and a test may compare node numbers.  Connectives are simplified while they
are built (constants, duplicates, nested conjunctions, double negation); nothing else is rewritten.

Cost: one dictionary lookup for each node that is asked for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from decimal import Decimal

from constrain.errors import SchemaError
from constrain.program import Op, Program, ValueKind

__all__ = ["FALSE", "INT_MAX", "NEVER", "TRUE", "ProgramBuilder", "decimal_text"]

FALSE = 0
TRUE = 1
NEVER = -1
"""In place of a string or value number: it can never be written (it has a lone surrogate)."""
INT_MAX = 2**31 - 1
"""Counts above this are kept as this: no text is that long."""
_MAX_VALUE_DEPTH = 200

_AND, _OR, _ONE, _NOT = int(Op.AND), int(Op.OR), int(Op.ONE), int(Op.NOT)
_REGEX, _STRINGS, _ENUM = int(Op.REGEX), int(Op.STRINGS), int(Op.ENUM)
_NULL, _TRUE, _FALSE = int(ValueKind.NULL), int(ValueKind.TRUE), int(ValueKind.FALSE)
_NUMBER, _STRING = int(ValueKind.NUMBER), int(ValueKind.STRING)
_ARRAY, _OBJECT = int(ValueKind.ARRAY), int(ValueKind.OBJECT)


def decimal_text(number: int | float) -> str:
    """`number` (finite) as an exact decimal text, of any size."""
    if isinstance(number, float):
        return repr(number)
    try:
        return int.__repr__(number)
    except ValueError:  # beyond sys.set_int_max_str_digits, which Decimal is not subject to
        return format(Decimal(number), "f")


class ProgramBuilder:
    """Tables under construction.  Node 0 is FALSE and node 1 is TRUE."""

    def __init__(self) -> None:
        self.nodes: list[int] = [0, 0, 0, 1, 0, 0]
        self.args: list[int] = []
        self.refs: list[int] = []
        self.values: list[int] = []
        self.regexes: list[array] = []
        self.strings: list[bytes] = []
        self._node_ids: dict[tuple[int, int, int], int] = {}
        self._list_ids: dict[tuple[int, tuple[int, ...]], int] = {}
        self._lists: dict[int, tuple[int, ...]] = {}
        self._string_ids: dict[str, int] = {}
        self._value_ids: dict[tuple[int, int, int], int] = {}
        self._value_lists: dict[tuple[int, ...], int] = {}
        self._regex_ids: dict[int, int] = {}
        self._regex_contents: dict[bytes, int] = {}

    @classmethod
    def resumed(cls, program: Program) -> ProgramBuilder:
        """The tables of a finished program, to be added to.  Its nodes are not shared with new ones."""
        builder = cls()
        builder.nodes = list(program.nodes)
        builder.args = list(program.args)
        builder.refs = list(program.refs)
        builder.values = list(program.values)
        builder.regexes = list(program.regexes)
        builder.strings = list(program.strings)
        for number in range(len(builder.nodes) // 3):
            op, a, b = builder.nodes[3 * number : 3 * number + 3]
            if op in (_AND, _OR):
                builder._lists[number] = tuple(builder.args[a : a + b])
        for number, text in enumerate(builder.strings):
            builder._string_ids[text.decode()] = number
        return builder

    # -- nodes -----------------------------------------------------------------------------

    def node(self, op: int, a: int = 0, b: int = 0) -> int:
        """The node (op, a, b), as it is."""
        key = (op, a, b)
        found = self._node_ids.get(key)
        if found is None:
            found = self._node_ids[key] = len(self.nodes) // 3
            self.nodes += key
        return found

    def listed(self, op: int, items: tuple[int, ...]) -> int:
        """The node of `op` whose a and b are the place and length of `items` in args."""
        key = (op, items)
        found = self._list_ids.get(key)
        if found is None:
            found = self._list_ids[key] = len(self.nodes) // 3
            self.nodes += (op, len(self.args), len(items))
            self.args += items
            self._lists[found] = items
        return found

    def row(self, op: int, items: tuple[int, ...]) -> int:
        """The node of `op` whose a is the place of `items` in args (OBJECT, ARRAY)."""
        key = (op, items)
        found = self._list_ids.get(key)
        if found is None:
            found = self._list_ids[key] = len(self.nodes) // 3
            self.nodes += (op, len(self.args), 0)
            self.args += items
        return found

    def sourced(self, op: int, node: int, sources: Sequence[tuple[int, ...]]) -> int:
        """An UNEVALUATED_* node: `node` for whatever no source covers."""
        items = (node, len(sources), *(x for source in sources for x in source))
        key = (op, items)
        found = self._list_ids.get(key)
        if found is None:
            found = self._list_ids[key] = len(self.nodes) // 3
            self.nodes += (op, node, len(self.args))
            self.args += items[1:]
        return found

    def op(self, node: int) -> int:
        """The operator of `node`."""
        return self.nodes[3 * node]

    def all(self, nodes: Iterable[int]) -> int:
        """Conjunction."""
        return self._connect(_AND, nodes, TRUE, FALSE)

    def any(self, nodes: Iterable[int]) -> int:
        """Disjunction."""
        return self._connect(_OR, nodes, FALSE, TRUE)

    def _connect(self, op: int, nodes: Iterable[int], unit: int, zero: int) -> int:
        parts: dict[int, None] = {}
        table = self.nodes
        for node in nodes:
            if node == unit:
                continue
            if node == zero:
                return zero
            if table[3 * node] == op:
                parts.update(dict.fromkeys(self._lists[node]))
            else:
                parts[node] = None
        if len(parts) > 1:
            for node in parts:
                if table[3 * node] == _NOT and table[3 * node + 1] in parts:
                    return zero
            return self.listed(op, tuple(parts))
        for node in parts:
            return node
        return unit

    def one(self, nodes: Sequence[int]) -> int:
        """Exactly one of `nodes`; repetitions count."""
        parts = [n for n in nodes if n != FALSE]
        certain = parts.count(TRUE)
        if certain > 1 or not parts:
            return FALSE
        if certain:
            return self.negate(self.any(n for n in parts if n != TRUE))
        return parts[0] if len(parts) == 1 else self.listed(_ONE, tuple(parts))

    def negate(self, node: int) -> int:
        """Negation."""
        if node <= TRUE:
            return TRUE - node
        if self.nodes[3 * node] == _NOT:
            return self.nodes[3 * node + 1]
        return self.node(_NOT, node)

    def in_place_parts(self, node: int) -> list[int]:
        """The nodes that speak of the same value as `node`, directly below it."""
        op, a, b = self.nodes[3 * node : 3 * node + 3]
        if op in (_AND, _OR, _ONE):
            return self.args[a : a + b]
        if op == _NOT:
            return [a]
        if op == Op.REF:
            return [self.refs[a]]
        if op == Op.UNEVALUATED_PROPERTIES:
            return self.args[b + 2 : b + 1 + 2 * self.args[b] : 2]
        if op == Op.UNEVALUATED_ITEMS:
            return self.args[b + 3 : b + 1 + 3 * self.args[b] : 3]
        return []

    # -- strings and regexes ---------------------------------------------------------------

    def string(self, text: str) -> int:
        """The number of `text`, or NEVER where it has a lone surrogate."""
        found = self._string_ids.get(text)
        if found is None:
            try:
                data = text.encode()
            except UnicodeEncodeError:
                found = NEVER
            else:
                found = len(self.strings)
                self.strings.append(data)
            self._string_ids[text] = found
        return found

    def one_of_strings(self, texts: Iterable[str]) -> int:
        """A formula about strings: equal to one of `texts`."""
        items = dict.fromkeys(self.string(text) for text in texts)
        items.pop(NEVER, None)
        return self.listed(_STRINGS, tuple(items))

    def regex(self, program: array) -> int:
        """A formula about strings: the whole string is in the language of the regex program."""
        # compiled patterns are cached by whoever compiles them, so identity is a fast first key
        found = self._regex_ids.get(id(program))
        if found is None:
            content = program.tobytes()
            found = self._regex_contents.get(content)
            if found is None:
                found = self._regex_contents[content] = len(self.regexes)
                self.regexes.append(program)
            if self.regexes[found] is program:  # kept alive here, so its id stays its own
                self._regex_ids[id(program)] = found
        return self.node(_REGEX, found)

    # -- constants -------------------------------------------------------------------------

    def enum(self, values: Iterable[object], pointer: str) -> int:
        """Equal to one of `values`; those that cannot be written are left out."""
        items = dict.fromkeys(self.value(value, pointer) for value in values)
        items.pop(NEVER, None)
        return self.listed(_ENUM, tuple(items)) if items else FALSE

    def value(self, value: object, pointer: str, depth: int = 0) -> int:
        """The number of a JSON value, or NEVER where a string of it has a lone surrogate."""
        if isinstance(value, str):
            text = self.string(value)
            return NEVER if text == NEVER else self._value(_STRING, text, 0)
        if value is None:
            return self._value(_NULL, 0, 0)
        if isinstance(value, bool):
            return self._value(_TRUE if value else _FALSE, 0, 0)
        if isinstance(value, (int, float)):
            return self._value(_NUMBER, self.string(decimal_text(value)), 0)
        if depth >= _MAX_VALUE_DEPTH:
            raise SchemaError(
                f"a constant is nested more than {_MAX_VALUE_DEPTH} levels deep", pointer=pointer
            )
        items: list[int] = []
        if isinstance(value, list):
            for item in value:
                items.append(self.value(item, pointer, depth + 1))
            count, kind = len(items), _ARRAY
        elif isinstance(value, dict):
            for key, item in value.items():
                items += (self.string(key), self.value(item, pointer, depth + 1))
            count, kind = len(value), _OBJECT
        else:
            raise SchemaError(
                f"expected a JSON value, found {type(value).__name__}", pointer=pointer
            )
        if NEVER in items:
            return NEVER
        row = tuple(items)
        offset = self._value_lists.get(row)
        if offset is None:
            offset = self._value_lists[row] = len(self.args)
            self.args += row
        return self._value(kind, offset, count)

    def _value(self, kind: int, a: int, b: int) -> int:
        key = (kind, a, b)
        found = self._value_ids.get(key)
        if found is None:
            found = self._value_ids[key] = len(self.values) // 3
            self.values += key
        return found

    # -- the result ------------------------------------------------------------------------

    def build(
        self,
        kind: str,
        root: int,
        *,
        whitespace: str = "bounded",
        numbers: str = "plain",
        property_order: str = "any",
        escapes: str = "any",
        notes: dict[str, object] | None = None,
    ) -> Program:
        """The finished program."""
        return Program(
            kind=kind,
            nodes=array("i", self.nodes),
            args=array("i", self.args),
            refs=array("i", self.refs),
            values=array("i", self.values),
            regexes=tuple(self.regexes),
            strings=tuple(self.strings),
            root=root,
            whitespace=whitespace,
            numbers=numbers,
            property_order=property_order,
            escapes=escapes,
            notes=notes or {},
        )
