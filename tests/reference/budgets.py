"""What a token budget must do, decided without the machine, and sampled under it.

* *Small worlds* (`check_world`). A schema is cut down to finitely many values, as in
  `tests.reference.truth`, over a vocabulary without escapes. The fewest tokens that complete each
  prefix of a valid text are counted over all valid texts, so every bit of every mask within a budget
  is known, and so is the number in the error for a budget that is too small.
* *Pairs* (`tests.reference.budget_walks`). A real schema, a regular expression, a grammar or a tool
  format, and a budget from the shortest length up; logits at random. Whatever is drawn, the text
  must end in time, and be valid.

``python -m tests.reference.budgets --pairs 2000 --grammars --tools --worlds 500`` runs more of both
than the tests do.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference import budget_walks, data, oracle, vocabularies
from tests.reference.budget_walks import Case, Judge, Outcome
from tests.reference.drive import allowed_ids, new_row, random_tokens, tokens_by_bytes
from tests.reference.truth import _texts, cut_down, world
from tests.reference.vocabularies import TestVocabulary

# -- small worlds ------------------------------------------------------------------------------


def plain_vocabulary() -> TestVocabulary:
    """The small vocabulary without its tokens that hold a backslash."""
    small = vocabularies.small_vocabulary()
    tokens = [text if text and b"\\" not in text else None for text in small.tokens]
    return vocabularies._fixed("plain", tokens, small.eos_ids)


def fewest_tokens(whole: Iterable[bytes], tokens: Iterable[bytes | None]) -> dict[bytes, int]:
    """For each prefix of these texts the fewest tokens that make it one of them."""
    ends = set(whole)
    known = {text for text in tokens if text}
    longest = max(map(len, known))
    needs: dict[bytes, int] = dict.fromkeys(ends, 0)
    prefixes = {text[:length] for text in ends for length in range(len(text) + 1)}
    behind: dict[bytes, list[bytes]] = collections.defaultdict(list)
    for prefix in prefixes:
        for length in range(1, min(longest, len(prefix)) + 1):
            if prefix[-length:] in known:
                behind[prefix].append(prefix[:-length])
    level = list(ends)
    count = 0
    while level:
        count += 1
        fresh = {before for prefix in level for before in behind[prefix] if before not in needs}
        needs.update(dict.fromkeys(fresh, count))
        level = list(fresh)
    return needs


@dataclass
class Tally:
    """What was counted, and what was wrong."""

    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    longer: list[str] = field(default_factory=list)  # completions that are not the shortest


def check_world(
    schema: Any, vocabulary: TestVocabulary, rng: random.Random, tally: Tally, states: int = 8
) -> None:
    """Masks within budgets of a cut-down schema against the truth, at random states.

    A token too many is wrong. A token too few is one whose shortest completion was not found:
    `tally.longer` has those. `vocabulary` has no token with a backslash.
    """
    import constrain

    judge = oracle.Oracle(schema)
    values = (oracle.parse(json.dumps(value)) for value in world())
    valid = [plain for plain, value in zip(world(), values, strict=True) if judge.is_valid(value)]
    whole = [text for value in valid for text in _texts(value)]
    if not whole:
        return
    spec = constrain.JsonSchema(cut_down(schema), whitespace="compact", numbers="plain")
    compiled = constrain.compile(spec, vocabulary.vocabulary)
    needs = fewest_tokens(whole, vocabulary.tokens)
    tally.counts["worlds"] += 1
    table = tokens_by_bytes(vocabulary.tokens)
    size = vocabulary.vocabulary.size
    row = new_row(vocabulary.vocabulary)
    for index in range(states):
        ids = random_tokens(rng.choice(whole), table, rng) or []
        ids = ids[: rng.randrange(len(ids) + 1)] if index else []
        matcher = compiled.matcher()
        for token in ids:
            matcher.advance(token)
        text = vocabulary.text(ids)
        needed = matcher.tokens_needed
        where = f"{json.dumps(schema)} after {text!r}"
        tally.counts["states"] += 1
        if needed is None or needed < needs[text]:
            tally.wrong.append(f"{where}: needs {needed}, not {needs[text]}")
            continue
        if needed > needs[text]:
            tally.longer.append(f"{where}: needs {needed}, not {needs[text]}")
        if needed > 0:
            try:
                matcher.fill_bitmask(row, remaining=needed - 1)
                tally.wrong.append(f"{where}: {needed - 1} tokens are no error")
            except constrain.LimitExceededError as error:
                if error.needed != needed:
                    tally.wrong.append(f"{where}: the error says {error.needed}, not {needed}")
        budget = needed + rng.choice((0, 0, 1, 2, 3, 5, 9))
        if budget == 0:
            continue
        matcher.fill_bitmask(row, remaining=budget)
        allowed = set(allowed_ids(row[0], size).tolist())
        matcher.fill_bitmask(row)
        ends = set(vocabulary.eos_ids)
        for token in set(allowed_ids(row[0], size).tolist()) - ends:
            tally.counts["tokens"] += 1
            short = needs[text + (vocabulary.tokens[token] or b"")] < budget
            if (token in allowed) and not short:
                tally.wrong.append(f"{where}: {vocabulary.tokens[token]!r} within {budget}")
            if short and token not in allowed:
                tally.longer.append(f"{where}: no {vocabulary.tokens[token]!r} within {budget}")
        if (needs[text] == 0) != (ends <= allowed):
            tally.wrong.append(f"{where}: the end within {budget}")


# -- bounds far from the limit -----------------------------------------------------------------


def check_bounds(
    case: Case, lexicon: budget_walks.Lexicon, rng: random.Random, tally: Tally, steps: int = 12
) -> None:
    """Behind each token that a mask allows (a sample of them where they are many) a completion has
    at most as many bytes as `most_needed` said before, along a random walk."""
    import constrain

    matcher = case.compiled.matcher()
    row = constrain.allocate_bitmask(1, lexicon.size)
    for _ in range(steps):
        bound = matcher.most_needed
        matcher.fill_bitmask(row)
        allowed = [i for i in allowed_ids(row[0], lexicon.size).tolist() if i not in lexicon.eos]
        if not allowed:
            return
        tally.counts["states"] += 1
        if bound is not None:
            tally.counts["bounded"] += 1
            for token in rng.sample(allowed, min(len(allowed), 20)):
                fork = matcher.fork()
                fork.advance(token)
                tally.counts["tokens"] += 1
                completion = fork.completion(1 << 20)
                if completion is None or len(completion) > bound:
                    tally.wrong.append(
                        f"{case.name} after {lexicon.vocabulary.decode(matcher.tokens)!r} and "
                        f"{lexicon.tokens[token]!r}: {completion!r} is longer than {bound}"
                    )
        matcher.advance(lexicon.draw(np.array(allowed), rng.choice(budget_walks.KINDS), rng))


def measure_far(cases: Iterable[Case], lexicon: budget_walks.Lexicon) -> Iterator[str]:
    """What a budget costs far from its limit: thread time of warm masks with and without one."""
    import constrain

    row = constrain.allocate_bitmask(1, lexicon.size)
    ratios = []
    for case in cases:
        rng = random.Random(case.name)
        matcher = case.compiled.matcher()
        times = {None: 0.0, 100_000: 0.0}
        if matcher.most_needed is None:
            yield f"{case.name[:60]}: no bound"
            continue
        for _ in range(12):
            for _ in range(3):
                for budget in times:
                    matcher.fill_bitmask(row, remaining=budget)
            for _ in range(20):
                for budget in times:
                    before = time.thread_time()
                    for _ in range(20):
                        matcher.fill_bitmask(row, remaining=budget)
                    times[budget] += time.thread_time() - before
            allowed = allowed_ids(row[0], lexicon.size)
            allowed = allowed[~np.isin(allowed, lexicon.eos)]
            if not len(allowed):
                break
            matcher.advance(lexicon.draw(allowed, "classes", rng))
        ratios.append(times[100_000] / times[None])
    if ratios:
        yield (
            f"thread time of a warm mask with a budget of 100,000 by that without one, "
            f"{len(ratios)} constraints: median {np.median(ratios):.3f}, most {max(ratios):.3f}"
        )


# -- pairs -------------------------------------------------------------------------------------


def random_schemas(count: int, seed: int) -> list[tuple[str, Any]]:
    """Names and schemas of some ten keywords each, the same for the same seed."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as with_seed

    from tests.reference import schemas

    found: list[tuple[str, Any]] = []

    @with_seed(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(schemas.schemas().filter(lambda s: not schemas.is_cyclic(s)))
    def collect(schema: Any) -> None:
        found.append((json.dumps(schema, ensure_ascii=False), schema))

    collect()
    return found


def bench_schemas(count: int, rng: random.Random) -> list[tuple[str, Any]]:
    """Names and schemas of MaskBench, as many as there are or `count`."""
    bench = data.maskbench(data.require_root())
    return [(one.name, one.schema) for one in rng.sample(bench, min(count, len(bench)))]


def schema_judge(schema: Any) -> Judge:
    """What jsonschema says of a text."""
    try:
        judge = oracle.Oracle(schema)
    except Exception:
        return lambda text: "?"

    def check(text: bytes) -> str:
        try:
            return "; ".join(judge.errors(oracle.parse(text)))
        except oracle.NotJsonError as error:
            return f"no JSON: {error}"
        except oracle.OracleError:
            return "?"

    return check


def schema_cases(
    schemas: Iterable[tuple[str, Any]], vocabulary: Any, rng: random.Random
) -> Iterator[Case]:
    """The schemas that compile, with random options."""
    import constrain

    for name, schema in schemas:
        whitespace = rng.choice(("compact", "bounded", "any"))
        numbers = rng.choice(("plain", "any"))
        try:
            spec = constrain.JsonSchema(schema, whitespace=whitespace, numbers=numbers)
            compiled = constrain.compile(spec, vocabulary)
        except constrain.ConstrainError:
            continue
        yield Case(f"{name} ({whitespace}, {numbers})", compiled, schema_judge(schema))


def grammar_cases(vocabulary: Any, *, large: bool = True) -> Iterator[Case]:
    """Shipped grammars, regular expressions, and grammars with one difficulty each.

    Without `large` those that take seconds to compile are left out.
    """
    import constrain
    from constrain import grammars
    from tests.reference.judges import TooLarge
    from tests.reference.lark_grammars import GRAMMARS
    from tests.reference.shipped import SHIPPED

    def judged(judge: Any) -> Judge:
        def check(text: bytes) -> str:
            try:
                return "" if judge(text.decode()) else "refused by its parser"
            except TooLarge:
                return "?"

        return check

    def matched(pattern: str) -> Judge:
        return lambda text: "" if re.fullmatch(pattern, text.decode()) else "no match"

    for entry in SHIPPED:
        if not large and entry.name.partition("-")[0] in ("python", "sql", "url", "regex"):
            continue
        spec = grammars.load(entry.name, **entry.parameters)
        yield Case(entry.id, constrain.compile(spec, vocabulary), judged(entry.judge))
    for pattern in (r"(ab|abab)*c?", r"[a-z]{20,64}\d{4}", r"(\w+, )*\w{3,9}!", r"[^\n]{0,40}\n\n"):
        compiled = constrain.compile(constrain.Regex(pattern), vocabulary)
        yield Case(pattern, compiled, matched(pattern))
    for sample in GRAMMARS[:24]:
        try:
            compiled = constrain.compile(constrain.Lark(sample.grammar), vocabulary)
        except constrain.ConstrainError:
            continue
        yield Case(f"lark {sample.name}", compiled, lambda text: "")


TOOLS: dict[str, dict[str, Any]] = {
    "search": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 12},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20},
            "sites": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
            "range": {
                "type": "object",
                "properties": {"from": {"type": "number"}, "to": {"type": "number"}},
                "required": ["from"],
                "additionalProperties": False,
            },
            "kind": {"enum": ["web", "news", None, 3]},
        },
        "required": ["query", "limit"],
        "additionalProperties": False,
    },
    "open_page": {"type": "object", "properties": {"page": {"type": "string"}}},
    "stop": {"type": "object", "properties": {}, "additionalProperties": False},
}


def tool_cases(rng: random.Random) -> Iterator[Case]:
    """The named formats with the tokenizers of their families, as far as they compile."""
    import jsonschema

    import constrain
    from constrain.tools.definitions import make_tools
    from constrain.tools.named_formats import FORMATS
    from tests.reference.tool_vocabularies import family_vocabulary, real_vocabulary

    tools = make_tools([{"name": name, "parameters": one} for name, one in TOOLS.items()])
    for form in FORMATS.values():
        vocabulary = real_vocabulary(form) or family_vocabulary(form.special_tokens)
        for choice in ("auto", "required", "search"):
            parallel = rng.random() < 0.5
            try:
                spec = constrain.ToolCalls(
                    tools, format=form, tool_choice=choice, parallel=parallel
                )
                compiled = constrain.compile(spec, vocabulary)
            except constrain.ConstrainError:
                continue

            def check(text: bytes, spec: Any = spec, choice: str = choice) -> str:
                message = spec.parse(text.decode())
                reasons = [str(one) for one in message.failures]
                for call in message.calls:
                    if call.error is not None:
                        reasons.append(str(call.error))
                    elif not jsonschema.Draft202012Validator(TOOLS[call.name]).is_valid(
                        call.arguments
                    ):
                        reasons.append(f"arguments {call.arguments!r}")
                if choice != "auto" and not message.calls:
                    reasons.append("no call")
                return "; ".join(reasons)

            yield Case(f"{form.name} {choice} parallel={parallel}", compiled, check)


def main() -> None:
    """Budgets over schemas, grammars, tool formats and small worlds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--pairs", type=int, default=0, help="schemas, half of them of MaskBench")
    parser.add_argument(
        "--names", nargs="*", help="only MaskBench schemas with this in their names"
    )
    parser.add_argument("--grammars", action="store_true")
    parser.add_argument("--tools", action="store_true")
    parser.add_argument("--worlds", type=int, default=0)
    parser.add_argument("--far", action="store_true", help="bounds, and costs far from the limit")
    parser.add_argument("--walks", type=int, default=1, help="budgets of each schema")
    parser.add_argument("--vocabularies", nargs="*", default=["deepseek", "smollm2", "small"])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    failed = False

    def finish(title: str, outcome: Outcome, started: float) -> None:
        nonlocal failed
        failed |= bool(outcome.wrong)
        print(f"{title} ({time.thread_time() - started:.0f} s)")
        for line in outcome.lines():
            print(f"  {line}", flush=True)

    for name in arguments.vocabularies:
        rng = random.Random(f"{arguments.seed} {name}")
        vocabulary = vocabularies.load(name).vocabulary
        lexicon = budget_walks.Lexicon(vocabulary)
        if arguments.pairs:
            if arguments.names:
                bench = bench_schemas(10**6, rng)
                chosen = [one for one in bench if any(part in one[0] for part in arguments.names)]
            else:
                chosen = bench_schemas(arguments.pairs // 2, rng)
                chosen += random_schemas(arguments.pairs - len(chosen), arguments.seed)
            outcome, started = Outcome(), time.thread_time()
            for case in schema_cases(chosen, vocabulary, rng):
                budget_walks.run(case, lexicon, arguments.walks, rng, outcome)
            finish(f"{name}: schemas", outcome, started)
        if arguments.grammars:
            outcome, started = Outcome(), time.thread_time()
            for case in grammar_cases(vocabulary):
                budget_walks.run(case, lexicon, 10 * arguments.walks, rng, outcome)
            finish(f"{name}: grammars", outcome, started)
        if arguments.far:
            tally = Tally()
            chosen = bench_schemas(60, rng) + random_schemas(60, arguments.seed)
            cases = [*schema_cases(chosen, vocabulary, rng), *grammar_cases(vocabulary)]
            for case in cases:
                check_bounds(case, lexicon, rng, tally)
            print(f"{name}: bounds {dict(tally.counts)}, {len(tally.wrong)} wrong")
            for line in [*tally.wrong, *measure_far(cases[::6], lexicon)]:
                print(f"  {line}", flush=True)
            failed |= bool(tally.wrong)
    if arguments.tools:
        rng = random.Random(arguments.seed)
        lexicons: dict[int, budget_walks.Lexicon] = {}
        outcome, started = Outcome(), time.thread_time()
        for case in tool_cases(rng):
            vocabulary = case.compiled.vocabulary
            if id(vocabulary) not in lexicons:
                lexicons[id(vocabulary)] = budget_walks.Lexicon(vocabulary)
            lexicon = lexicons[id(vocabulary)]
            budget_walks.run(case, lexicon, 4 * arguments.walks, rng, outcome)
        finish("tool formats", outcome, started)
    if arguments.worlds:
        tally = Tally()
        plain = plain_vocabulary()
        for number, (_, schema) in enumerate(random_schemas(arguments.worlds, arguments.seed)):
            check_world(schema, plain, random.Random(number), tally)
        print(f"small worlds: {dict(tally.counts)}, {len(tally.wrong)} wrong")
        for line in tally.wrong + tally.longer:
            print(f"  {line}")
        failed |= bool(tally.wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
