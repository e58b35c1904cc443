"""The cases distilled from bug reports: JSON Schema, regex, vocabulary, engine, size.

Kinds that need front ends of their own (grammars, tools, streaming) are tested with those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.conformance.outcomes import Outcome
from tests.conformance.runners import Subject
from tests.reference import data, vocabularies
from tests.reference.drive import bit, new_row
from tests.reference.vocabularies import TestVocabulary

TEXT_KINDS = ("json_schema", "regex", "perf", "security")
TOKEN_KINDS = ("tokenizer", "engine")

# Large inputs of the cases, built here instead of evaluating the expressions in the data.
_LARGE: dict[str, Any] = {
    "pf-enum-8000": lambda: {"enum": [f"item-{i:05d}-{i * 7919 % 10007:05d}" for i in range(8000)]},
    "pf-50k-properties": lambda: {
        "type": "object",
        "properties": {f"p{i}": {"type": "integer"} for i in range(50_000)},
        "required": ["p0"],
        "additionalProperties": False,
    },
    "pf-60-optionals-min-30": lambda: {
        "type": "object",
        "properties": {f"k{i:02d}": {"type": "null"} for i in range(60)},
        "additionalProperties": False,
        "minProperties": 30,
    },
    "pf-min-items-1000": lambda: {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 1000,
        "maxItems": 3000,
    },
    "pf-union-300": lambda: {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "integer"},
                    "kind": {"const": f"v{i}"},
                },
                "required": ["a", "b", "kind"],
                "additionalProperties": False,
            }
            for i in range(300)
        ]
    },
    "pf-deep-nesting-200": lambda: _nested(200),
    "sec-ref-chain-1000": lambda: {
        "$defs": {
            **{
                f"d{i}": {
                    "type": "object",
                    "properties": {"n": {"$ref": f"#/$defs/d{i + 1}"}},
                    "additionalProperties": False,
                }
                for i in range(999)
            },
            "d999": {"type": "integer"},
        },
        "$ref": "#/$defs/d0",
    },
    "sec-ref-doubling": lambda: {
        "$defs": {
            **{
                f"d{i}": {
                    "type": "array",
                    "prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 2,
                    "items": False,
                    "minItems": 0,
                }
                for i in range(40)
            },
            "d40": {"type": "null"},
        },
        "$ref": "#/$defs/d0",
    },
    # The calls of a tool list, as an array: what a tool front end makes of it is tested there.
    "pf-128-tools": lambda: {
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": [_call(f"tool_{number}") for number in range(128)]},
    },
    "sec-huge-bounds": lambda: {
        "type": "array",
        "items": {"type": "string", "minLength": 0, "maxLength": 10**18},
        "minItems": 0,
        "maxItems": 2**63,
    },
}


def _nested(depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {
            "type": "object",
            "properties": {"x": schema},
            "required": ["x"],
            "additionalProperties": False,
        }
    return schema


_PARAMETERS: list[dict[str, Any]] = [
    {"type": "string", "maxLength": 64},
    {"type": "integer", "minimum": 0},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"enum": ["a", "b", "c"]},
]


def _call(name: str) -> dict[str, Any]:
    """A call of the tool `name`, which has twelve parameters."""
    return {
        "type": "object",
        "properties": {
            "name": {"const": name},
            "arguments": {
                "type": "object",
                "properties": {f"p{i}": _PARAMETERS[i % 6] for i in range(12)},
                "required": ["p0", "p1"],
                "additionalProperties": False,
            },
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def specification(case: dict[str, Any], **options: Any) -> Any:
    """The constraint of a text case. Raises what the front end raises."""
    import constrain

    given = case["input"]
    if "regex" in given:
        return constrain.Regex(given["regex"])
    if "choice" in given:
        return constrain.Choice(given["choice"])
    if case["id"] == "sec-deep-groups-regex":
        return constrain.Regex("(" * 60_000 + "a" + ")" * 60_000)
    if "schema_text" in given:
        return constrain.JsonSchema(json.loads(given["schema_text"]), **options)
    schema = given["schema"] if "schema" in given else _LARGE[case["id"]]()
    return constrain.JsonSchema(schema, **options)


def is_runnable(case: dict[str, Any]) -> bool:
    """Whether a text case is judged here: all but those whose input is for another front end."""
    given = case["input"]
    known = {"schema", "schema_text", "regex", "choice"} & set(given)
    return bool(known) or case["id"] in (*_LARGE, "sec-deep-groups-regex", _FLOOD)


def text_case(case: dict[str, Any]) -> Iterator[Outcome]:
    """Texts of one case under the default options, and (schemas) with every spelling allowed."""
    item = case["id"]
    schema_like = case["kind"] != "regex" and "regex" not in item
    variants: list[dict[str, Any]] = [{}]
    if schema_like:
        variants.append({"whitespace": "any", "numbers": "any"})
    for options in variants:
        for vocabulary in (vocabularies.byte_vocabulary(), vocabularies.small_vocabulary()):
            subject = Subject(partial(specification, case, **options), vocabulary)
            yield from _texts(case, item, subject, vocabulary)


def _texts(
    case: dict[str, Any], item: str, subject: Subject, vocabulary: TestVocabulary
) -> Iterator[Outcome]:
    if case["expect_error"]:
        if subject.error_kind == "crash":
            yield Outcome(item, "crash", subject.error)
        elif subject.error_kind is None and not subject.unsatisfiable:
            yield Outcome(item, "wrong_accept", f"compiled; expected: {case['expect_error']}")
        else:
            yield Outcome(item)
        return
    if subject.error_kind == "compile_error" and case.get("or_error"):
        yield Outcome(item)
        return
    for valid, texts in ((True, case["valid"]), (False, case["invalid"])):
        for text in texts:
            yield subject.check(item, vocabulary.encode(text), valid, text)
    for text in case.get("either", ()):
        yield subject.check(item, vocabulary.encode(text), None, text)


def case_vocabulary(given: dict[str, Any]) -> TestVocabulary:
    """The vocabulary of a token case: bytes, tokens in hex, special ids, a width."""
    import constrain

    width = given["logits_width"]
    tokens: vocabularies.Tokens = [None] * width
    if given["base"] == "bytes256":
        tokens[:256] = [bytes([value]) for value in range(256)]
    for token_id, token in given["tokens"].items():
        tokens[int(token_id)] = bytes.fromhex(token["hex"])
    eos = given["eos"]
    # Without the unused tail, so that `size` has to close it.
    while len(tokens) > 1 and tokens[-1] is None:
        tokens.pop()
    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=eos, size=width)
    padded = tokens + [None] * (width - len(tokens))
    return TestVocabulary("case", vocabulary, padded, eos, vocabularies.greedy(padded))


def _compile(case: dict[str, Any], vocabulary: TestVocabulary) -> Any:
    import constrain

    given = case["input"]["constraint"]
    spec: Any = (
        constrain.Regex(given["regex"])
        if "regex" in given
        else constrain.JsonSchema(given["schema"], **given.get("options", {}))
    )
    return constrain.compile(spec, vocabulary.vocabulary)


class Bench:
    """Runs checks and operations on matchers, collecting what is not as the case says."""

    def __init__(self, compiled: Any, vocabulary: TestVocabulary) -> None:
        self.compiled = compiled
        self.row = new_row(vocabulary.vocabulary)
        self.matchers = [compiled.matcher()]
        self.wrong: list[str] = []

    def expect(self, what: str, seen: Any, wanted: Any) -> None:
        if seen != wanted:
            self.wrong.append(f"{what}: {seen}, expected {wanted}")

    def mask(self, matcher: Any, allow: list[int], deny: list[int], where: str) -> None:
        matcher.fill_bitmask(self.row, 0)
        for token in allow:
            self.expect(f"{where}: bit {token}", bit(self.row[0], token), True)
        for token in deny:
            self.expect(f"{where}: bit {token}", bit(self.row[0], token), False)

    def take(self, matcher: Any, ids: list[int]) -> int:
        """How many of `ids` are taken before one is refused."""
        for count, token in enumerate(ids):
            if not matcher.try_advance(token):
                return count
        return len(ids)

    def operate(self, op: dict[str, Any], copy: int = 0) -> None:
        matcher = self.matchers[copy]
        name = op["op"]
        where = f"{name} {op.get('ids', op.get('at', ''))}"
        if name == "accept":
            taken = self.take(matcher, op["ids"]) == len(op["ids"])
            self.expect(where, taken, op["expect"])
        elif name == "accept_many":
            self.expect(where, self.take(matcher, op["ids"]), op["expect_consumed"])
        elif name == "validate":
            self.expect(where, self.take(matcher.fork(), op["ids"]), op["expect_accepted"])
        elif name == "mask":
            self.mask(matcher, op["allow"], op["deny"], where)
        elif name == "stateless_mask":
            fresh = self.compiled.matcher()
            self.expect(f"{where}: taken", self.take(fresh, op["at"]), len(op["at"]))
            self.mask(fresh, op["allow"], op["deny"], where)
        elif name == "mask_after_end":
            matcher.fill_bitmask(self.row, 0)
        elif name == "terminated":
            self.expect(where, matcher.is_finished, op["expect"])
        elif name == "complete":
            self.expect(where, matcher.is_accepting, op["expect"])
        elif name == "rollback":
            matcher.rollback(op["n"])
        elif name == "reset":
            self.matchers[copy] = self.compiled.matcher()
        elif name == "fork":
            self.matchers = [matcher.fork() for _ in range(op["copies"])]
        elif name == "on":
            for inner in op["then"]:
                self.operate(inner, op["copy"])
        elif name == "reorder":
            self.matchers = [self.matchers[index].fork() for index in op["order"]]
        else:
            raise ValueError(f"unknown operation {name}")


NOT_OPTIONS = {
    "eng-whitespace-pattern-honoured": "`whitespace_pattern` is no option: refused by name",
}
DOCUMENTED = {
    "eng-think-then-json": "without a grammar the matcher starts after the end tag, as documented",
}


def token_case(case: dict[str, Any]) -> Outcome:
    """One case of kind tokenizer or engine."""
    import constrain

    item = case["id"]
    if item in DOCUMENTED:
        return Outcome(item)
    vocabulary = case_vocabulary(case["input"]["vocab"])
    try:
        compiled = _compile(case, vocabulary)
    except TypeError as error:
        return Outcome(item, None if item in NOT_OPTIONS else "crash", str(error))
    except constrain.ConstrainError as error:
        expected = item == "tok-nothing-allowed"
        return Outcome(item, None if expected else "compile_error", str(error))
    bench = Bench(compiled, vocabulary)
    try:
        for check in case.get("checks", ()):
            if "expect" in check:
                return _no_way_on(item, bench, check)
            matcher = compiled.matcher()
            where = f"after {check['at']}"
            bench.expect(where, bench.take(matcher, check["at"]), len(check["at"]))
            bench.mask(matcher, check["allow"], check["deny"], where)
            if "complete" in check:
                bench.expect(f"{where}: is_accepting", matcher.is_accepting, check["complete"])
        for op in case.get("ops", ()):
            bench.operate(op)
    except Exception as error:
        return Outcome(item, "crash", f"{type(error).__name__}: {error}")
    if bench.wrong:
        return Outcome(item, "contract", "; ".join(bench.wrong[:4]))
    return Outcome(item)


def _no_way_on(item: str, bench: Bench, check: dict[str, Any]) -> Outcome:
    """No token can continue: a typed error on the way, never an empty row without one."""
    import constrain

    matcher = bench.compiled.matcher()
    try:
        for token in check["at"]:
            matcher.advance(token)
        matcher.fill_bitmask(bench.row, 0)
    except constrain.ConstrainError:
        return Outcome(item)
    if bench.row.any():
        return Outcome(item, "wrong_accept", "a token is allowed where none can continue")
    return Outcome(item, "contract", "an empty row without an error")


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * 4096 if path.is_file() else 0


_FLOOD = "sec-unique-constraint-flood"
_GROWTH = 32 << 20


def flood(item: str, count: int = 10_000) -> Outcome:
    """Many different constraints of one vocabulary, each used once and dropped."""
    import constrain

    vocabulary = vocabularies.small_vocabulary().vocabulary
    row = new_row(vocabulary)
    before = 0
    for number in range(count):
        if number == count // 10:
            before = _resident()
        compiled = constrain.compile(constrain.JsonSchema({"const": number}), vocabulary)
        compiled.matcher().fill_bitmask(row, 0)
    growth = _resident() - before
    if growth > _GROWTH:
        return Outcome(item, "contract", f"{growth} bytes more after {count} constraints")
    return Outcome(item)


def run_case(case: dict[str, Any]) -> list[Outcome]:
    """The outcomes of one case."""
    if case["id"] == _FLOOD:
        return [flood(case["id"])]
    if case["kind"] in TOKEN_KINDS:
        return [token_case(case)]
    return list(text_case(case))


def all_cases(root: Path) -> list[dict[str, Any]]:
    """The cases that are judged here."""
    found = data.cases(root, *TEXT_KINDS, *TOKEN_KINDS)
    return [case for case in found if case["kind"] in TOKEN_KINDS or is_runnable(case)]


@cache
def outcome(root: Path, case_id: str) -> Outcome:
    """The worst outcome of one case; kept, so that it is judged once."""
    from tests.conformance.runners import worst

    return worst(run_case(next(case for case in all_cases(root) if case["id"] == case_id)))


def run_all(root: Path) -> list[Outcome]:
    """One outcome for each case: the worst."""
    return [outcome(root, case["id"]) for case in all_cases(root)]
