"""A judge of constraints made of constraints, which knows their meaning and nothing of automata.

`ends` splits a text in all ways: where can a part that begins here end?  JSON parts are judged by
`json` and `jsonschema` on the slice; tokens are bytes as `Vocabulary.token_bytes` spells them.
`Judge.accepts` says whether a whole text is valid.  Costs: each place of the text times each part,
with the schema asked for every slice; for texts of tens of bytes.

A world knows the schema of each `JsonSchema` in it and some valid values (`Known`); `sample`
gives a random valid text, for tests that everything valid is allowed.
"""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import jsonschema

import constrain

_BLANKS = b" \t\n\r"
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')

Known = dict[int, tuple[Any, list[Any]]]
"""By `id` of a part: its schema and valid values, or its pattern and matching texts."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


class Judge:
    """What the texts of a spec are."""

    def __init__(self, spec: Any, vocabulary: constrain.Vocabulary, known: Known) -> None:
        self.spec = spec
        self.known = known
        self.vocabulary = vocabulary
        self._memo: dict[Any, frozenset[int]] = {}
        self._data = b""

    def accepts(self, data: bytes) -> bool:
        """The whole text is valid."""
        self._memo = {}
        self._data = data
        return len(data) in self.ends(self.spec, 0)

    def ends(self, spec: Any, start: int) -> frozenset[int]:
        """Where a text of `spec` that begins at `start` can end."""
        key = (id(spec), start)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = frozenset(self._ends(spec, start))
        return found

    def _ends(self, spec: Any, start: int) -> set[int]:
        data = self._data
        if isinstance(spec, str):
            text = spec.encode()
            return {start + len(text)} if data.startswith(text, start) else set()
        if isinstance(spec, constrain.Token):
            text = self.vocabulary.token_bytes(spec.reference)
            return {start + len(text)} if data.startswith(text, start) else set()
        if isinstance(spec, constrain.TokenRange):
            ids = range(spec.first, spec.last + 1)
            texts = [self.vocabulary.token_bytes(token_id) for token_id in ids]
            return {start + len(text) for text in texts if data.startswith(text, start)}
        if isinstance(spec, constrain.Sequence):
            places = {start}
            for part in spec.parts:
                places = {end for place in places for end in self.ends(part, place)}
            return places
        if isinstance(spec, constrain.OneOf):
            return {end for part in spec.parts for end in self.ends(part, start)}
        if isinstance(spec, constrain.Repeat):
            return self._repeat(spec, start)
        whole = range(start, len(data) + 1)
        if isinstance(spec, constrain.JsonSchema):
            schema = self.known[id(spec)][0]
            return {end for end in whole if _json_valid(spec, schema, data[start:end])}
        if isinstance(spec, constrain.Regex):
            return {end for end in whole if _full_match(spec, data[start:end])}
        if isinstance(spec, constrain.Choice):
            options = {option.encode() for option in spec.options}
            return {end for end in whole if data[start:end] in options}
        if isinstance(spec, constrain.Text):
            return {end for end in whole if self._is_text(spec, data[start:end])}
        raise AssertionError(f"no judge of {spec!r}")

    def _is_text(self, spec: constrain.Text, data: bytes) -> bool:
        """Free text, as it is defined: look at all places where a stop could end it."""
        if not spec.until:
            return self._is_free(spec, data)
        stops = [
            stop.encode() if isinstance(stop, str) else self.vocabulary.token_bytes(stop.reference)
            for stop in spec.until
        ]
        for stop in stops:
            if not data.endswith(stop):
                continue
            before = data[: len(data) - len(stop)]
            if not self._is_free(spec, before):
                continue
            # A special token is one piece; in text a stop may end anywhere before the end.
            text = before if stop[0] == 0xFF else data[:-1]
            whole = before if stop[0] == 0xFF else data
            excluded = any(other.encode() in whole for other in spec.excluding)
            if not excluded and not any(other in text for other in stops):
                return True
        return False

    @staticmethod
    def _is_free(spec: constrain.Text, data: bytes) -> bool:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return False
        if spec.max_chars is not None and len(text) > spec.max_chars:
            return False
        return not any(other in text for other in spec.excluding)

    def _repeat(self, spec: constrain.Repeat, start: int) -> set[int]:
        found: set[int] = set()
        places, seen = {start}, set[int]()
        count = 0
        while places and (spec.max is None or count <= spec.max):
            if count >= spec.min:
                found |= places
            if count >= max(spec.min, 1):
                # Nothing new: a part that can be empty would go on forever.
                if places <= seen:
                    break
                seen |= places
            if count > 0 and spec.separator is not None:
                places = {end for place in places for end in self.ends(spec.separator, place)}
            places = {end for place in places for end in self.ends(spec.part, place)}
            count += 1
        return found


def _full_match(spec: constrain.Regex, data: bytes) -> bool:
    try:
        return re.fullmatch(spec.pattern, data.decode(), spec.flags) is not None
    except UnicodeDecodeError:
        return False


def blanks_fit(whitespace: str, data: bytes) -> bool:
    """Whether the white space outside of strings is what the policy allows."""
    if whitespace == "any":
        return True
    runs = re.findall(rb"[ \t\r\n]+|$", _STRINGS.sub(b"x", data))
    last = runs[-2] if len(runs) > 1 and data[-1] in _BLANKS else b""
    if whitespace == "compact":
        return len(runs) == 1
    if last not in (b"", b"\n"):
        return False
    return all(_run_fits(run) for run in runs)


def _run_fits(run: bytes) -> bool:
    newlines = blanks = 0
    for byte in run:
        if byte == 0x0A:
            newlines += 1
        else:
            blanks += 1
        if newlines > 2 or blanks > (120 if newlines else 8):
            return False
    return True


def _number(text: str) -> Any:
    """Whole numbers are ints, however they are written; huge ones are some huge int."""
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent beyond all limits
        return 10**1000
    if value.adjusted() > 1000:
        return 10**1000
    return int(value) if value == value.to_integral_value() else float(text)


def _json_valid(spec: constrain.JsonSchema, schema: Any, data: bytes) -> bool:
    try:
        value = json.loads(
            data,
            object_pairs_hook=_no_duplicates,
            parse_constant=_refuse,
            parse_float=_number,
        )
    except ValueError:
        return False
    if not blanks_fit(spec.whitespace, data):
        return False
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def sample(spec: Any, vocabulary: constrain.Vocabulary, known: Known, rng: random.Random) -> bytes:
    """A random valid text.  Raises IndexError where a part without known texts is needed."""
    if isinstance(spec, str):
        return spec.encode()
    if isinstance(spec, constrain.Token):
        return vocabulary.token_bytes(spec.reference)
    if isinstance(spec, constrain.TokenRange):
        return vocabulary.token_bytes(rng.randint(spec.first, spec.last))
    if isinstance(spec, constrain.Sequence):
        return b"".join(sample(part, vocabulary, known, rng) for part in spec.parts)
    if isinstance(spec, constrain.OneOf):
        return sample(rng.choice(spec.parts), vocabulary, known, rng)
    if isinstance(spec, constrain.Repeat):
        most = spec.min + 3 if spec.max is None else spec.max
        count = rng.randint(spec.min, min(most, spec.min + 3))
        separator = spec.separator if spec.separator is not None else ""
        found = b""
        for number in range(count):
            if number:
                found += sample(separator, vocabulary, known, rng)
            found += sample(spec.part, vocabulary, known, rng)
        return found
    value = rng.choice(known[id(spec)][1])
    if isinstance(spec, constrain.Regex):
        return value.encode()
    if isinstance(spec, constrain.Text):
        stop = rng.choice(spec.until) if spec.until else ""
        return value.encode() + sample(stop, vocabulary, known, rng)
    blanks = [""] if spec.whitespace == "compact" else ["", " ", "\n"]
    text = json.dumps(value, separators=(rng.choice(blanks) + ",", ":" + rng.choice(blanks)))
    behind = rng.choice(blanks) if spec.whitespace == "any" else rng.choice(blanks[::2])
    return (rng.choice(blanks) + text + behind).encode()
