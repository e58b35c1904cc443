"""What a decode loop should sample, by enumeration: slow, without cache, masks or machines.

A constraint is a list of texts, a model a function from token ids to logits. `distribution` walks
all token sequences and gives the probability of each, under the rules that `constrain.decoding`
documents: penalties, mask, temperature, top-k, top-p, and forced text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Logits = Callable[[Sequence[int]], Sequence[float]]


@dataclass(frozen=True)
class Case:
    """A model, a vocabulary, the valid texts and the settings of a sampler.

    `forced` is "off", "single" or "text", or "naive": all of a forced text, whatever tokens could
    reach beyond it, which is the mistake to avoid.
    """

    logits: Logits
    tokens: Sequence[bytes | None]
    eos: int
    texts: Sequence[bytes]
    prompt: Sequence[int]
    encode: Callable[[bytes], list[int]]
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    forced: str = "off"


def allowed(case: Case, text: bytes) -> list[int]:
    """The tokens that may follow `text`, the end included."""
    found = [
        i
        for i, data in enumerate(case.tokens)
        if data and any(whole.startswith(text + data) for whole in case.texts)
    ]
    return found + ([case.eos] if text in case.texts else [])


def forced_text(case: Case, text: bytes) -> bytes:
    """What every valid text has behind `text`, up to where one of them ends."""
    rests = [whole[len(text) :] for whole in case.texts if whole.startswith(text)]
    common = b""
    while all(len(rest) > len(common) for rest in rests):
        following = {rest[len(common)] for rest in rests}
        if len(following) > 1:
            break
        common += bytes(following)
    return common


def forced_tokens(case: Case, text: bytes) -> list[int]:
    """The run that is appended behind `text` without asking the model."""
    run: list[int] = []
    if case.forced in ("text", "naive"):
        rest = forced_text(case, text)
        for token_id in case.encode(rest) if rest else []:
            longest = max(len(case.tokens[i] or b"") for i in allowed(case, text))
            if case.forced == "text" and longest > len(rest):
                break
            run.append(token_id)
            text += case.tokens[token_id] or b""
            rest = rest[len(case.tokens[token_id] or b"") :]
    elif case.forced == "single":
        while (only := allowed(case, text)) and len(only) == 1 and only != [case.eos]:
            run += only
            text += case.tokens[only[0]] or b""
    return run


def step(case: Case, history: Sequence[int], text: bytes) -> dict[int, float]:
    """The probability of each next token."""
    logits = list(case.logits(history))
    for i in set(history):
        penalty = case.repetition_penalty
        logits[i] = logits[i] / penalty if logits[i] > 0 else logits[i] * penalty
    for i, bias in case.logit_bias.items():
        logits[i] += bias
    legal = allowed(case, text)
    order = sorted(legal, key=lambda i: (-logits[i], i))
    if case.temperature == 0:
        return {order[0]: 1.0}
    order = order[: case.top_k or None]
    weights = {i: math.exp((logits[i] - logits[order[0]]) / case.temperature) for i in order}
    total = sum(weights.values())
    kept: dict[int, float] = {}
    for i in order:
        if case.top_p is not None and sum(kept.values()) / total >= case.top_p:
            break
        kept[i] = weights[i]
    total = sum(kept.values())
    return {i: weight / total for i, weight in kept.items()}


def distribution(case: Case) -> dict[tuple[int, ...], float]:
    """The probability of each sequence of tokens, without the end of sequence."""
    found: dict[tuple[int, ...], float] = {}

    def walk(generated: tuple[int, ...], text: bytes, probability: float) -> None:
        run = forced_tokens(case, text)
        if run:
            data = b"".join(case.tokens[i] or b"" for i in run)
            walk((*generated, *run), text + data, probability)
            return
        for token_id, share in step(case, [*case.prompt, *generated], text).items():
            if token_id == case.eos:
                found[generated] = found.get(generated, 0.0) + probability * share
            else:
                data = case.tokens[token_id] or b""
                walk((*generated, token_id), text + data, probability * share)

    walk((), b"", 1.0)
    return found


def deviation(counts: dict[tuple[int, ...], int], expected: dict[tuple[int, ...], float]) -> float:
    """How far counts are from a distribution, in standard deviations of a normal variable.

    The chi-square statistic, through the Wilson-Hilferty transformation; cells that expect less
    than five are united. Infinite where something was counted that cannot come.
    """
    total = sum(counts.values())
    if any(key not in expected for key in counts):
        return math.inf
    cells: list[tuple[float, float]] = []
    rest_counted = rest_expected = 0.0
    for key, probability in expected.items():
        if probability * total < 5:
            rest_counted += counts.get(key, 0)
            rest_expected += probability * total
        else:
            cells.append((counts.get(key, 0), probability * total))
    if rest_expected > 0:
        cells.append((rest_counted, max(rest_expected, 1e-9)))
    degrees = len(cells) - 1
    if degrees == 0:
        return 0.0
    statistic = sum((counted - wanted) ** 2 / wanted for counted, wanted in cells)
    spread = 2 / (9 * degrees)
    return ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
