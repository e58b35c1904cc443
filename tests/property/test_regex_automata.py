"""Random patterns: the automata agree with the slow reference, with `re` and with interegular."""

from __future__ import annotations

import re
from itertools import product

import interegular
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constrain.errors import LimitExceededError
from constrain.regex import compile_ecma, compile_python
from tests.native.regex_runner import NOTHING, RegexRunner, Verdict, runner
from tests.reference.regex_reference import Node, full_match, render, search

_ALPHABET = "abA1_ -\n\u00e9\u0661\U0001d11e"

texts = st.text(alphabet=_ALPHABET, max_size=7)
few_texts = st.lists(texts, min_size=1, max_size=6)


def _ranges() -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    pair = st.tuples(st.sampled_from(_ALPHABET), st.sampled_from(_ALPHABET)).map(
        lambda p: (min(p), max(p))
    )
    return st.lists(pair, min_size=1, max_size=3).map(tuple)


_single: st.SearchStrategy[Node] = st.one_of(
    st.sampled_from(_ALPHABET).map(lambda c: ("char", c)),
    st.sampled_from("ab").map(lambda c: ("char", c)),
    st.just(("dot",)),
    st.tuples(st.just("class"), st.booleans(), _ranges()),
    st.sampled_from("dDwWsS").map(lambda c: ("escape", c)),
)
_zero: st.SearchStrategy[Node] = st.one_of(
    st.just(("caret",)),
    st.just(("dollar",)),
    st.booleans().map(lambda n: ("boundary", n)),
    st.tuples(st.just("behind"), _single, st.booleans()),
)


def _nodes(context: bool, max_leaves: int = 10) -> st.SearchStrategy[Node]:
    """Trees; without `context`, only what is regular in the strictest sense."""

    def extend(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        counts = st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3)))
        repeat = st.builds(
            lambda n, c, lazy: ("repeat", n, c[0], None if c[1] is None else c[0] + c[1], lazy),
            inner,
            counts,
            st.booleans(),
        )
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        options = [
            st.tuples(st.just("seq"), several),
            st.tuples(st.just("alt"), several),
            repeat,
        ]
        if context:
            options.append(st.tuples(st.just("look"), inner, st.booleans()))
        return st.one_of(options)

    return st.recursive(
        st.one_of(_single, _single, _zero) if context else _single, extend, max_leaves=max_leaves
    )


def _check_trace(
    automaton: RegexRunner, text: str, accepts: dict[str, bool], trace: list[Verdict]
) -> None:
    """live, constant and distance agree with what is accepted."""
    for at, verdict in enumerate(trace):
        assert verdict.accepting == accepts[text[:at]], (text[:at], verdict)
        later = [accepts[text[:end]] for end in range(at, len(text) + 1)]
        assert verdict.live or not any(later)
        assert verdict.live == (verdict.distance != NOTHING)
        if verdict.constant == "everything":
            assert all(later)
        if verdict.constant == "nothing":
            assert not verdict.live
        if not verdict.live:
            assert verdict.constant == "nothing"
        assert verdict.accepting == (verdict.distance == 0)
        if any(later):
            assert verdict.distance <= later.index(True)


@settings(max_examples=250, deadline=None)
@given(_nodes(True), few_texts)
def test_ecma_agrees_with_the_reference(tree: Node, samples: list[str]) -> None:
    automaton = runner()
    automaton.load(compile_ecma(render(tree)))
    for text in samples:
        prefixes = [text[:end] for end in range(len(text) + 1)]
        accepts = {prefix: search(tree, prefix, "ecma") for prefix in prefixes}
        _check_trace(automaton, text, accepts, automaton.trace(text))


@settings(max_examples=250, deadline=None)
@given(_nodes(True), few_texts)
def test_python_agrees_with_the_reference(tree: Node, samples: list[str]) -> None:
    pattern = render(tree)
    try:
        program = compile_python(pattern)
    except LimitExceededError:
        assume(False)
    automaton = runner()
    automaton.load(program)
    for text in samples:
        prefixes = [text[:end] for end in range(len(text) + 1)]
        accepts = {prefix: full_match(tree, prefix, "python") for prefix in prefixes}
        _check_trace(automaton, text, accepts, automaton.trace(text))


@settings(max_examples=200, deadline=None)
@given(_nodes(False), few_texts, st.sampled_from([0, re.I, re.S, re.A, re.I | re.A]))
def test_python_agrees_with_re(tree: Node, samples: list[str], flags: int) -> None:
    pattern = render(tree)
    automaton = runner()
    automaton.load(compile_python(pattern, flags))
    compiled = re.compile(pattern, flags)
    for text in samples:
        assert automaton.accepts(text) == (compiled.fullmatch(text) is not None), (pattern, text)


@settings(max_examples=30, deadline=None)
@given(_nodes(False, max_leaves=4), few_texts)
def test_python_agrees_with_interegular(tree: Node, samples: list[str]) -> None:
    # It knows ASCII classes only.
    pattern = render(tree)
    samples = [text for text in samples if text.isascii()]
    try:
        other = interegular.parse_pattern(pattern).to_fsm()
    except (interegular.InvalidSyntax, interegular.Unsupported, NotImplementedError):
        assume(False)
    automaton = runner()
    automaton.load(compile_python(pattern, re.A))
    for text in samples:
        assert automaton.accepts(text) == other.accepts(text), (pattern, text)


@settings(max_examples=100, deadline=None)
@given(_nodes(True))
def test_distance_is_the_shortest_continuation(tree: Node) -> None:
    automaton = runner()
    automaton.load(compile_ecma(render(tree)))
    start = automaton.trace("")[0]
    shortest = next(
        (
            size
            for size in range(3)
            if any(search(tree, "".join(text), "ecma") for text in product(_ALPHABET, repeat=size))
        ),
        None,
    )
    if shortest is not None:
        assert start.distance == shortest
    elif start.distance <= 2:
        # Only code points outside of the alphabet can be what makes it shorter.
        assert re.search(r"[\^.]|\\[DWSwds]", render(tree))
