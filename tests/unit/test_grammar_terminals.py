"""Terminals have exactly the lexemes that Lark's dynamic lexer finds, in every context."""

from __future__ import annotations

import random
import re

import pytest

from constrain.errors import LimitExceededError, RegexError, UnsupportedError
from constrain.grammar.ir import Terminal
from constrain.grammar.terminals import regex_terminal

PATTERNS = [
    r"a|ab",
    r"(?:a|ab)(?:c|bcd)",
    r'"x.*?(?<!\\)(\\\\)*?"',
    r"[a-z]+?b",
    r"(a|b)*?a(a|b)",
    r"0(?!1)",
    r"'(?!'').*?(?<!\\)(\\\\)*?'",
    r"(?s:/\*.*?\*/)",
    r"é+|ü",
    r"(?!if\b)[a-z]+",
    r"(?!(?:if|fi)\b)[a-z][a-z]*",
    r"a(?=b)",
    r"a(?=bc)|ab",
    r"a+(?=b)",
    r"ab*(?!bc)",
    r"ab$",
    r"a(?!bcd)b*",
    r"(a(?=b)|b(?=a))+",
    r"a\b.?",
    r"x(?!é)",
    r"[a-zé]+(?<=é)b?",
    r"(?i:[k-l]+)",
    r"a\Z|aa",
    r"(a|ab)(?=c)|abc",
    r"#[^\n]*",
    r"[^\n]+$",
    r"(?m:a+$)",
    r"a(?!(?=b)bc)",
    r"(?:a(?!b)|ab?)+",
    r"a{2,3}?b{1,2}",
]

TEXTS = ["/* a */ b */", "ab", "ab\n", "ab\nc", "#a#\nb", "#"]


def _lexemes_of_re(expression: re.Pattern[str], text: str, ignored: bool) -> set[int]:
    """Lengths of what Lark tries at the start of a text."""
    found = set()
    match = expression.match(text)
    if match:
        found.add(match.end())
        if not ignored:
            for end in range(1, match.end()):
                shorter = expression.match(text[:end])
                if shorter:
                    found.add(shorter.end())
    return found - {0}


def _follow(rows: tuple, state: int, byte: int) -> int | None:
    return next((t for first, last, t in rows[state] if first <= byte <= last), None)


def _lexemes(terminal: Terminal, text: str) -> set[int]:
    data = text.encode()
    found = set()
    state: int | None = 0
    for at, byte in enumerate(data):
        state = _follow(terminal.rows, state, byte)
        if state is None:
            break
        obligation = terminal.ends[state]
        for after in data[at + 1 :]:
            if not obligation:
                break
            obligation = _follow(terminal.obligations.rows, obligation, after)
        if obligation is not None and terminal.obligations.at_end[obligation]:
            found.add(len(data[: at + 1].decode()))
    return found


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_lexemes_are_those_that_lark_tries(pattern: str, ignored: bool) -> None:
    rnd = random.Random(pattern)
    expression = re.compile(pattern)
    terminal = regex_terminal("T", pattern, ignored=ignored)
    alphabet = [*sorted(set(pattern) - set("()|?:*+[]<!^.=#/$\\{}"))[:7], "\n", "é", "1", " "]
    some = False
    texts = list(TEXTS)
    texts += ["".join(rnd.choice(alphabet) for _ in range(rnd.randrange(1, 8))) for _ in range(400)]
    for text in texts:
        expected = _lexemes_of_re(expression, text, ignored)
        some = some or bool(expected)
        assert _lexemes(terminal, text) == expected, text
    assert some


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [
        (r"(a)\1", "backreference"),
        (r"(?<=ab)c", "lookbehind for more than one character"),
        (r"(?<!a)b", "lookbehind (or an anchor) at the start"),
        (r"\bab", "lookbehind (or an anchor) at the start"),
        (r"^ab", "lookbehind (or an anchor) at the start"),
        (r"(a)?(?(1)b|c)", "conditional group"),
    ],
)
def test_features_without_an_exact_reading_are_refused_by_name(pattern: str, feature: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        regex_terminal("T", pattern)
    assert caught.value.feature == feature


def test_malformed_patterns_name_their_position() -> None:
    with pytest.raises(RegexError) as caught:
        regex_terminal("T", "a(b")
    assert caught.value.position == 1


def test_huge_repeats_reach_a_limit() -> None:
    with pytest.raises(LimitExceededError):
        regex_terminal("T", "(?:a{1000}){1000}")


def test_an_impossible_terminal_has_no_lexeme() -> None:
    assert regex_terminal("T", r"a(?!)").empty
    assert not regex_terminal("T", r"a").empty
