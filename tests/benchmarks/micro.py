"""Micro-benchmarks: reading a vocabulary, walking its trie, fill, advance, and apply on logits.

``python -m tests.benchmarks.micro [--json micro.json]`` takes half a minute and prints Markdown.
All times are medians of repeated single calls on one thread, in µs unless the row says otherwise.

* *vocabulary*: from a tokenizer object that is loaded, with and without the native trie; from the
  file that `Vocabulary.save` wrote.
* *trie walk*: a mask for which the machine steps through the trie itself, per step.
* *fill*: a mask where the tables of its state do not exist yet (once for each vocabulary), where
  they do but this constraint never was there, and where it was.
* *apply*: `apply_bitmask` beside ``masked_fill_`` of torch, given the mask as bools and as bits.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import constrain
from tests.benchmarks import tables
from tests.benchmarks.measuring import CLOCKS, Clock, machine, settle
from tests.reference import vocabularies
from tests.reference.vocabularies import TestVocabulary

_ROUNDS = 9
_SHARES = {"few tokens": 0.001, "most tokens": 0.99}  # allowed by a mask
_clock: Clock = CLOCKS["wall"]

PLACES: dict[str, tuple[Any, str]] = {
    "start of an object": (constrain.JsonSchema({"type": "object"}), ""),
    "a name": (constrain.JsonSchema({"type": "object"}), "{"),
    "any value": (constrain.JsonSchema({"type": "object"}), '{"a": '),
    "free text": (constrain.JsonSchema({"type": "string"}), '"abc'),
    "a pattern": (constrain.JsonSchema({"type": "string", "pattern": "^[a-z]{1,64}$"}), '"ab'),
    "one of 1,000 texts": (constrain.JsonSchema({"enum": [f"item {i}" for i in range(1000)]}), '"'),
    "a number in bounds": (
        constrain.JsonSchema({"type": "number", "minimum": 17, "maximum": 12345}),
        "1",
    ),
    "a regular expression": (constrain.Regex("[A-Z][a-z]+( [A-Z][a-z]+)*"), "Ada L"),
    "a grammar": (constrain.Gbnf('root ::= item ("," item)*\nitem ::= [a-z]+ | "(" root ")"'), "("),
}
"""Where masks are filled: a constraint, and the text before."""

# Nested terminals of one character: tables do not help, all is steps of the machine.
_WALK = constrain.Lark('start: x*\nx: "a".."z" | "(" x ")"')


def once(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = _clock()
    call()
    return (_clock() - start) / 1e9


def median(call: Callable[[], Any], rounds: int = _ROUNDS, *, many: int = 1) -> float:
    """Median seconds of a call, each time measured over `many` of them."""

    def several() -> None:
        for _ in range(many):
            call()

    return statistics.median(once(several) / many for _ in range(rounds))


def vocabulary_times(vocabulary: TestVocabulary) -> dict[str, float]:
    """Seconds for each way to get a vocabulary."""
    from tokenizers import Tokenizer

    if vocabulary.path is None:
        raise SystemExit(f"{vocabulary.name} has no tokenizer.json")
    tokenizer = Tokenizer.from_file(str(vocabulary.path))

    def read() -> constrain.Vocabulary:
        return constrain.Vocabulary.from_tokenizer(tokenizer, eos_token_ids=vocabulary.eos_ids)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocabulary")
        vocabulary.vocabulary.save(path)
        return {
            "from a tokenizer object": median(read, 5),
            "from a tokenizer object, trie included": median(lambda: read().native, 5),
            "saved": median(lambda: vocabulary.vocabulary.save(path), 5),
            "from its file": median(lambda: constrain.Vocabulary.load(path), 5),
            "from its file, trie included": median(
                lambda: constrain.Vocabulary.load(path).native, 5
            ),
        }


def fed(compiled: Any, ids: list[int]) -> Any:
    """A matcher behind these tokens."""
    matcher = compiled.matcher()
    for token_id in ids:
        matcher.advance(token_id)
    return matcher


def walk_times(vocabulary: TestVocabulary) -> dict[str, float]:
    """A walk of the trie by the machine: seconds of a mask, its steps, seconds of a step."""
    native = vocabulary.vocabulary.native
    row = constrain.allocate_bitmask(1, vocabulary.vocabulary.size)
    found, steps = [], 0
    for _ in range(_ROUNDS):  # the first one makes tables; it does not change the median
        matcher = constrain.compile(_WALK, vocabulary.vocabulary).matcher()
        before = native.counters["machine_steps"]
        found.append(once(lambda matcher=matcher: matcher.fill_bitmask(row, 0)))
        steps = native.counters["machine_steps"] - before
    spent = statistics.median(found)
    return {"mask": spent, "steps": steps, "step": spent / steps if steps else 0.0}


def fill_times(vocabulary: TestVocabulary) -> dict[str, dict[str, float]]:
    """Seconds of `fill_bitmask` and `advance` at each of `PLACES`."""
    native = vocabulary.vocabulary
    row = constrain.allocate_bitmask(1, native.size)
    found: dict[str, dict[str, float]] = {}
    for place, (spec, text) in PLACES.items():
        ids = vocabulary.encode(text)

        def fresh(spec: Any = spec, ids: list[int] = ids) -> float:
            matcher = fed(constrain.compile(spec, native), ids)
            return once(lambda: matcher.fill_bitmask(row, 0))

        first = fresh()
        again = statistics.median(fresh() for _ in range(_ROUNDS))
        matcher = fed(constrain.compile(spec, native), ids)
        for _ in range(3):
            matcher.fill_bitmask(row, 0)
        token = int(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))[0])

        def step(matcher: Any = matcher, token: int = token) -> None:
            matcher.advance(token)
            matcher.rollback(1)

        found[place] = {
            "first": first,
            "tables there": again,
            "kept": median(lambda matcher=matcher: matcher.fill_bitmask(row, 0), many=1000),
            "nothing": median(lambda matcher=matcher: matcher.rollback(0), many=1000),
            "advance and rollback": median(step, many=1000),
        }
    return found


def apply_times(size: int, rows: int, share: float) -> dict[str, dict[str, float]]:
    """Seconds of masking logits ``[rows, size]`` on the CPU, for each dtype of torch.

    `share` is how many of the tokens the mask allows.
    """
    import torch

    torch.set_num_threads(1)
    generator = np.random.default_rng(1)
    bitmask = constrain.allocate_bitmask(rows, size)
    allowed = np.zeros((rows, bitmask.shape[1] * 32), dtype=np.uint8)
    allowed[:, :size] = generator.random((rows, size)) < share
    bitmask[:] = np.packbits(allowed, axis=1, bitorder="little").view(np.int32)
    closed = torch.from_numpy(allowed[:, :size] == 0)
    bits = torch.from_numpy(bitmask)
    shifts = torch.arange(32, dtype=torch.int32)

    def unpacked() -> Any:
        return ((bits.unsqueeze(-1) >> shifts & 1) == 0).flatten(1)[:, :size]

    found = {}
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        logits = torch.from_numpy(generator.random((rows, size), dtype=np.float32)).to(dtype)
        plain = logits.clone().masked_fill_(closed, float("-inf"))
        constrain.apply_bitmask(logits, bitmask)
        if not torch.equal(logits, plain) or not torch.equal(unpacked(), closed):
            raise SystemExit(f"apply_bitmask on {dtype} is not what masked_fill_ does")
        found[str(dtype).removeprefix("torch.")] = {
            "apply_bitmask": median(
                lambda logits=logits: constrain.apply_bitmask(logits, bitmask), many=20
            ),
            "masked_fill_ of bools": median(
                lambda logits=logits: logits.masked_fill_(closed, float("-inf")), many=20
            ),
            "masked_fill_ of bits": median(
                lambda logits=logits: logits.masked_fill_(unpacked(), float("-inf")), many=5
            ),
        }
    return found


def measure(name: str) -> dict[str, Any]:
    """All of it, in seconds."""
    vocabulary = vocabularies.load(name)
    where = machine()
    result: dict[str, Any] = {"kind": "micro", "machine": where, "vocabulary": name}
    settle()
    result["vocabulary_build"] = vocabulary_times(vocabulary)
    result["fill"] = fill_times(vocabulary)
    result["trie_walk"] = walk_times(vocabulary)
    result["apply"] = {
        f"{rows} x {name}": apply_times(vocabulary.vocabulary.size, rows, share)
        for rows in (1, 8)
        for name, share in _SHARES.items()
    }
    return result


def report(result: dict[str, Any]) -> str:
    """The result as Markdown."""

    def micro(seconds: float) -> str:
        return tables.number(seconds * 1e6)

    build = [[way, tables.number(s * 1e3)] for way, s in result["vocabulary_build"].items()]
    fill_columns = list(next(iter(result["fill"].values())))
    fill = [[place, *map(micro, row.values())] for place, row in result["fill"].items()]
    walk = result["trie_walk"]
    apply_columns = list(next(iter(next(iter(result["apply"].values())).values())))
    apply = [
        [f"{rows}, {dtype}", *map(micro, row.values())]
        for rows, by_dtype in result["apply"].items()
        for dtype, row in by_dtype.items()
    ]
    return "\n\n".join(
        [
            tables.markdown(["vocabulary", "ms"], build),
            tables.markdown(["fill, µs", *fill_columns], fill),
            f"trie walk: {micro(walk['mask'])} µs for {walk['steps']:,} steps of the machine,"
            f" {walk['step'] * 1e9:.0f} ns each",
            tables.markdown(["apply on logits, µs", *apply_columns], apply),
        ]
    )


def main() -> None:
    """Micro-benchmarks of vocabularies, masks and logits."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--vocabulary", help="default: Llama 3.1's where it is, else DeepSeek's")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--json", type=Path, help="write all numbers here, in seconds")
    arguments = parser.parse_args()
    global _clock
    _clock = CLOCKS[arguments.clock]
    result = measure(arguments.vocabulary or vocabularies.large())
    print(report(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
