"""Sampled frequencies of the loop against exact enumeration: plain, forced, speculative."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import constrain
from constrain.decoding import ConstraintDrafts, DraftModel, FirstOf, PromptLookup, generate_batch
from tests.reference.decoding import Case, deviation, distribution
from tests.reference.vocabularies import greedy

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOKENS: list[bytes | None] = [
    *(b"a", b"b", b"c", b"d", b"e", b"x", b"y"),
    *(b"ab", b"cd", b"cea", b"ea", b"xa", b"yy", b"ca"),
    None,
]
EOS = len(TOKENS) - 1
# Behind x the text abc has no alternative, but "cd" reaches beyond it; behind yy, abca has none.
TEXTS = [b"xabcd", b"xabcea", b"xabceb", b"yab", b"yabc", b"yyabcab", b"yyabcaa", b"e"]
PROMPT = [0, 7, 3, 0, 7, 9, 5, 0, 11, 8, 5, 7, 4, 6, 6, 7, 2, 6]
SAMPLES = 1500
SIGMAS = 4.0  # seeds are fixed: this is either met or not


def small_model(seed: int, scale: float = 4.0) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        eos_token_id=EOS,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight *= scale / model.lm_head.weight.norm(dim=1, keepdim=True)
    return model


@pytest.fixture(scope="module")
def model() -> Any:
    return small_model(1)


@pytest.fixture(scope="module")
def draft_model() -> Any:
    return small_model(2)


@pytest.fixture(scope="module")
def compiled() -> Any:
    encode = greedy(TOKENS)
    vocabulary = constrain.Vocabulary(TOKENS, eos_token_ids=[EOS], encode=encode)
    return constrain.compile(constrain.Choice([text.decode() for text in TEXTS]), vocabulary)


@pytest.fixture(scope="module")
def case(model: Any) -> Case:
    known: dict[tuple[int, ...], list[float]] = {}

    def logits(history: Any) -> list[float]:
        key = tuple(history)
        if key not in known:
            with torch.inference_mode():
                known[key] = model(torch.tensor([key])).logits[0, -1].tolist()
        return known[key]

    encode = greedy(TOKENS)
    return Case(logits, TOKENS, EOS, TEXTS, PROMPT, lambda text: encode(text.decode()))


def sampled(
    model: Any, compiled: Any, case: Case, samples: int = SAMPLES, **options: Any
) -> Counter:
    results = generate_batch(
        model,
        None,
        [PROMPT] * samples,
        compiled,
        max_tokens=30,
        seed=11,
        temperature=case.temperature,
        top_k=case.top_k,
        top_p=case.top_p,
        repetition_penalty=case.repetition_penalty,
        logit_bias=case.logit_bias,
        forced=case.forced,
        **options,
    )
    assert all(result.is_complete and result.finish_reason == "stop" for result in results)
    return Counter(tuple(result.token_ids) for result in results)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 2.0, "top_k": 3},
    {"temperature": 1.5, "top_p": 0.8},
    {"top_k": 4, "top_p": 0.9, "repetition_penalty": 1.4, "logit_bias": {7: 1.5, 3: -1.0}},
]


@pytest.mark.parametrize("forced", ["off", "single", "text"])
@pytest.mark.parametrize("settings", SETTINGS, ids=["plain", "top_k", "top_p", "penalties"])
def test_frequencies(model: Any, compiled: Any, case: Case, forced: str, settings: dict) -> None:
    case = replace(case, forced=forced, **settings)
    expected = distribution(case)
    assert sum(expected.values()) == pytest.approx(1)
    assert len(expected) > 3
    assert abs(deviation(sampled(model, compiled, case), expected)) < SIGMAS


def test_wrong_distributions_are_noticed(model: Any, compiled: Any, case: Case) -> None:
    """The test has power: what is nearly right is far away, forced text by bytes among it."""
    counts = sampled(model, compiled, replace(case, forced="text"))
    for wrong in ({"forced": "naive"}, {"temperature": 1.3}, {"top_p": 0.95}, {"forced": "off"}):
        expected = distribution(replace(case, **{"forced": "text", **wrong}))
        assert deviation(counts, expected) > 1.5 * SIGMAS, wrong


def test_greedy_takes_the_only_text(model: Any, compiled: Any, case: Case) -> None:
    for forced in ("off", "single", "text"):
        greedy_case = replace(case, temperature=0, forced=forced)
        (only,) = distribution(greedy_case)
        assert set(sampled(model, compiled, greedy_case, samples=3)) == {only}
        looked_up = sampled(
            model, compiled, greedy_case, samples=3, speculation=PromptLookup(branches=3)
        )
        assert set(looked_up) == {only}


def speculations(draft_model: Any, model: Any) -> dict[str, Any]:
    return {
        "lookup": PromptLookup(tokens=4, ngram=2),
        "lookup tree": PromptLookup(tokens=3, ngram=2, branches=3),
        "constraint": ConstraintDrafts(tokens=4),
        "draft model": DraftModel(draft_model, tokens=3),
        "draft tree": DraftModel(draft_model, tokens=3, branches=3),
        "first": FirstOf(PromptLookup(tokens=3), DraftModel(draft_model, tokens=2)),
        "itself": DraftModel(model, tokens=5),
    }


@pytest.mark.parametrize("forced", ["off", "text"])
@pytest.mark.parametrize(
    "kind", ["lookup", "lookup tree", "constraint", "first", "draft model", "draft tree", "itself"]
)
def test_frequencies_with_speculation(
    model: Any, draft_model: Any, compiled: Any, case: Case, forced: str, kind: str
) -> None:
    case = replace(case, forced=forced, temperature=1.2, top_k=6)
    options = {"speculation": speculations(draft_model, model)[kind]}
    counts = sampled(model, compiled, case, **options)
    assert abs(deviation(counts, distribution(case))) < SIGMAS


def test_drafts_are_accepted_and_save_passes(model: Any, draft_model: Any, compiled: Any) -> None:
    saved = {}
    for kind, speculation in {"none": None, **speculations(draft_model, model)}.items():
        results = generate_batch(
            model,
            None,
            [PROMPT] * 100,
            compiled,
            seed=3,
            max_tokens=30,
            forced="off",
            speculation=speculation,
        )
        timings = [result.timings for result in results]
        saved[kind] = sum(t.tokens for t in timings) / sum(t.passes for t in timings)
        drafted, accepted = sum(t.drafted for t in timings), sum(t.accepted for t in timings)
        assert accepted <= drafted
        assert (accepted > 0) is (speculation is not None)
        if kind == "itself":
            assert accepted == drafted  # the same distribution: nothing is refused
    assert saved["itself"] > max(saved["draft model"], saved["lookup"])
    assert min(saved["draft model"], saved["lookup"]) > saved["none"]


def in_transformers(model: Any, compiled: Any, case: Case, samples: int, **options: Any) -> Counter:
    """What transformers' own `generate` samples; with drafts it takes one sequence at a time."""
    from constrain.integrations.transformers import generate

    batch = 1 if options else samples
    ids = torch.tensor([PROMPT] * batch)
    counts: Counter = Counter()
    torch.manual_seed(23)
    for _ in range(samples // batch):
        output = generate(
            model,
            {"input_ids": ids, "attention_mask": torch.ones_like(ids)},
            compiled,
            max_new_tokens=30,
            do_sample=True,
            temperature=case.temperature,
            top_k=case.top_k or 0,
            top_p=case.top_p or 1.0,
            pad_token_id=EOS,
            **options,
        )
        rows = output[:, len(PROMPT) :].tolist()
        counts.update(tuple(row[: row.index(EOS)] if EOS in row else row) for row in rows)
    return counts


@pytest.mark.parametrize("kind", ["plain", "assistant", "lookup"])
def test_frequencies_in_transformers(
    model: Any, draft_model: Any, compiled: Any, case: Case, kind: str
) -> None:
    """The processor masks the draft model's logits and the model's, in any order of prefixes."""
    case = replace(case, temperature=1.5, top_k=6)
    options: dict[str, Any] = {}
    if kind == "assistant":
        options = {"assistant_model": draft_model}
    elif kind == "lookup":
        options = {"prompt_lookup_num_tokens": 4}
    samples = 200 if options else SAMPLES
    counts = in_transformers(model, compiled, case, samples, **options)
    assert sum(counts.values()) == samples
    expected = distribution(case)
    assert abs(deviation(counts, expected)) < SIGMAS
    for wrong in ({"temperature": 3.0}, {"top_k": 2}):
        assert deviation(counts, distribution(replace(case, **wrong))) > SIGMAS, wrong
