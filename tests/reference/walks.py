"""Random walks under the masks: whatever is sampled, the text must finish and be valid.

A walk wanders for a while (tokens drawn from the mask, structure preferred so that it gets
somewhere), then turns home: it takes the end of sequence where it may, closes what can be closed,
and otherwise tries the words that the schema mentions. Only masks are consulted, plus a scanner
that knows where in a JSON text the walk stands; nothing of the machine.

How a walk can end:

* ``finished``: the end of sequence was taken;
* ``dead``: no token was allowed, or nothing but whitespace was, for ever: a dead end;
* ``unfinished``: the way home was not found in the tokens allowed for it, by none of several
  attempts. That may be the walk's lack of skill, so such texts are listed and looked at.

``python -m tests.reference.walks --schemas 300`` runs walks over MaskBench and judges the texts.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import random
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference import data, oracle, vocabularies
from tests.reference.drive import allowed_ids, bit, new_row
from tests.reference.vocabularies import TestVocabulary

WHITESPACE = b" \t\n\r"
_COMPLETION_BYTES = 50_000
_LONG_NUMBER = 60
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass
class Scanner:
    """Where a JSON text stands: the open brackets, and whether inside a string or a key."""

    stack: list[int] = field(default_factory=list)
    in_string: bool = False
    escaped: bool = False
    expects_key: bool = False
    is_key: bool = False
    in_number: bool = False

    def feed(self, text: bytes) -> None:
        if text:
            self.in_number = text[-1] in b"0123456789.eE+-"
        for byte in text:
            if self.in_string:
                if self.escaped:
                    self.escaped = False
                elif byte == 0x5C:
                    self.escaped = True
                elif byte == 0x22:
                    self.in_string = False
            elif byte == 0x22:
                self.in_string = True
                self.is_key = self.expects_key
                self.expects_key = False
            elif byte in b"{[":
                self.stack.append(byte)
                self.expects_key = byte == 0x7B
            elif byte in b"}]":
                if self.stack:
                    self.stack.pop()
                self.expects_key = False
            elif byte == 0x2C:
                self.expects_key = bool(self.stack) and self.stack[-1] == 0x7B

    def copy(self) -> Scanner:
        return dataclasses.replace(self, stack=list(self.stack))


@dataclass
class _Trail:
    """A walk under way."""

    matcher: Any
    scanner: Scanner = field(default_factory=Scanner)
    ids: list[int] = field(default_factory=list)
    text: bytearray = field(default_factory=bytearray)
    status: str = "open"
    note: str = ""

    def take(self, token: int, written: bytes) -> None:
        self.matcher.advance(token)
        self.ids.append(token)
        self.text += written
        self.scanner.feed(written)

    def ended(self, status: str, note: str = "") -> _Trail:
        self.status, self.note = status, note
        return self


@dataclass
class Walk:
    """What became of one walk; `text` is everything written, `steps` counts tokens."""

    status: str
    text: bytes
    steps: int
    note: str = ""


class Lexicon:
    """What a walk knows about a vocabulary: weights for wandering, single bytes for going home."""

    def __init__(self, vocabulary: TestVocabulary) -> None:
        self.vocabulary = vocabulary
        size = vocabulary.vocabulary.size
        self.tokens: list[bytes | None] = list(vocabulary.tokens)
        self.tokens += [None] * (size - len(self.tokens))
        self.single = np.full(256, -1, dtype=np.int64)
        weights = np.zeros(size)
        blank = np.zeros(size, dtype=bool)
        for token_id, text in enumerate(self.tokens):
            if not text:
                continue
            if len(text) == 1 and self.single[text[0]] < 0:
                self.single[text[0]] = token_id
            structural = sum(byte in b'{}[]":,' for byte in text)
            weights[token_id] = 1.0 + 60.0 * structural / len(text)
            if not text.strip(WHITESPACE):
                blank[token_id] = True
                weights[token_id] = 0.3
        self.weights = weights
        self.blank = blank


@dataclass(frozen=True)
class Words:
    """Strings that a schema asks for: member names (required ones first) and string values."""

    names: list[str]
    values: list[str]

    @staticmethod
    def of(schema: Any) -> Words:
        required: set[str] = set()
        names: set[str] = set()
        values: set[str] = set()
        todo = [schema]
        while todo:
            item = todo.pop()
            if isinstance(item, list):
                todo.extend(item)
            if not isinstance(item, dict):
                continue
            todo.extend(item.values())
            for keyword, found in (("required", required), ("enum", values)):
                listed = item.get(keyword)
                if isinstance(listed, list):
                    found.update(word for word in listed if isinstance(word, str))
            for keyword in ("properties", "dependentRequired", "dependencies"):
                members = item.get(keyword)
                if isinstance(members, dict):
                    names.update(members)
            # A pattern without its marks is often a name that it matches.
            patterns = item.get("patternProperties")
            if isinstance(patterns, dict):
                names.update(re.sub(r"\W", "", pattern) for pattern in patterns)
                values.update(re.sub(r"\W", "", pattern) for pattern in patterns)
            if isinstance(item.get("pattern"), str):
                values.add(re.sub(r"\W", "", item["pattern"]))
            for keyword in ("const", "default"):
                if isinstance(item.get(keyword), str):
                    values.add(item[keyword])
            examples = item.get("examples")
            if isinstance(examples, list):
                values.update(word for word in examples if isinstance(word, str))
        order = sorted(required, key=len) + sorted(names - required, key=len)
        return Words(order, sorted(values, key=len))


def _quoted(words: Iterable[str]) -> list[bytes]:
    """The words as they stand in a JSON text after the opening quote."""
    texts = (json.dumps(word, ensure_ascii=False)[1:] for word in words if len(word) <= 200)
    return [text.encode("utf-8", "replace") for text in texts]


class Walker:
    """Walks of one compiled constraint; `words` are the strings worth trying on the way home."""

    def __init__(self, compiled: Any, lexicon: Lexicon, words: Words) -> None:
        self.compiled = compiled
        self.lexicon = lexicon
        self.eos = set(lexicon.vocabulary.eos_ids)
        self.row = new_row(lexicon.vocabulary.vocabulary)
        self.names = _quoted(words.names)
        self.values = _quoted(words.values)

    def _fill(self, matcher: Any) -> bool:
        """Fill the row; False where the matcher says that no token can continue."""
        import constrain

        try:
            matcher.fill_bitmask(self.row, 0)
        except constrain.UnsatisfiableError:
            return False
        return True

    def allowed(self, matcher: Any) -> np.ndarray:
        """The allowed ids; none where the matcher says that no token can continue."""
        if not self._fill(matcher):
            return np.empty(0, dtype=np.int64)
        return allowed_ids(np.asarray(self.row)[0], self.lexicon.vocabulary.vocabulary.size)

    def wander(self, rng: random.Random, length: int) -> tuple[list[int], bytes]:
        """Up to `length` random tokens from the start, never the end of sequence: ids and text."""
        trail = self._wander(rng, length, may_end=False)
        return trail.ids, bytes(trail.text)

    def walk(self, rng: random.Random, wander: int, home: int = 800, attempts: int = 6) -> Walk:
        """Wander for up to `wander` tokens, then take up to `home` tokens to finish."""
        trail = self._wander(rng, wander, may_end=True)
        text, steps = bytes(trail.text), len(trail.ids)
        if trail.status != "open":
            return Walk(trail.status, text, steps, trail.note)
        last = Walk("unfinished", text, steps)
        for attempt in range(attempts):
            last = self._home(trail, rng, home, attempt)
            last.steps += steps
            if last.status != "unfinished":
                return last
        return self._completed(trail.matcher, text, steps) or last

    def _wander(self, rng: random.Random, length: int, *, may_end: bool) -> _Trail:
        trail = _Trail(self.compiled.matcher())
        blanks = 0
        while len(trail.ids) < length:
            ids = self.allowed(trail.matcher)
            if not len(ids):
                return trail.ended("dead", "no token is allowed")
            ends = [i for i in self.eos if i in ids]
            only_end = len(ids) == len(ends)
            if only_end and not may_end:
                break
            if ends and may_end and (only_end or rng.random() < 0.05):
                trail.matcher.advance(ends[0])
                return trail.ended("finished")
            ids = np.array([i for i in ids if i not in self.eos]) if ends else ids
            only_blank = bool(self.lexicon.blank[ids].all())
            blanks = blanks + 1 if only_blank and not ends else 0
            if blanks > 40:
                return trail.ended("dead", "nothing but whitespace")
            weights = np.cumsum(self.lexicon.weights[ids])
            token = int(ids[np.searchsorted(weights, rng.random() * weights[-1], side="right")])
            trail.take(token, self.lexicon.tokens[token] or b"")
        return trail

    def _completed(self, matcher: Any, text: bytes, steps: int) -> Walk | None:
        """The walk that the machine's own shortest way home ends, if it knows one."""
        completion = matcher.completion(_COMPLETION_BYTES)
        if completion is None:
            return None
        trial = matcher.fork()
        for byte in completion:
            if not trial.try_advance(int(self.lexicon.single[byte])):
                return Walk("dead", text, steps, f"its own completion {completion!r} is refused")
        if not trial.is_accepting:
            return Walk("dead", text, steps, f"its own completion {completion!r} is no end")
        return Walk("finished", text + completion, steps, "completed")

    def _home(self, trail: _Trail, rng: random.Random, limit: int, attempt: int) -> Walk:
        matcher = trail.matcher.fork()
        scanner = trail.scanner.copy()
        text = bytearray(trail.text)
        steps = blanks = digits = 0
        while steps < limit:
            if not self._fill(matcher):
                return Walk("dead", bytes(text), steps, "no token is allowed")
            row = np.asarray(self.row)[0]
            end = next((i for i in self.eos if bit(row, i)), None)
            if end is not None:
                matcher.advance(end)
                return Walk("finished", bytes(text), steps)
            written = b""
            if scanner.in_string and not scanner.escaped:
                written = self._word(matcher, scanner, rng, attempt, self._can(0x22))
            if not written:
                token = self._token(matcher, scanner, rng, attempt)
                matcher.advance(token)
                written = self.lexicon.tokens[token] or b""
            text += written
            scanner.feed(written)
            steps += 1
            blanks = blanks + 1 if not written.strip(WHITESPACE) and not scanner.in_string else 0
            if blanks > 60:
                return Walk("dead", bytes(text), steps, "nothing but whitespace")
            digits = digits + 1 if scanner.in_number and not scanner.in_string else 0
            if digits > _LONG_NUMBER:
                # An integer that began with a fraction ends by the right exponent only.
                lost = Walk("unfinished", bytes(text), steps, "lost in a number")
                return self._completed(matcher, bytes(text), steps) or lost
        return Walk("unfinished", bytes(text), steps, f"stuck after {bytes(text)[-60:]!r}")

    def _word(
        self, matcher: Any, scanner: Scanner, rng: random.Random, attempt: int, may_close: bool
    ) -> bytes:
        """Write a whole word of the schema and its closing quote, if one is allowed here."""
        if may_close and (not scanner.is_key or attempt % 2):
            return b""
        words = self.names if scanner.is_key else self.values
        if attempt > 1:
            words = rng.sample(words, len(words))
        for word in words:
            trial = matcher.fork()
            ids = [int(self.lexicon.single[byte]) for byte in word]
            if all(i >= 0 and trial.try_advance(i) for i in ids):
                for token in ids:
                    matcher.advance(token)
                return word
        return b""

    def _can(self, byte: int) -> bool:
        """Whether the filled row allows the token that is this single byte."""
        token = int(self.lexicon.single[byte])
        return token >= 0 and bit(np.asarray(self.row)[0], token)

    def _token(self, matcher: Any, scanner: Scanner, rng: random.Random, attempt: int) -> int:
        """The token that most likely leads home; the row is filled."""
        single = self.lexicon.single
        if scanner.in_string:
            order = list(b'"')
        else:
            digits = list(b"0123456789")
            value = [*b'"ntf', 0x30, *b"[{"]
            if attempt:
                rng.shuffle(digits)
                rng.shuffle(value)
            if scanner.in_number:
                order = [*b"}],", *digits, *b".e-+"]
                if attempt > 2 and rng.random() < 0.2:
                    order = [*b"}],", *b".e-+", *digits]
            else:
                order = [*b"}]:,", *value, *digits, *b"-"]
        for byte in order:
            if self._can(byte):
                return int(single[byte])
        plain = [int(single[byte]) for byte in range(256) if self._can(byte)]
        if scanner.in_string:
            # Where a pattern asks for a mark that letters never lead to, a mark has to be drawn.
            drawn = rng.random()
            wanted = b"./:-@_ " if drawn < 0.3 else b"0123456789" if drawn < 0.45 else _LETTERS
            liked = [i for i in plain if (self.lexicon.tokens[i] or b"") in wanted]
            plain = liked or [i for i in plain if i != single[0x5C]] or plain
        else:
            plain = [i for i in plain if not self.lexicon.blank[i]] or plain
        return rng.choice(plain) if plain else int(rng.choice(self.allowed(matcher)))


@dataclass
class Report:
    """Counts over many walks, and the texts worth looking at."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    notes: list[str] = field(default_factory=list)

    def add(self, label: str, walk: Walk, judge: oracle.Oracle | None) -> None:
        """Count a walk and judge its text; `judge` is None where nobody can."""
        self.counts[walk.status] += 1
        self.counts["steps"] += walk.steps
        if walk.note == "completed":
            self.counts["finished by its own completion"] += 1
        shown = walk.text if len(walk.text) < 300 else walk.text[:140] + b" ... " + walk.text[-140:]
        if walk.status != "finished":
            self.notes.append(f"{walk.status} {label}: {walk.note}: {shown!r}")
            return
        try:
            value = oracle.parse(walk.text)
        except oracle.NotJsonError as error:
            self.counts["not_json"] += 1
            self.notes.append(f"not_json {label}: {error}: {shown!r}")
            return
        if judge is None:
            self.counts["unjudged"] += 1
            return
        try:
            errors = judge.errors(value)
        except oracle.OracleError as error:
            self.counts["unjudged"] += 1
            self.notes.append(f"unjudged {label}: {error}")
            return
        if errors:
            self.counts["invalid"] += 1
            self.notes.append(f"invalid {label}: {errors[0]}: {shown!r}")


def walks_over_maskbench(
    vocabulary: TestVocabulary,
    schemas: Iterable[data.BenchSchema],
    *,
    walks: int,
    wander: int,
    seed: int,
    **options: Any,
) -> Report:
    """`walks` walks over each schema, wandering up to `wander` tokens, judged by the oracle."""
    import constrain

    report = Report()
    lexicon = Lexicon(vocabulary)
    check_formats = options.get("formats", "assert") == "assert"
    for bench in schemas:
        try:
            spec = constrain.JsonSchema(bench.schema, **options)
            compiled = constrain.compile(spec, vocabulary.vocabulary)
        except constrain.ConstrainError as error:
            report.counts["not_compiled"] += 1
            report.counts[f"not_compiled: {type(error).__name__}"] += 1
            continue
        report.counts["schemas"] += 1
        try:
            judge = oracle.Oracle(bench.schema, check_formats=check_formats)
        except Exception:
            judge = None
        walker = Walker(compiled, lexicon, Words.of(bench.schema))
        for index in range(walks):
            rng = random.Random(f"{seed}/{bench.name}/{index}")
            wanders = 0 if index == 0 else rng.randrange(1, wander + 1)
            walk = walker.walk(rng, wanders)
            report.add(f"{bench.name} (seed {seed}, walk {index})", walk, judge)
    return report


def main() -> None:
    """Walks over MaskBench from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--schemas", type=int, default=50, help="how many, evenly spread")
    parser.add_argument("--names", nargs="*", help="only schemas whose names contain one of these")
    parser.add_argument("--walks", type=int, default=4, help="per schema")
    parser.add_argument("--wander", type=int, default=60, help="tokens before turning home")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocabulary", default="small", help="small, bytes, deepseek, ...")
    parser.add_argument("--numbers", default="plain")
    parser.add_argument("--whitespace", default="bounded")
    parser.add_argument("--formats", default="assert")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    root = data.require_root()
    schemas = data.maskbench(root)
    if arguments.names:
        schemas = [s for s in schemas if any(part in s.name for part in arguments.names)]
    else:
        rng = random.Random(arguments.seed)
        schemas = rng.sample(schemas, min(arguments.schemas, len(schemas)))
    start = time.perf_counter()
    report = walks_over_maskbench(
        vocabularies.load(arguments.vocabulary),
        schemas,
        walks=arguments.walks,
        wander=arguments.wander,
        seed=arguments.seed,
        numbers=arguments.numbers,
        whitespace=arguments.whitespace,
        formats=arguments.formats,
    )
    for note in report.notes:
        print(note)
    for name, count in sorted(report.counts.items()):
        print(f"{name:>28} {count}")
    print(f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
