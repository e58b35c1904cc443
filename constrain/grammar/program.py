"""Grammar programs: one int32 array that the core's grammar machine executes.

A program is a set of states.  Bytes lead from state to state; a call enters another net's start
state and comes back to a return state when a final state is reached; a foreign edge does the same
with an embedded program; a mark reads nothing and adds an obligation on what follows.  Nets need no
table of their own.  Layout::

    version (2), states, ranges, calls, marks, foreign edges, obligations, obligation ranges,
    start state
    range_begin       [states + 1]        the ranges of a state, in order of bytes
    call_begin        [states + 1]
    mark_begin        [states + 1]
    foreign_begin     [states + 1]
    flags             [states]            1: final
    ranges            (first | last << 8, target state) * ranges
    calls             (start state of the callee, return state, rank of the callee) * calls
    marks             (obligation, target state) * marks
    foreigns          (foreign number, return state) * foreign edges
    obligation_begin  [obligations + 1]   the ranges of an obligation
    obligation_flags  [obligations]       1: the text may end under it
    obligation_ranges (first | last << 8, obligation) * obligation ranges

Obligation 0 is met by everything; a byte without a range breaks an obligation.  The rank of a
callee is larger than that of every net that has a call of it in its start state.  A start state is
not final and has no marks, unless it is the program's start state, which nothing calls; it may have
foreign edges.

A foreign number is an index into `parts` of the `constrain.program.Program`: programs of kind
"json".  Their texts are never empty.  What an embedded program reads before and behind its value
(whitespace) belongs to it; where the grammar could read the same bytes, the text has several
readings.  An edge of a program without any text does not exist; the core throws
UnsatisfiableError if nothing is left of the language because of that.

Special tokens are bytes too: the byte 0xFF and the token id as three bytes, big endian
(`Vocabulary.token_bytes`).  A range of token ids is three levels of byte ranges behind 0xFF.

The array is the `args` of a `constrain.program.Program` of kind "grammar".
"""

from __future__ import annotations

from array import array

from constrain.errors import UnsatisfiableError
from constrain.grammar.automata import strong_components
from constrain.grammar.flatten import CALL, MARK, FlatNets, called, flatten, special_edge
from constrain.grammar.ir import Grammar
from constrain.grammar.network import build_network
from constrain.program import Program

__all__ = ["VERSION", "compile_grammar", "encode_nets"]

VERSION = 2


def compile_grammar(grammar: Grammar, notes: dict[str, object] | None = None) -> Program:
    """The program of a grammar whose names are all defined; `notes` are for reports.

    Raises UnsatisfiableError if it derives no text, LimitExceededError if it needs too many states.
    """
    flat = flatten(grammar, build_network(grammar))
    if not flat.nets[flat.start].finals:
        raise UnsatisfiableError(f"the grammar's start rule {grammar.start!r} derives no text")
    none = array("i")
    args = encode_nets(flat)
    parts = tuple(flat.parts)
    return Program("grammar", none, args, none, none, (), (), 0, parts=parts, notes=notes or {})


def encode_nets(flat: FlatNets) -> array[int]:
    """The table of nets, from the start's on."""
    order = flat.reachable()
    base: dict[int, int] = {}
    count = 0
    for at in order:
        base[at] = count
        count += len(flat.nets[at].rows)
    graph = {at: called(flat.nets[at].special[0]) for at in order}
    rank: dict[int, int] = {}
    for component in reversed(strong_components(graph)):
        for at in component:
            rank[at] = len(rank)
    range_begin, call_begin, mark_begin, foreign_begin = [0], [0], [0], [0]
    flags: list[int] = []
    ranges: list[int] = []
    calls: list[int] = []
    marks: list[int] = []
    foreigns: list[int] = []
    for at in order:
        net = flat.nets[at]
        offset, finals = base[at], net.finals
        for state, row in enumerate(net.rows):
            for first, last, target in row:
                ranges += (first | last << 8, target + offset)
            special = net.special[state]
            for symbol, target in sorted(special.items()) if special else ():
                kind, number = special_edge(symbol)
                if kind == CALL:
                    calls += (base[number], target + offset, rank[number])
                elif kind == MARK:
                    marks += (number, target + offset)
                else:
                    foreigns += (number, target + offset)
            range_begin.append(len(ranges) // 2)
            call_begin.append(len(calls) // 3)
            mark_begin.append(len(marks) // 2)
            foreign_begin.append(len(foreigns) // 2)
            flags.append(state in finals)
    obligation_begin = [0]
    obligation_ranges: list[int] = []
    for obligation_row in flat.obligation_rows:
        for first, last, target in obligation_row:
            obligation_ranges += (first | last << 8, target)
        obligation_begin.append(len(obligation_ranges) // 2)
    header = (
        VERSION,
        count,
        len(ranges) // 2,
        len(calls) // 3,
        len(marks) // 2,
        len(foreigns) // 2,
        len(flat.obligation_rows),
        len(obligation_ranges) // 2,
        base[flat.start],
    )
    return array(
        "i",
        [
            *header,
            *range_begin,
            *call_begin,
            *mark_begin,
            *foreign_begin,
            *flags,
            *ranges,
            *calls,
            *marks,
            *foreigns,
            *obligation_begin,
            *map(int, flat.obligation_ends),
            *obligation_ranges,
        ],
    )
