"""From nets over symbols to nets over bytes.

* Small terminals are written into the nets, large ones stay nets of their own (their copies would
  cost more than a call); then every net is determinised and minimised over bytes.  A net whose
  determinisation explodes is made again with all its terminals called.
* Behind a terminal ignored terminals may stand, any number of them.  An ignored terminal takes
  its longest match only, which is an obligation on what follows it: a *mark*, an edge that reads
  nothing and adds the obligation.  Lookahead of terminals makes marks as well.
* An embedded program is a *foreign* edge, which another machine reads: opaque here, and never empty.
* A mark is dropped where it forbids nothing that is not possible anyway without it (usually all of
  them: behind white space more white space is read as part of it), and its edge is dropped where
  nothing can follow under its obligation.

Cost: about linear in the states that are made, which a limit bounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrain import limits
from constrain.errors import LimitExceededError
from constrain.grammar.automata import ByteDfa, ByteNfa, Range, SymbolDfa
from constrain.grammar.ir import ANYTHING, Embedded, Grammar, Obligations, Terminal
from constrain.grammar.network import Network
from constrain.program import Program

__all__ = ["CALL", "FOREIGN", "MARK", "FlatNets", "called", "flatten", "special_edge"]

_CALLED_STATES = 20
_MAX_NET_STATES = 30_000
_MAX_STATES = 400_000
_END = 1 << 256
"""The end of the text in a set of bytes."""


CALL, MARK, FOREIGN = range(3)
"""The kinds of edges that read no byte: of a net, of an obligation, of an embedded program."""


def special_symbol(kind: int, number: int) -> int:
    """The symbol of a special edge."""
    return 3 * number + kind


def special_edge(symbol: int) -> tuple[int, int]:
    """Kind and number of a special edge."""
    return symbol % 3, symbol // 3


def called(special: Iterable[int]) -> list[int]:
    """The nets that special edges call."""
    edges = map(special_edge, special)
    return [number for kind, number in edges if kind == CALL]


def _is_mark(symbol: int) -> bool:
    return symbol % 3 == MARK


class FlatNets:
    """Nets over bytes by number, obligations, embedded programs, and the start's net."""

    __slots__ = ("names", "nets", "obligation_ends", "obligation_rows", "parts", "start")

    def __init__(self) -> None:
        self.parts: list[Program] = []
        self.nets: dict[int, ByteDfa] = {}
        self.names: dict[int, str] = {}
        self.obligation_rows: list[tuple[Range, ...]] = [()]
        self.obligation_ends: list[bool] = [True]
        self.start = 0

    def reachable(self) -> list[int]:
        """The nets that the start needs, it first."""
        order = [self.start]
        seen = {self.start}
        for at in order:
            for special in self.nets[at].special:
                for number in called(special):
                    if number not in seen:
                        seen.add(number)
                        order.append(number)
        return order


def flatten(grammar: Grammar, network: Network) -> FlatNets:
    """All steps; `start` has an empty automaton if the language is empty."""
    builder = _Builder(grammar, network)
    flat = builder.build()
    analysis = _Marks(flat)
    while analysis.drop_needless():
        pass
    analysis.prune()
    return flat


class _Builder:
    def __init__(self, grammar: Grammar, network: Network) -> None:
        self.grammar = grammar
        self.network = network
        self.flat = FlatNets()
        self.offsets: dict[Obligations, int] = {}
        self.terminal_nets: dict[int, int] = {}
        self.next_net = max(network.nets, default=-1) + 1
        self.part_numbers: dict[int, int] = {}
        self.total = 0

    def build(self) -> FlatNets:
        flat, network = self.flat, self.network
        for at, net in network.nets.items():
            flat.names[at] = network.names[at]
            self._keep(at, self._smallest(net))
        top = ByteNfa()
        begin, end = top.state(), top.state()
        top.finals = {end}
        if network.start is not None:
            top.special[begin].append((special_symbol(CALL, network.start), end))
        if network.accepts_empty:
            top.empty[begin].append(end)
        flat.start = self._new_net("the text")
        self._keep(flat.start, top.determinise(begin, _MAX_NET_STATES).reduced())
        return flat

    def _smallest(self, net: SymbolDfa) -> ByteDfa:
        """The net with as many terminals written into it as is possible without an explosion."""
        bound = 2_000 + 8 * len(net.rows)
        for called_states in (_CALLED_STATES, 1):
            nfa = self._net(net, called_states)
            try:
                return nfa.determinise(0, bound).reduced()
            except LimitExceededError:
                continue
        return self._net(net, 0).determinise(0, _MAX_NET_STATES).reduced()

    def _new_net(self, name: str) -> int:
        number = self.next_net
        self.next_net += 1
        self.flat.names[number] = name
        return number

    def _keep(self, at: int, net: ByteDfa) -> None:
        self.total += len(net.rows)
        limits.check()
        most = limits.states(_MAX_STATES)
        if self.total > most:
            raise LimitExceededError(
                f"the grammar needs more than {most} byte states", limit="max_states"
            )
        self.flat.nets[at] = net

    def _obligation(self, terminal: Terminal, state: int) -> int:
        """The number of a terminal's obligation among those of the grammar."""
        if state == ANYTHING:
            return ANYTHING
        found = self.offsets.get(terminal.obligations)
        flat = self.flat
        if found is None:
            found = self.offsets[terminal.obligations] = len(flat.obligation_rows) - 1
            rows, ends = terminal.obligations.rows, terminal.obligations.at_end
            for row, at_end in zip(rows[1:], ends[1:]):
                flat.obligation_rows.append(
                    tuple((a, b, t + found if t != ANYTHING else t) for a, b, t in row)
                )
                flat.obligation_ends.append(at_end)
        return state + found

    def _part(self, embedded: Embedded) -> int:
        """The foreign number of an embedded program."""
        found = self.part_numbers.get(id(embedded.program))
        if found is None:
            found = self.part_numbers[id(embedded.program)] = len(self.flat.parts)
            self.flat.parts.append(embedded.program)
        return found

    def _add_terminal(self, nfa: ByteNfa, terminal: Terminal | Embedded, after: int) -> int:
        if isinstance(terminal, Embedded):
            start = nfa.state()
            nfa.special[start].append((special_symbol(FOREIGN, self._part(terminal)), after))
            return start
        start = nfa.embed(terminal.rows)
        for state, end in enumerate(terminal.ends):
            if end is None:
                continue
            obligation = self._obligation(terminal, end)
            if obligation == ANYTHING:
                nfa.empty[start + state].append(after)
            else:
                nfa.special[start + state].append((special_symbol(MARK, obligation), after))
        return start

    def _behind(self, nfa: ByteNfa, at: int, state: int) -> int:
        """Where a terminal that leads to `state` ends: ignored terminals may stand there."""
        skips = self.grammar.skips.get(at)
        if not skips:
            return state
        behind = nfa.state()
        nfa.empty[behind].append(state)
        for number in skips:
            skipped = self.grammar.terminals[number]
            nfa.empty[behind].append(self._add_terminal(nfa, skipped, behind))
        return behind

    def _terminal_net(self, at: int) -> int:
        found = self.terminal_nets.get(at)
        if found is None:
            terminal = self.grammar.terminals[at]
            found = self.terminal_nets[at] = self._new_net(terminal.name)
            plain = None if at in self.grammar.skips else _plain_net(terminal)
            self._keep(found, plain or self._made_net(at))
        return found

    def _made_net(self, at: int) -> ByteDfa:
        """The net of a terminal, with what may stand behind it."""
        nfa = ByteNfa()
        end = nfa.state()
        nfa.finals = {end}
        start = self._add_terminal(nfa, self.grammar.terminals[at], self._behind(nfa, at, end))
        return nfa.determinise(start, _MAX_NET_STATES).reduced()

    def _net(self, net: SymbolDfa, called_states: int) -> ByteNfa:
        nfa = ByteNfa()
        for _ in net.rows:
            nfa.state()
        nfa.finals = set(net.finals)
        behind: dict[tuple[int, tuple[int, ...]], int] = {}
        copies: dict[tuple[int, int], int] = {}
        trie: dict[tuple[int, int], int] = {}
        for state, row in enumerate(net.rows):
            for symbol, target in row.items():
                if symbol >= 0:
                    nfa.special[state].append((special_symbol(CALL, symbol), target))
                    continue
                at = ~symbol
                terminal = self.grammar.terminals[at]
                if _is_large(terminal, called_states):
                    called = self._terminal_net(at)
                    nfa.special[state].append((special_symbol(CALL, called), target))
                    continue
                place = (target, self.grammar.skips.get(at, ()))
                if place not in behind:
                    behind[place] = self._behind(nfa, at, target)
                if isinstance(terminal, Terminal) and terminal.text is not None:
                    nfa.empty[_write(nfa, trie, state, terminal.text)].append(behind[place])
                    continue
                key = (at, target)
                if key not in copies:
                    copies[key] = self._add_terminal(nfa, terminal, behind[place])
                nfa.empty[state].append(copies[key])
        return nfa


def _plain_net(terminal: Terminal | Embedded) -> ByteDfa | None:
    """The net of a terminal that may be followed by anything: its own automaton."""
    if isinstance(terminal, Embedded) or any(terminal.ends):
        return None
    finals = {state for state, end in enumerate(terminal.ends) if end is not None}
    return ByteDfa([list(row) for row in terminal.rows], [{} for _ in terminal.rows], finals)


def _is_large(terminal: Terminal | Embedded, called_states: int) -> bool:
    if isinstance(terminal, Embedded) or len(terminal.rows) <= called_states:
        return False
    # A literal is a chain: copying it costs no more than what calls it.
    return called_states == 0 or terminal.text is None


def _write(nfa: ByteNfa, trie: dict[tuple[int, int], int], state: int, text: bytes) -> int:
    """The state behind a text that begins at a state; texts there share their beginnings."""
    for byte in text:
        target = trie.get((state, byte))
        if target is None:
            target = trie[state, byte] = nfa.state()
            nfa.ranges[state].append((byte, byte, target))
        state = target
    return state


def byte_mask(row: Iterable[Range]) -> int:
    """The bytes of a row as a bit set."""
    mask = 0
    for first, last, _ in row:
        mask |= ((1 << (last + 1)) - 1) & ~((1 << first) - 1)
    return mask


def _first_bytes(program: Program) -> int:
    """Bytes with which texts of an embedded program begin, and perhaps more."""
    begins = b'{["-0123456789tfn' + (
        b" \t\n\r" if program.whitespace in ("any", "bounded") else b""
    )
    return sum(1 << byte for byte in begins)


class _Marks:
    """What may follow states, and which marks it makes needless or dead."""

    def __init__(self, flat: FlatNets) -> None:
        self.flat = flat
        # Bytes behind which an obligation is met for good, and those that do not break it.
        self.free = [byte_mask(r for r in row if r[2] == ANYTHING) for row in flat.obligation_rows]
        self.allowed = [byte_mask(row) for row in flat.obligation_rows]
        for at, ends in enumerate(flat.obligation_ends):
            if ends:
                self.allowed[at] |= _END
                self.free[at] |= _END
        self.free[ANYTHING] = self.allowed[ANYTHING] = _END | (_END - 1)
        self.begins = [_first_bytes(program) for program in flat.parts]

    def _has_marks(self) -> bool:
        return any(
            _is_mark(x) for net in self.flat.nets.values() for row in net.special for x in row
        )

    def _analyse(self) -> None:
        """First bytes of every state, whether it can end its net without reading, and what follows
        every net (whoever calls it)."""
        nets = self.flat.nets
        self.first = {at: [byte_mask(row) for row in net.rows] for at, net in nets.items()}
        self.ends = {
            at: [state in net.finals for state in range(len(net.rows))] for at, net in nets.items()
        }
        changed = True
        while changed:
            changed = False
            for at, net in nets.items():
                first, ends = self.first[at], self.ends[at]
                for state, special in enumerate(net.special):
                    if not special:
                        continue
                    mask, end = first[state], ends[state]
                    for symbol, target in special.items():
                        kind, number = special_edge(symbol)
                        if kind == MARK:
                            mask |= first[target] & self.allowed[number]
                            end = end or ends[target]
                        else:
                            mask |= self.first[number][0] if kind == CALL else self.begins[number]
                    if mask != first[state] or end != ends[state]:
                        first[state], ends[state] = mask, end
                        changed = True
        self.follow = {at: 0 for at in nets}
        self.follow[self.flat.start] = _END
        changed = True
        while changed:
            changed = False
            for at, net in nets.items():
                for special in net.special:
                    for symbol, target in special.items():
                        kind, number = special_edge(symbol)
                        if kind != CALL:
                            continue
                        mask = self.follow[number] | self.first[at][target]
                        if self.ends[at][target]:
                            mask |= self.follow[at]
                        if mask != self.follow[number]:
                            self.follow[number] = mask
                            changed = True

    # -- needless marks ------------------------------------------------------------------------

    def drop_needless(self) -> bool:
        """Drops marks that forbid nothing; whether any was."""
        if not self._has_marks():
            return False
        self._analyse()
        found = False
        for at, net in list(self.flat.nets.items()):
            net = self._without_redundant(at, net)
            needless = []
            for state, special in enumerate(net.special):
                for symbol, target in special.items():
                    kind, number = special_edge(symbol)
                    if kind == MARK and self._needless(at, net, state, number, target):
                        needless.append((state, symbol, target))
            if not needless:
                continue
            nfa = ByteNfa()
            nfa.embed(net.rows)
            nfa.finals = set(net.finals)
            for state, special in enumerate(net.special):
                nfa.special[state] = list(special.items())
            for state, symbol, target in needless:
                nfa.special[state].remove((symbol, target))
                nfa.empty[state].append(target)
            try:
                made = nfa.determinise(0, _MAX_NET_STATES).reduced()
            except LimitExceededError:
                continue
            # A mark may come back with the states that it belonged to.
            if _mark_count(made) < _mark_count(net):
                self.flat.nets[at] = made
                found = True
        return found

    def _without_redundant(self, at: int, net: ByteDfa) -> ByteDfa:
        """Drops marks that lead to what their state can do anyway."""
        redundant = [
            (state, symbol)
            for state, special in enumerate(net.special)
            for symbol, target in special.items()
            if _is_mark(symbol) and _contains(net, state, target)
        ]
        if redundant:
            for state, symbol in redundant:
                del net.special[state][symbol]
            net = self.flat.nets[at] = net.reduced()
            self._analyse()
        return net

    def _needless(self, at: int, net: ByteDfa, state: int, obligation: int, target: int) -> bool:
        """Every byte that the obligation forbids behind the mark leads to where it also leads from
        `state` itself, without the mark."""
        nets = self.flat.nets
        todo = [(at, target, obligation, state)]
        seen = set(todo)

        def visit(inside: int, behind: int, open_: int, other: int) -> None:
            key = (inside, behind, open_, other)
            if key not in seen:
                seen.add(key)
                todo.append(key)

        while todo:
            if len(seen) > 5_000:
                return False
            inside, behind, open_, other = todo.pop()
            row, special = nets[inside].rows[behind], nets[inside].special[behind]
            if behind in nets[inside].finals and self.follow[inside] & ~self.free[open_]:
                return False
            for symbol in special:
                kind, number = special_edge(symbol)
                if kind == MARK:
                    return False
                # In the callee nothing is like it is beside the mark: it must not be forbidden.
                if kind == FOREIGN:
                    if self.begins[number] & ~self.free[open_]:
                        return False
                elif self.first[number][0] & ~self.free[open_]:
                    visit(number, 0, open_, -1)
            for first, last, after in row:
                byte = first
                while byte <= last:
                    step, until = _look(self.flat.obligation_rows[open_], byte)
                    beside, until2 = _look(net.rows[other], byte) if other >= 0 else (None, 255)
                    if step is None:
                        if inside != at or beside != after:
                            return False
                    elif step != ANYTHING:
                        visit(inside, after, step, -1 if beside is None else beside)
                    byte = min(until, until2) + 1
        return True

    # -- dead marks ----------------------------------------------------------------------------

    def prune(self) -> None:
        """Drops marks behind which nothing can follow, and what only they reach."""
        nets = self.flat.nets
        changed = self._has_marks()
        while changed:
            changed = False
            self._analyse()
            for at, net in list(nets.items()):
                if not _mark_count(net):
                    continue
                dead = False
                for special in net.special:
                    for symbol, target in list(special.items()):
                        kind, number = special_edge(symbol)
                        if kind != MARK:
                            continue
                        allowed = self.allowed[number]
                        mask = self.first[at][target]
                        if self.ends[at][target]:
                            mask |= self.follow[at]
                        if not mask & allowed:
                            del special[symbol]
                            dead = True
                if dead:
                    changed = True
                    nets[at] = net.reduced()
            # A net without a final state reads nothing: neither do calls of it.
            empty = {at for at, net in nets.items() if not net.finals}
            if changed and empty - {self.flat.start}:
                for at, net in list(nets.items()):
                    for special in net.special:
                        for symbol in list(special):
                            kind, number = special_edge(symbol)
                            if kind == CALL and number in empty:
                                del special[symbol]
                    nets[at] = net.reduced()


def _look(row: Iterable[Range], byte: int) -> tuple[int | None, int]:
    """Where a byte leads, and the last byte up to which that holds."""
    until = 255
    for first, last, target in row:
        if first <= byte <= last:
            return target, last
        if first > byte:
            until = first - 1
            break
    return None, until


def _mark_count(net: ByteDfa) -> int:
    return sum(_is_mark(symbol) for special in net.special for symbol in special)


def _contains(net: ByteDfa, large: int, small: int) -> bool:
    """State `large` can do whatever state `small` can."""
    todo = [(small, large)]
    seen = set(todo)
    while todo:
        if len(seen) > 2_000:
            return False
        a, b = todo.pop()
        if a == b:
            continue
        if a in net.finals and b not in net.finals:
            return False
        pairs = []
        for symbol, target in net.special[a].items():
            other = net.special[b].get(symbol)
            if other is None:
                return False
            pairs.append((target, other))
        for first, last, target in net.rows[a]:
            byte = first
            while byte <= last:
                other, until = _look(net.rows[b], byte)
                if other is None:
                    return False
                pairs.append((target, other))
                byte = until + 1
        for pair in pairs:
            if pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return True
