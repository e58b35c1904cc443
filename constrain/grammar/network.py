"""From rules to nets: automata over symbols that call each other, with recursion only where needed.

Only recognition matters, so the rules may be rewritten at will as long as the language stays:

1. every rule becomes one deterministic automaton over terminals and rules;
2. rules that can be empty lose the empty word, and their calls get a bypass: every call then
   consumes something, which shows hidden left recursion;
3. left recursion goes: in a strongly connected set of rules under "can start with", a rule's net
   gets copies of all of them, where the end of one continues as the left corner of another;
4. absorption: where the end of a called net can do whatever the state behind the call can do,
   returning adds nothing, and the call may end the caller (``E: E op E`` needs no stack then);
   calls of a rule by itself at its end become jumps;
5. rules that do not call themselves are copied into their callers, small ones first.

Afterwards no net is entered without a byte being consumed before it is entered again, so stacks
have no cycles.  Costs: step 3 is quadratic in the size of a set; everything else is about linear in
what it makes, and the number of states is bounded.
"""

from __future__ import annotations

from constrain import limits
from constrain.errors import LimitExceededError
from constrain.grammar.automata import SymbolDfa, SymbolNfa, strong_components
from constrain.grammar.ir import Expression, Grammar

__all__ = ["Network", "build_network"]

_MAX_STATES = 200_000
_INLINE_STATES = 1_500
_MAX_RULE_STATES = 50_000
_MAX_SIMPLIFYING = 250_000


class Network:
    """Nets by number, the start's number, and whether the empty text belongs to the language.

    `start` is None if nothing but the empty text can belong to it.
    """

    __slots__ = ("accepts_empty", "names", "nets", "start")

    def __init__(
        self, nets: dict[int, SymbolDfa], start: int | None, accepts_empty: bool, names: list[str]
    ) -> None:
        self.nets = nets
        self.start = start
        self.accepts_empty = accepts_empty
        self.names = names


def build_network(grammar: Grammar) -> Network:
    """All steps.  Every rule that is used must be defined."""
    names = list(grammar.rules)
    number = {name: at for at, name in enumerate(names)}
    raw: dict[int, SymbolNfa] = {}
    used = _reachable_rules(grammar, number)
    total = 0
    most = limits.states(_MAX_STATES)
    for at in used:
        raw[at] = _automaton(grammar.rules[names[at]], number, names[at])
        total += len(raw[at].edges)
        limits.check()
        if total > most:
            raise LimitExceededError(
                f"the rules need more than {most} states with their repetitions written out",
                limit="max_states",
            )
    nullable = _nullable(raw)
    nets: dict[int, SymbolDfa] = {}
    for at, nfa in raw.items():
        for state, edges in enumerate(nfa.edges):
            for symbol, target in edges:
                if symbol in nullable:
                    nfa.empty[state].append(target)
        nets[at] = nfa.determinise(0, _MAX_RULE_STATES).reduced().without_empty()
    empty = {~at for at, terminal in enumerate(grammar.terminals) if terminal.empty}
    start = number[grammar.start]
    _drop_unproductive(nets, empty)
    _drop_unreachable(nets, start)
    _remove_left_recursion(nets)
    _drop_unreachable(nets, start)
    _Simplifier(nets, start).run()
    return Network(nets, start if start in nets else None, start in nullable, names)


def _reachable_rules(grammar: Grammar, number: dict[str, int]) -> list[int]:
    seen = {grammar.start}
    todo = [grammar.start]
    while todo:
        expressions = [grammar.rules[todo.pop()]]
        while expressions:
            expression = expressions.pop()
            kind = expression[0]
            if kind == "rule":
                if expression[1] not in seen:
                    seen.add(expression[1])
                    todo.append(expression[1])
            elif kind == "repeat":
                expressions.append(expression[1])
            elif kind != "term":
                expressions.extend(expression[1])
    return [number[name] for name in grammar.rules if name in seen]


def _automaton(body: Expression, number: dict[str, int], name: str) -> SymbolNfa:
    """State 0 is the start; one final state.  Recursion is as deep as the expression."""
    nfa = SymbolNfa()
    first = nfa.state()

    def add(expression: Expression, at: int) -> int:
        if len(nfa.edges) > _MAX_STATES:
            raise LimitExceededError(
                f"the rule {name!r} needs more than {_MAX_STATES} states with its repetitions "
                "written out",
                limit="max_states",
            )
        kind = expression[0]
        if kind == "term" or kind == "rule":
            target = nfa.state()
            symbol = ~expression[1] if kind == "term" else number[expression[1]]
            nfa.edges[at].append((symbol, target))
            return target
        if kind == "seq":
            for item in expression[1]:
                at = add(item, at)
            return at
        if kind == "alt":
            target = nfa.state()
            for item in expression[1]:
                nfa.empty[add(item, at)].append(target)
            return target
        _, item, least, most = expression
        for _ in range(least):
            at = add(item, at)
        if most is None:
            # A fresh state, so that nothing else that leaves `at` is repeated.
            loop = nfa.state()
            nfa.empty[at].append(loop)
            nfa.empty[add(item, loop)].append(loop)
            after = nfa.state()
            nfa.empty[loop].append(after)
            return after
        after = nfa.state()
        nfa.empty[at].append(after)
        for _ in range(most - least):
            at = add(item, at)
            nfa.empty[at].append(after)
        return after

    nfa.finals = {add(body, first)}
    return nfa


def _nullable(raw: dict[int, SymbolNfa]) -> set[int]:
    """Rules that can be empty."""
    callers: dict[int, set[int]] = {}
    for at, nfa in raw.items():
        for edges in nfa.edges:
            for symbol, _ in edges:
                if symbol >= 0:
                    callers.setdefault(symbol, set()).add(at)
    nullable: set[int] = set()
    todo = list(raw)
    while todo:
        at = todo.pop()
        if at in nullable:
            continue
        nfa = raw[at]
        seen = {0}
        states = [0]
        while states:
            state = states.pop()
            targets = list(nfa.empty[state])
            targets += [t for symbol, t in nfa.edges[state] if symbol in nullable]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    states.append(target)
        if not nfa.finals.isdisjoint(seen):
            nullable.add(at)
            todo.extend(callers.get(at, ()))
    return nullable


def _drop_unproductive(nets: dict[int, SymbolDfa], empty: set[int]) -> None:
    """Drops rules that derive no text, edges that need them, and trims."""
    callers: dict[int, set[int]] = {}
    for at, net in nets.items():
        for rule in net.rules():
            callers.setdefault(rule, set()).add(at)
    productive: set[int] = set()
    todo = list(nets)
    while todo:
        at = todo.pop()
        if at in productive:
            continue
        net = nets[at]
        seen = {0}
        states = [0]
        while states:
            for symbol, target in net.rows[states.pop()].items():
                if target in seen or (symbol not in productive if symbol >= 0 else symbol in empty):
                    continue
                seen.add(target)
                states.append(target)
        if not net.finals.isdisjoint(seen):
            productive.add(at)
            todo.extend(callers.get(at, ()))
    dead = {at for at in nets if at not in productive} | empty
    if dead:
        for at in list(nets):
            if at in productive:
                nets[at] = nets[at].reduced(dead).without_empty()
            else:
                del nets[at]


def _drop_unreachable(nets: dict[int, SymbolDfa], start: int) -> None:
    seen: set[int] = set()
    todo = [start] if start in nets else []
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo.extend(nets[at].rules())
    for at in list(nets):
        if at not in seen:
            del nets[at]


def _remove_left_recursion(nets: dict[int, SymbolDfa]) -> None:
    graph = {at: [symbol for symbol in net.rows[0] if symbol >= 0] for at, net in nets.items()}
    for component in strong_components(graph):
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        members = sorted(component)
        size = sum(len(nets[at].rows) for at in members)
        if size * len(members) > _MAX_STATES * 5:
            raise LimitExceededError(
                f"{len(members)} rules that start with each other need too many states",
                limit="max_states",
            )
        result = {}
        for top in members:
            nfa = SymbolNfa()
            nfa.state()
            offset = {at: nfa.embed(nets[at]) for at in members}
            for at in members:
                net = nets[at]
                for symbol, target in net.rows[0].items():
                    if symbol not in offset:
                        # A derivation's leftmost symbol: it starts inside of any of the rules.
                        nfa.edges[0].append((symbol, offset[at] + target))
                for final in net.finals:
                    # The rule is complete: it is the left corner of another one.
                    for other in members:
                        after = nets[other].rows[0].get(at)
                        if after is not None:
                            nfa.empty[offset[at] + final].append(offset[other] + after)
                nfa.edges[offset[at]] = []
            nfa.finals = {offset[top] + final for final in nets[top].finals}
            result[top] = nfa.determinise(0, _MAX_RULE_STATES).reduced()
        nets.update(result)


class _Simplifier:
    """Absorption, tail jumps and inlining until nothing changes."""

    def __init__(self, nets: dict[int, SymbolDfa], start: int) -> None:
        self.nets = nets
        self.start = start
        self.callers: dict[int, set[int]] = {at: set() for at in nets}
        self.called: dict[int, set[int]] = {}
        for at in nets:
            self._index(at)
        self.stuck: set[int] = set()
        self.work = 0  # rules and states looked at while inlining

    def _index(self, at: int) -> None:
        for rule in self.called.get(at, ()):
            self.callers[rule].discard(at)
        found = self.nets[at].rules()
        self.called[at] = found
        for rule in found:
            self.callers[rule].add(at)

    def _replace(self, at: int, net: SymbolDfa) -> None:
        self.nets[at] = net
        self._index(at)

    def run(self) -> None:
        if self.start not in self.nets:
            return
        dirty = set(self.nets)
        while True:
            while dirty:
                at = dirty.pop()
                if at not in self.nets:
                    continue
                changed = False
                while self._absorb(at) or self._tail_jump(at):
                    changed = True
                if changed:
                    dirty |= self.callers[at]
                    self.stuck.discard(at)
            limits.check()
            # Simplifying is never needed, and takes the square of the rules in a long chain of them.
            choice = self._candidate() if self.work < _MAX_SIMPLIFYING else None
            if choice is None:
                return
            dirty = self._inline(choice)

    def _absorb(self, at: int) -> bool:
        """``q --A--> f`` with f final: if every final state of A can do what f can, f may as well
        only end."""
        net = self.nets[at]
        changed = False
        for rule in self.called[at]:
            callee = self.nets[rule]
            for state, row in enumerate(net.rows):
                final = row.get(rule)
                if final is None or final not in net.finals or not net.rows[final]:
                    continue
                if all(_simulates(net, final, callee, end) for end in callee.finals):
                    if not changed:
                        net = SymbolDfa([dict(r) for r in net.rows], set(net.finals))
                        changed = True
                    net.rows.append({})
                    net.finals.add(len(net.rows) - 1)
                    net.rows[state][rule] = len(net.rows) - 1
        if changed:
            self._replace(at, net.reduced())
        return changed

    def _tail_jump(self, at: int) -> bool:
        """A rule that calls itself at its end continues at its start."""
        net = self.nets[at]
        if at not in self.called[at]:
            return False
        ends = {final for final in net.finals if not net.rows[final]}
        places = [state for state, row in enumerate(net.rows) if row.get(at) in ends]
        if not places:
            return False
        nfa = SymbolNfa()
        nfa.embed(net)
        nfa.finals = set(net.finals)
        again = nfa.state()
        nfa.edges[again] = list(nfa.edges[0])
        for state in [*places, again]:
            kept = [(x, t) for x, t in nfa.edges[state] if not (x == at and t in ends)]
            if len(kept) < len(nfa.edges[state]):
                nfa.edges[state] = kept
                nfa.empty[state].append(again)
        try:
            self._replace(at, nfa.determinise(0, _MAX_RULE_STATES).reduced())
        except LimitExceededError:
            return False
        return True

    def _candidate(self) -> int | None:
        best = None
        self.work += len(self.nets)
        for at, net in self.nets.items():
            if at == self.start or at in self.stuck or at in self.called[at]:
                continue
            sites = 0
            for caller in self.callers[at]:
                sites += len({row[at] for row in self.nets[caller].rows if at in row})
            cost = (sites if sites > 1 else 0) * len(net.rows)
            if cost <= _INLINE_STATES and (best is None or cost < best[0]):
                best = (cost, at)
        return None if best is None else best[1]

    def _inline(self, rule: int) -> set[int]:
        """Copies a net into all its callers; gives the nets to look at again."""
        callee = self.nets[rule]
        changed: set[int] = set()
        for at in sorted(self.callers[rule]):
            nfa = SymbolNfa()
            nfa.embed(self.nets[at])
            nfa.finals = set(self.nets[at].finals)
            copies: dict[int, int] = {}
            for state in range(len(self.nets[at].rows)):
                for symbol, target in list(nfa.edges[state]):
                    if symbol != rule:
                        continue
                    if target not in copies:
                        copies[target] = nfa.embed(callee)
                        for final in callee.finals:
                            nfa.empty[copies[target] + final].append(target)
                    nfa.edges[state].remove((symbol, target))
                    nfa.empty[state].append(copies[target])
            self.work += len(nfa.edges)
            bound = 4 * (len(self.nets[at].rows) + len(copies) * len(callee.rows)) + 100
            try:
                self._replace(at, nfa.determinise(0, bound).reduced())
            except LimitExceededError:
                self.stuck.add(rule)
                continue
            changed.add(at)
        if not self.callers[rule]:
            del self.nets[rule]
            for other in self.called.pop(rule):
                self.callers[other].discard(rule)
            del self.callers[rule]
        for at in list(changed):
            changed |= self.callers[at]
        return changed


def _simulates(a: SymbolDfa, p: int, b: SymbolDfa, q: int) -> bool:
    """State q of `b` can do whatever state p of `a` can."""
    seen = {(p, q)}
    todo = [(p, q)]
    while todo:
        p, q = todo.pop()
        if p in a.finals and q not in b.finals:
            return False
        row = b.rows[q]
        for symbol, target in a.rows[p].items():
            other = row.get(symbol)
            if other is None:
                return False
            if (target, other) not in seen:
                if len(seen) > 10_000:
                    return False
                seen.add((target, other))
                todo.append((target, other))
    return True
