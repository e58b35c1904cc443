"""The patterns of JSON Schema: what they accept, what is refused and how the refusal is worded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constrain.errors import ConstrainError, LimitExceededError, RegexError, UnsupportedError
from constrain.regex import compile_ecma, compile_python
from tests.native.regex_runner import NOTHING, RegexRunner, runner


@pytest.fixture(scope="module")
def automaton() -> RegexRunner:
    return runner()


ACCEPTED = [
    # pattern, texts in which it is found, texts in which it is not
    ("foo", ["foo", "xfoox"], ["", "fo", "Foo"]),
    ("^foo", ["foo", "foox"], ["xfoo"]),
    ("foo$", ["foo", "xfoo"], ["foo\n"]),
    ("^foo|bar$", ["foox", "xbar"], ["xfoo", "barx"]),
    ("(^left$)|(^right$)", ["left", "right"], ["leftright", "xleft", ""]),
    ("^(?:^a|b$)$", ["a", "b"], ["ab", "ba"]),
    ("a^b", [], ["ab", "a^b", "b"]),
    ("a$b", [], ["ab", "a$b"]),
    ("(a|^)b", ["ab", "b", "cab"], ["cb"]),
    ("", ["", "x"], []),
    ("()", ["", "x"], []),
    ("^$", [""], ["x", "\n"]),
    ("^a||b$", ["", "anything"], []),
    (r"^\d+$", ["0", "42"], ["", "\u0661", "4 "]),
    (r"^\w+$", ["a_9"], ["\u00e9", ""]),
    (r"^\W$", ["\u00e9", "-"], ["_", "0"]),
    (r"^\s$", ["\ufeff", "\u00a0", "\v", "\u2029"], ["\u200b", "x", "\u0085"]),
    (r"^\S$", ["\u200b", "\x01"], ["\n", " "]),
    ("^.$", ["a", "\u0085", "\U0001f680"], ["\n", "\r", "\u2028", "\u2029", ""]),
    ("^[^]$", ["\n", "a"], ["", "ab"]),
    ("[]", [], ["", "a"]),
    ("^[a-c]$", ["a", "c"], ["d", "-"]),
    (r"^[\w-x]$", ["-", "x", "q"], ["."]),
    (r"^[a\-z]$", ["a", "-", "z"], ["b"]),
    ("^[-a]$", ["-", "a"], ["b"]),
    ("^[a-]$", ["-", "a"], ["b"]),
    (r"^[\b]$", ["\b"], ["b"]),
    (r"^[\d\D]$", ["a", "1", "\n"], ["", "11"]),
    ("^[^a]$", ["b", "\n"], ["a"]),
    ("^]$", ["]"], ["["]),
    ("^{$", ["{"], ["}"]),
    ("^a{$", ["a{"], ["a"]),
    ("^a{,2}$", ["a{,2}"], ["aa"]),
    ("^}{2}$", ["}}"], ["}{2}"]),
    ("^a{0}$", [""], ["a"]),
    ("^a{2}$", ["aa"], ["a", "aaa"]),
    ("^a{2,}$", ["aa", "aaaaa"], ["a"]),
    ("^a{2,3}?$", ["aa", "aaa"], ["a", "aaaa"]),
    ("^a+?b*?c??$", ["a", "aabbc"], ["", "b"]),
    (r"^\t\n\v\f\r\0$", ["\t\n\v\f\r\0"], ["\t"]),
    (r"^\cJ\ca$", ["\n\x01"], ["JA"]),
    (r"^\x41\u0042\u{43}\u{1F680}$", ["ABC\U0001f680"], ["ABC"]),
    (r"^\ud83d\ude80$", ["\U0001f680"], ["x"]),
    (r"^[\ud83d\ude80-\ud83d\ude82]$", ["\U0001f681"], ["\U0001f683"]),
    (r"^\/\-\_\@\#\ \.$".replace(r"\_", "_"), ["/-_@# ."], ["x"]),
    (r"^\p{L}$", ["a", "\u00e9", "\u4e2d"], ["1", "\u0301"]),
    (r"^\p{Letter}\p{Lu}\p{gc=Nd}\p{General_Category=Decimal_Number}$", ["aA1\u0661"], ["aa11"]),
    (r"^\P{L}$", ["1", "\n"], ["a"]),
    (r"^[\p{Lu}\p{Ll}]$", ["a", "A"], ["1"]),
    (r"^[^\p{L}]$", ["1"], ["a"]),
    (r"^\p{digit}\p{punct}$", ["\u0661!"], ["a!"]),
    (r"^\p{ASCII}\p{Any}$", ["a\u00e9"], ["\u00e9a"]),
    (r"^\p{Uppercase}\p{Lowercase}$", ["Aa", "\u2160\u2170"], ["aA"]),
    (r"^\p{White_Space}$", ["\u0085", " "], ["\ufeff", "\x1f"]),
    (r"^\p{Assigned}$", ["a"], ["\u0378"]),
    ("^(?<year>[0-9]{4})-(?P<m>[0-9])$", ["2024-1"], ["2024"]),
    ("^(?:ab)+$", ["ab", "abab"], ["", "aba"]),
    ("^(?!a)", ["", "b"], ["a", "ab"]),
    ("^(?=.*[A-Z])(?=.*[0-9]).{4,}$", ["abC1", "1C__"], ["abcd", "AB1", "abC1\n"]),
    ("^(?!interactive|name|style).+$", ["x", "nam", "xname"], ["", "name", "named", "styles"]),
    ("^((?!mode)(?!Mode).)*$", ["", "mod", "MODE"], ["mode", "xModex"]),
    ("^(?:(?!-->)[^])*-->$", ["-->", "--->", "x\n-->"], ["--", "-->-->"]),
    ("(?=a)*b", ["b", "ab"], ["a"]),
    ("(?=a){2}.$", ["a", "ba"], ["b", "ab"]),
    (r"\bcat\b( \bdog\b)?", ["cat", "cat dog", "a cat!", "cat dogs"], ["cats", "catdog"]),
    (r"^\bcat\b( \bdog\b)?$", ["cat", "cat dog"], ["cats", "cat dogs", "catdog"]),
    (r"^\Ba", [], ["a", "ba"]),
    (r"a\Bb", ["ab", "xabx"], ["a b"]),
    (r"(?<=a)b", ["ab", "xab"], ["b", "bb"]),
    (r"(?<!a)b", ["b", "cb"], ["ab"]),
    (r"(?<=^|,)x", ["x", ",x"], ["yx"]),
    (r"(?<![^,])x", ["x", ",x"], ["yx"]),
    ("(?i)^ab[c-e]$", ["ABC", "aBe"], ["abf"]),
    ("(?i)k", ["K", "\u212a"], ["x"]),
    ("(?i)^[^a]$", ["b"], ["a", "A"]),
    ("(?s)^.$", ["\n"], [""]),
    ("(?m)^a$", ["b\na", "a\nb", "a"], ["ba"]),
    ("^(?i:a)b$", ["Ab", "ab"], ["AB"]),
    ("(?i)^(?-i:a)b$", ["aB"], ["AB"]),
    ("^(a*)*b$", ["b", "aab"], ["", "a"]),
    ("(a|abq|c)(bQ)?$", ["a", "abq", "abQ", "abqbQ"], ["ab", "abqb"]),
    # Rounds of a repeat that match nothing count, wherever their condition holds.
    ("^(?:(?=a)|a){3}$", ["a", "aa", "aaa"], ["", "b", "aaaa"]),
    (r"^(?:\b|a){2,3}$", ["a", "aa", "aaa"], ["", "aaaa"]),
    # Repeats are multiplied, added up and united where that leaves no gap.
    ("^(a{3,4}){1,2}$", ["aaa", "aaaa", "a" * 6, "a" * 8], ["aa", "a" * 5, "a" * 9]),
    ("^(a{2,3}){2,4}$", ["a" * 4, "a" * 12], ["aaa", "a" * 13]),
    ("^(a{2}){0,2}$", ["", "aa", "aaaa"], ["a", "aaa"]),
    ("^(a{2,}){0,1}$", ["", "aa", "aaa"], ["a"]),
    ("^(a{2}){3}$", ["a" * 6], ["a" * 5, "a" * 7]),
    ("^a{2}a*a{1,2}a$", ["a" * 4, "a" * 9], ["aaa"]),
    ("^(?:a{2}|a{4})$", ["aa", "aaaa"], ["a", "aaa"]),
    ("^(?:a{2}|a{3,4}|a|)b$", ["b", "ab", "aab", "aaab", "aaaab"], ["aaaaab"]),
    ("^(?:x{2,4}y{2,4}|x{2,3}y{1,5})$", ["xxxxyyyy", "xxy", "xxxyyyyy"], ["xxxxy", "xxxxyyyyy"]),
    ("[\x00-\u2e7f]+", ["abc", "\x00"], ["", "\u3042"]),
]


@pytest.mark.parametrize(("pattern", "found", "missing"), ACCEPTED, ids=[c[0] for c in ACCEPTED])
def test_language(
    automaton: RegexRunner, pattern: str, found: list[str], missing: list[str]
) -> None:
    automaton.load(compile_ecma(pattern))
    assert [text for text in found if not automaton.accepts(text)] == []
    assert [text for text in missing if automaton.accepts(text)] == []


MALFORMED = [
    ("a{5,2}", 1, "min repeat greater than max repeat"),
    ("^[0-9{3}$", 1, "unterminated character class"),
    ("(a", 0, "missing )"),
    ("a)", 1, "unbalanced parenthesis"),
    ("*a", 0, "nothing to repeat"),
    ("a|+", 2, "nothing to repeat"),
    ("a**", 2, "nothing to repeat"),
    ("a{1}{2}", 4, "nothing to repeat"),
    ("^*", 1, "nothing to repeat"),
    (r"\b+", 2, "nothing to repeat"),
    ("(?<=a)*", 6, "nothing to repeat"),
    ("[z-a]", 1, "bad character range"),
    ("a\\", 1, "trailing backslash"),
    (r"\x4", 0, "\\x needs"),
    (r"\u12", 0, "\\u needs"),
    (r"\u{110000}", 0, "\\u needs"),
    (r"\c1", 0, "\\c needs"),
    (r"\01", 0, "octal escape"),
    (r"[\1]", 1, "octal escape"),
    (r"x\Z", 1, "unknown escape \\Z"),
    (r"\A", 0, "unknown escape \\A"),
    (r"\a", 0, "unknown escape \\a"),
    (r"\pL", 0, "needs a property in braces"),
    ("a(?i)b", 1, "flags not at the start"),
    ("(?x)a", 2, "unknown flag"),
    ("(?<1>a)", 1, "bad group name"),
    ("(?%a)", 0, "unknown kind of group"),
]


@pytest.mark.parametrize(
    ("pattern", "position", "message"), MALFORMED, ids=[c[0] for c in MALFORMED]
)
def test_malformed(pattern: str, position: int, message: str) -> None:
    with pytest.raises(RegexError) as caught:
        compile_ecma(pattern)
    assert caught.value.position == position
    assert caught.value.pattern == pattern
    assert message in str(caught.value)


UNSUPPORTED = [
    (r"(a)\1", "backreference"),
    (r"(?<n>a)\k<n>", "backreference"),
    ("(?P<n>a)(?P=n)", "backreference"),
    ("(?<=ab)c", "lookbehind"),
    ("(?<!a*)c", "lookbehind"),
    ("(?>a)", "atomic group"),
    ("a++", "possessive quantifier"),
    ("(a)?(?(1)b)", "conditional group"),
    ("(?#x)a", "comment"),
    (r"\p{Script=Greek}", r"\p{Script=Greek}"),
    (r"\P{Emoji}", r"\P{Emoji}"),
]


@pytest.mark.parametrize(("pattern", "feature"), UNSUPPORTED, ids=[c[0] for c in UNSUPPORTED])
def test_unsupported_by_name(pattern: str, feature: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_ecma(pattern)
    assert caught.value.feature == feature
    assert feature in str(caught.value)


def test_nesting_is_bounded(automaton: RegexRunner) -> None:
    automaton.load(compile_ecma("(a|b" * 500 + ")*" * 500))
    assert automaton.accepts("ab")
    for compiler in (compile_ecma, compile_python):
        with pytest.raises(LimitExceededError) as caught:
            compiler("(" * 60000 + "a" + ")" * 60000)
        assert caught.value.limit == "nesting"
        assert "nesting too deep" in str(caught.value)


def test_bounds_longer_than_any_text(automaton: RegexRunner) -> None:
    with pytest.raises(LimitExceededError):
        compile_ecma("a{99999999999}")
    automaton.load(compile_ecma("^a{2,99999999999}$"))
    assert automaton.accepts("aaa")
    assert not automaton.accepts("a")


def test_questions_about_the_future(automaton: RegexRunner) -> None:
    automaton.load(compile_ecma("foo"))
    trace = automaton.trace("xfoo!")
    assert [v.distance for v in trace] == [3, 3, 2, 1, 0, 0]
    assert [v.constant for v in trace] == ["no"] * 4 + ["everything"] * 2

    automaton.load(compile_ecma("^[a-c]{2}$"))
    trace = automaton.trace("abc")
    assert [v.distance for v in trace] == [2, 1, 0, NOTHING]
    assert [v.live for v in trace] == [True, True, True, False]
    assert trace[3].constant == "nothing"

    # Everything, but not in form: any text is empty or begins with "a" or does not.
    automaton.load(compile_ecma(r"^(a[^]*|[^a][^]*)?$"))
    assert automaton.trace("")[0].constant == "everything"
    automaton.load(compile_ecma("^(?:[^a]|a[^])*a?$"))
    assert automaton.trace("")[0].constant == "everything"
    automaton.load(compile_ecma("^.*$"))
    assert automaton.trace("x")[1].constant == "no"
    assert automaton.trace("\n")[1].constant == "nothing"

    # Nothing, but not in form.
    automaton.load(compile_ecma("^(?=a)(?=b)"))
    assert automaton.trace("")[0].constant == "nothing"
    automaton.load(compile_ecma("^(?=[^]*x)[^x]*$"))
    start = automaton.trace("")[0]
    assert (start.live, start.distance, start.constant) == (False, NOTHING, "nothing")

    # A round of a loop that leads back to where the search for life began is not dead.
    automaton.load(compile_ecma("^(?=[^]*d)x(?:ab)*[cd]+$"))
    assert all(v.live for v in automaton.trace("xababcd"))

    automaton.load(compile_ecma(r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,}$"))
    assert [v.distance for v in automaton.trace("aaaaaaa")] == [8, 7, 6, 5, 4, 3, 2, 2]


LARGE = [
    ("^.{0,10000}$", "x" * 10000, "x" * 10001, 10100),
    ("^[a-z]{3,500}$", "x" * 500, "x" * 501, 600),
    ("[a-z]{3,500}x$", "x" * 700, "x" * 700 + "Y", 20),
    ("^(x{1,50}){1,50}$", "x" * 2500, "x" * 2501, 2600),
    ("^(x{1,50}y?){1,50}$", "x" * 700, "z", 800),
    ("^((x{1,20}y?){1,20}z?){1,20}$", "x" * 300, "y", 400),
    ("^(a+)+$", "a" * 3000, "a" * 3000 + "b", 10),
    ("(a*)*b", "a" * 3000 + "b", "a" * 3000, 10),
    ("^(a?){1000}a{1000}$", "a" * 1500, "a" * 999, 2100),
    ("^" + "a?b?" * 2500 + "$", "ab" * 20, "c", 60),
    ("^" + "abcdefghij" * 10000, "abcdefghij" * 10000, "abcdefghij" * 9999, 100100),
    ("a.{20}$", "a" * 21, "a" * 20, 100),
]


@pytest.mark.parametrize(
    ("pattern", "good", "bad", "states"), LARGE, ids=[c[0][:30] for c in LARGE]
)
def test_large_patterns_stay_small(
    automaton: RegexRunner, pattern: str, good: str, bad: str, states: int
) -> None:
    automaton.load(compile_ecma(pattern))
    assert automaton.accepts(good)
    assert not automaton.accepts(bad)
    assert automaton.size()[0] <= states


def test_thousands_of_literals(automaton: RegexRunner) -> None:
    words = [f"w{n * 7919 % 100003:05}" for n in range(5000)]
    automaton.load(compile_ecma("^(?:" + "|".join(words) + ")$"))
    assert all(automaton.accepts(word) for word in words[::100])
    assert not automaton.accepts("w")
    states, size = automaton.size()
    assert states < 600
    assert size < 20_000_000


def test_max_states(automaton: RegexRunner) -> None:
    program = compile_ecma("^a{100}$")
    automaton.load(program, max_states=50)
    with pytest.raises(ValueError, match="limit max_states"):
        automaton.accepts("a" * 100)
    automaton.load(program, max_states=102)
    assert automaton.accepts("a" * 100)


@pytest.mark.parametrize(
    "program",
    [
        [],
        [2, 0, 1, 2, 0],  # version
        [1, 0, 0],  # no nodes
        [1, 0, 1],  # ends too early
        [1, 0, 1, 99],  # operator
        [1, 0, 1, 1, 0],  # no such set
        [1, 1, 1, 1, 5, 4, 1, 0],  # interval backwards
        [1, 1, 1, 2, 5, 6, 6, 7, 1, 0],  # intervals overlap
        [1, 1, 1, 1, 5, 0x110000, 1, 0],  # no code point
        [1, 0, 1, 2, 1, 0],  # its own child
        [1, 0, 2, 2, 0, 4, 0, 2, 1],  # bounds backwards
        [1, 0, 2, 2, 0, 5, 2, 0],  # flag
        [1, 0, 1, 2, 0, 7],  # something left
        [1, -1, 1, 2, 0],
        [1, 0, 1, 2, 2000000000],
    ],
)
def test_malformed_programs_are_refused(automaton: RegexRunner, program: list[int]) -> None:
    with pytest.raises(ValueError, match="error regex program"):
        automaton.load(program)


def test_equivalent_code_points_share_a_class(automaton: RegexRunner) -> None:
    assert automaton.load(compile_ecma(r"\p{L}")) == 2
    assert automaton.load(compile_ecma("^[ace][bdf]")) == 3
    assert automaton.load(compile_ecma("^[^]*$")) == 1


@pytest.mark.data
def test_regex_cases(automaton: RegexRunner, shared_root: Path) -> None:
    seen = 0
    for line in (shared_root / "cases" / "cases.jsonl").read_text("utf-8").split("\n"):
        if not line:
            continue
        case = json.loads(line)
        if case["kind"] != "regex" or "regex" not in case["input"]:
            continue
        seen += 1
        pattern = case["input"]["regex"]
        if case["expect_error"]:
            for compiler in (compile_python, compile_ecma):
                with pytest.raises(ConstrainError, match=case["expect_error"].split()[0]):
                    compiler(pattern)
            continue
        automaton.load(compile_python(pattern))
        assert [t for t in case["valid"] if not automaton.accepts(t)] == [], case["id"]
        assert [t for t in case["invalid"] if automaton.accepts(t)] == [], case["id"]
    assert seen >= 10


@pytest.mark.data
@pytest.mark.parametrize("draft", ["draft2020-12", "draft2019-09", "draft7", "draft6", "draft4"])
@pytest.mark.parametrize("file", ["ecmascript-regex", "non-bmp-regex"])
def test_official_patterns(
    automaton: RegexRunner, shared_root: Path, draft: str, file: str
) -> None:
    folder = shared_root / "data" / "json-schema-test-suite" / "tests" / draft / "optional"
    seen = 0
    for group in json.loads((folder / f"{file}.json").read_text("utf-8")):
        schema = group["schema"]
        pattern = schema.get("pattern")
        if pattern is None:
            if schema.get("additionalProperties", True) is not False:
                continue
            (pattern,) = schema["patternProperties"]
        automaton.load(compile_ecma(pattern))
        for test in group["tests"]:
            data = test["data"]
            texts = (
                [data] if isinstance(data, str) else list(data) if "pattern" not in schema else []
            )
            seen += len(texts)
            accepted = all(automaton.accepts(text) for text in texts)
            assert accepted == test["valid"] or not texts, (pattern, test["description"])
    assert seen > 0
