"""Formats: the official suite, calendars and clocks by arithmetic, and second opinions."""

from __future__ import annotations

import datetime
import ipaddress
import json
import random
from pathlib import Path

import pytest

from constrain.errors import ConstrainError
from constrain.regex import FORMATS, NARROWED, compile_ecma, compile_format
from tests.native.regex_runner import RegexRunner, runner

# Valid texts of the official suite that are refused, since their format is narrowed, as counted in
# its draft 2020-12.  Everything else agrees.
REFUSED = {"hostname": 15, "idn-hostname": 6, "idn-email": 1, "regex": 3}


@pytest.fixture(scope="module")
def automaton() -> RegexRunner:
    return runner()


def accepts(automaton: RegexRunner, name: str, text: str) -> bool:
    program = compile_format(name)
    assert program is not None
    automaton.load(program)
    return automaton.accepts(text)


@pytest.mark.data
@pytest.mark.parametrize("draft", ["2020-12", "2019-09", "7", "6", "4"])
def test_official_formats(automaton: RegexRunner, shared_root: Path, draft: str) -> None:
    folder = shared_root / "data" / "json-schema-test-suite" / "tests" / f"draft{draft}"
    refused: dict[str, int] = {}
    seen = 0
    for path in sorted((folder / "optional" / "format").glob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            name = group["schema"].get("format")
            program = compile_format(name, draft) if name else None
            if program is None:
                continue
            automaton.load(program)
            for test in group["tests"]:
                text = test["data"]
                if not isinstance(text, str):
                    continue
                seen += 1
                accepted = automaton.accepts(text)
                assert not accepted or test["valid"], (name, text, test["description"])
                if test["valid"] and not accepted:
                    refused[name] = refused.get(name, 0) + 1
                    assert name in NARROWED
    assert seen > 50
    if draft == "2020-12":
        assert all(refused.get(name, 0) <= REFUSED.get(name, 0) for name in FORMATS), refused


def test_unknown_formats() -> None:
    assert compile_format("no-such-format") is None
    assert set(NARROWED) <= set(FORMATS)


def test_every_day(automaton: RegexRunner) -> None:
    program = compile_format("date")
    assert program is not None
    automaton.load(program)
    for year in (1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9996):
        for month in range(14):
            for day in (0, 1, 9, 10, 28, 29, 30, 31, 32):
                try:
                    datetime.date(year, month, day)
                    valid = True
                except ValueError:
                    valid = False
                text = f"{year:04}-{month:02}-{day:02}"
                assert automaton.accepts(text) == valid, text


def test_leap_seconds(automaton: RegexRunner) -> None:
    program = compile_format("time")
    assert program is not None
    automaton.load(program)
    chooser = random.Random(1)
    for _ in range(1500):
        offset = chooser.randrange(-1439, 1440)
        local = (1439 + offset) % 1440
        if chooser.random() < 0.5:
            local = (local + chooser.choice([1, -1, 60, -60, 61, 720])) % 1440
        sign = "-" if offset < 0 else "+"
        zone = f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
        fraction = chooser.choice(["", ".5"])
        text = f"{local // 60:02}:{local % 60:02}:60{fraction}{zone}"
        assert automaton.accepts(text) == ((local - offset) % 1440 == 1439), text


def test_addresses(automaton: RegexRunner) -> None:
    chooser = random.Random(2)
    program = compile_format("ipv6")
    assert program is not None
    automaton.load(program)
    accepted = 0
    for _ in range(1500):
        groups = [chooser.choice(["0", "1f", "FFFF", "12345", ""]) for _ in range(8)]
        groups = [g for g in groups if g != "12345" or chooser.random() < 0.05]
        text = ":".join(groups[: chooser.randint(1, 9)])
        text = text.replace(":::", "::") if chooser.random() < 0.8 else text
        if chooser.random() < 0.2:
            text += chooser.choice([":1.2.3.4", ":1.2.3.400", ":01.2.3.4", ":1.2.3"])
        try:
            ipaddress.IPv6Address(text)
            valid = True
        except ValueError:
            valid = False
        accepted += valid
        assert automaton.accepts(text) == valid, text
    assert accepted > 100
    program = compile_format("ipv4")
    assert program is not None
    automaton.load(program)
    for text in ("0.0.0.0", "255.255.255.255", "1.20.199.249"):
        assert automaton.accepts(text)
    for text in ("256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n", "\u0661.2.3.4"):
        assert not automaton.accepts(text)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", ["2024-02-29T12:00:00Z"], ["2023-02-29T12:00:00Z", "2024-02-29 12:00:00Z"]),
        ("duration", ["P1Y", "PT1M", "P3W"], ["P", "PT", "P1Y1D", "P1WT1H"]),
        (
            "email",
            ["a@b.c", "a'b+c@d", '"a b"@c'],
            ["a@b-", "a@-b", "a..b@c", "a@b..c", "\u00e9@c"],
        ),
        ("idn-email", ["\u00e9@\u00fc.de", "a@b.c"], ["@b", "a@-\u00fc"]),
        ("hostname", ["a", "a-b.c", "a--b", "1.2"], ["-a", "a-", "a..b", "xn--a", "ab--c", "a_b"]),
        ("hostname", ["a" * 63, ".".join(["a" * 63] * 3) + "." + "b" * 61], ["a" * 64]),
        ("hostname", [], [".".join(["a" * 63] * 3) + "." + "b" * 62]),
        ("uri", ["urn:a", "a:", "http://[::1]:80/?a#b", "a:b%20"], ["a", "//a", "a:b c", "a:%2"]),
        ("uri-reference", ["", "a", "//a", "./a:b", "?q"], ["a b", "1:b", "[", "\u00e9"]),
        ("iri", ["http://\u00e9/\u4e2d"], ["\u4e2d", "http://a\ufffe/"]),
        ("iri-reference", ["\u4e2d"], ["a b"]),
        ("uri-template", ["{a}", "/x{?q,r*}{+p:3}"], ["{", "{}", "{a", "}"]),
        ("uuid", ["123e4567-E89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
        ("json-pointer", ["", "/", "/a~1b/~0", "/\n"], ["a", "/~2", "/~"]),
        ("relative-json-pointer", ["0", "1#", "10/a"], ["", "#", "01", "-1", "0a"]),
        ("regex", ["", "a|b", "(a(b(c)))*", "[a-f^-]", r"\d{2,4}\p{L}"], ["(", "[", "a**", r"\a"]),
    ],
)
def test_examples(automaton: RegexRunner, name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not accepts(automaton, name, text)] == []
    assert [text for text in bad if accepts(automaton, name, text)] == []


def test_what_regex_accepts_can_be_compiled(automaton: RegexRunner) -> None:
    program = compile_format("regex")
    assert program is not None
    automaton.load(program)
    chooser = random.Random(3)
    pieces = ["a", "(", ")", "[", "]", "*", "+", "?", "{2}", "{1,3}", "{3,1}", "{", "}", "|", "^"]
    pieces += [
        "$",
        r"\d",
        r"\b",
        r"\a",
        "(?:",
        "(?=",
        "(?<",
        "-",
        "z-a",
        "a-z",
        ",",
        r"\u0041",
        ".",
    ]
    accepted = 0
    for _ in range(6000):
        pattern = "".join(chooser.choice(pieces) for _ in range(chooser.randint(1, 7)))
        if not automaton.accepts(pattern):
            continue
        accepted += 1
        compile_ecma(pattern)
        assert r"\a" not in pattern
    assert accepted > 300


def test_idn_host_names_have_a_second_opinion(automaton: RegexRunner) -> None:
    idna = pytest.importorskip("idna")
    program = compile_format("idn-hostname")
    assert program is not None
    automaton.load(program)
    chooser = random.Random(4)
    alphabet = (
        "ab19-.l\u00b7\u00e9\u00df\u03b1\u0375\u05d0\u05f3\u0628\u0660\u06f0\u0915\u094d\u200d"
    )
    alphabet += "\u200c\u30fb\u3042\u4e2d\uac00\u3002\u0301\u00c9\u0e01\u0e48\u07fa"
    accepted = 0
    for _ in range(15000):
        text = "".join(chooser.choice(alphabet) for _ in range(chooser.randint(1, 6)))
        if not automaton.accepts(text):
            continue
        accepted += 1
        try:
            idna.encode(text)
        except idna.IDNAError as error:
            raise AssertionError(f"{text!r}: {error}") from error
    assert accepted > 500
    # The bounds of length: the longest labels of the costliest code points still fit.
    for label in ("\u4e00\uac00" * 4 + "\u9fa5", "\u00e0\u0561" * 7):
        assert automaton.accepts(label)
        assert len(label.encode("punycode")) <= 59


def test_errors_are_typed() -> None:
    with pytest.raises(ConstrainError):
        compile_ecma("(")
