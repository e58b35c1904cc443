"""`generate` and `generate_batch`: what callers hand over, checked and put into the loop's terms."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from constrain.decoding.loop import decode
from constrain.decoding.prompts import Prompt, encode_prefix, encode_prompt
from constrain.decoding.result import GenerationResult
from constrain.decoding.sampling import Sampler
from constrain.decoding.sequence import Running
from constrain.decoding.speculation import Speculation
from constrain.errors import ConstrainError, LimitExceededError

__all__ = ["generate", "generate_batch"]

_vocabularies: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def generate(
    model: Any,
    tokenizer: Any,
    prompt: Prompt,
    constraint: Any = None,
    *,
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    repetition_penalty: float = 1.0,
    logit_bias: Mapping[int, float] | None = None,
    stop: Sequence[str] = (),
    prefix: str | Sequence[int] = "",
    budget: bool = True,
    forced: str = "text",
    speculation: Speculation | None = None,
    measure: bool = False,
    on_text: Callable[[str], None] | None = None,
) -> GenerationResult:
    """Generate one sequence.

    Args:
        model: a causal language model of transformers, in evaluation mode.
        tokenizer: its tokenizer.
        prompt: a text, chat messages or token ids.
        constraint: a compiled constraint, or None.
        max_tokens: at most so many tokens, besides the end of sequence.
        temperature, top_k, top_p, seed, repetition_penalty, logit_bias: see
            :class:`~constrain.decoding.Sampler`.
        stop: texts that end the sequence and are cut off; they may end it before it satisfies the
            constraint.
        prefix: what the answer begins with already, a text or token ids; the constraint reads it,
            the result has what comes behind it.
        budget: with a constraint, `max_tokens` (or the room in the model's context, if that is
            less) is a promise: only tokens are chosen after which the text can be finished in what
            remains.  False cuts the text off at the limit.
        forced: "text" appends text without an alternative as the tokenizer writes it, without a
            forward pass for each token; "single" appends tokens where the mask has exactly one;
            "off" appends none.  `constrain.forced` says what this means for distributions.
        speculation: `PromptLookup` or `DraftModel`; texts are distributed as without it.
        measure: record in the timings which share of the probability each mask removes.
        on_text: called with each piece of text as soon as it is certain (a character may take
            several tokens); the pieces joined are the text of the result.

    Raises:
        ConstrainError: the prompt does not fit the model, a setting is out of range, the
            constraint refuses the prefix or belongs to another vocabulary.
        LimitExceededError: not even the shortest text fits the budget; its `needed` is the number
            of tokens that would do.
    """
    (result,) = generate_batch(
        model,
        tokenizer,
        [prompt],
        [constraint],
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        repetition_penalty=repetition_penalty,
        logit_bias=logit_bias,
        stop=stop,
        prefixes=[prefix],
        budget=budget,
        forced=forced,
        speculation=speculation,
        measure=measure,
        on_text=None if on_text is None else lambda _, text: on_text(text),
    )
    return result


def generate_batch(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    constraints: Any = None,
    *,
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    repetition_penalty: float = 1.0,
    logit_bias: Mapping[int, float] | None = None,
    stop: Sequence[str] = (),
    prefixes: Sequence[str | Sequence[int]] | None = None,
    budget: bool = True,
    forced: str = "text",
    speculation: Speculation | None = None,
    measure: bool = False,
    on_token: Callable[[int, int], None] | None = None,
    on_text: Callable[[int, str], None] | None = None,
) -> list[GenerationResult]:
    """Generate one sequence for each prompt, together.

    Args:
        prompts: each a text, chat messages or token ids; padded on the left.
        constraints: one compiled constraint for all, or a list with one (or None) for each prompt.
        seed: prompt i draws with the seed ``seed + i``, so that equal prompts differ.
        prefixes: for each prompt what its answer begins with already.
        on_token: called with the index of the prompt and each id that is chosen for it.
        on_text: called with the index of the prompt and each piece of its text.

    The other arguments, and what is raised, are those of :func:`generate`.

    Returns:
        The results, in the order of the prompts.
    """
    if isinstance(prompts, str):
        raise ConstrainError("prompts is a list of prompts, not one text")
    if constraints is None or not isinstance(constraints, Sequence):
        constraints = [constraints] * len(prompts)
    if len(constraints) != len(prompts):
        raise ConstrainError(f"there are {len(prompts)} prompts and {len(constraints)} constraints")
    if prefixes is None:
        prefixes = [""] * len(prompts)
    if isinstance(prefixes, str) or len(prefixes) != len(prompts):
        raise ConstrainError(f"there are {len(prompts)} prompts and {len(prefixes)} prefixes")
    vocabulary = _vocabulary_of(tokenizer, model, constraints)
    sequences = []
    for index, (prompt, constraint, prefix) in enumerate(zip(prompts, constraints, prefixes)):
        sampler = Sampler(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=None if seed is None else seed + index,
            repetition_penalty=repetition_penalty,
            logit_bias=logit_bias,
        )
        try:
            sequence = Running(
                encode_prompt(tokenizer, prompt),
                constraint,
                vocabulary,
                sampler,
                max_tokens=max_tokens,
                prefix=encode_prefix(vocabulary, prefix),
                stop=stop,
                budget=budget,
                on_text=_numbered(on_text, index),
            )
        except LimitExceededError:
            raise
        except ConstrainError as error:
            if len(prompts) == 1:
                raise
            raise ConstrainError(f"prompt {index}: {error}") from error
        sequence.on_token = _numbered(on_token, index)
        sequences.append(sequence)
    if sequences:
        decode(
            model, vocabulary, sequences, forced=forced, speculation=speculation, measure=measure
        )
    return [sequence.result() for sequence in sequences]


def _numbered(call: Callable[[int, Any], None] | None, index: int) -> Any:
    """`call` with the index filled in, or None."""
    return None if call is None else lambda value: call(index, value)


def _vocabulary_of(tokenizer: Any, model: Any, constraints: Sequence[Any]) -> Any:
    """The vocabulary that the constraints share; without any, the tokenizer's own."""
    found = [constraint.vocabulary for constraint in constraints if constraint is not None]
    if found:
        if any(vocabulary != found[0] for vocabulary in found[1:]):
            raise ConstrainError("the constraints were compiled for different vocabularies")
        return found[0]
    from constrain.vocabulary import Vocabulary

    vocabulary = _vocabularies.get(tokenizer)
    if vocabulary is None:
        vocabulary = Vocabulary.from_tokenizer(tokenizer, model=model)
        _vocabularies[tokenizer] = vocabulary
    return vocabulary
