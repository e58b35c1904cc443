"""transformers: ``python -m tests.integrations.real.transformers_modes``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import constrain
from constrain.integrations.transformers import (
    ConstrainedLogitsProcessor,
    generate,
    generate_batch,
)
from tests.integrations.real.cases import MAX_TOKENS, Case, leave, main, messages


def prepare(folder: str) -> Any:
    import torch
    import transformers

    from constrain.models import load_model

    model, tokenizer = load_model(folder)
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, model=model)
    torch.manual_seed(7)

    def compiled(case: Case) -> Any:
        return constrain.compile(constrain.JsonSchema(case[2]), vocabulary)

    def prompts(cases: Sequence[Case]) -> list[str]:
        return [
            tokenizer.apply_chat_template(
                messages(case), add_generation_prompt=True, tokenize=False
            )
            for case in cases
        ]

    def texts(rows: Any) -> list[str]:
        return [
            vocabulary.decode(i for i in row if i not in vocabulary.eos_token_ids).decode()
            for row in rows
        ]

    def together(cases: Sequence[Case], **options: Any) -> list[str]:
        inputs = tokenizer(prompts(cases), return_tensors="pt", padding=True, padding_side="left")
        constraints = [compiled(case) for case in cases]
        output = generate(model, inputs, constraints, max_new_tokens=MAX_TOKENS, **options)
        return texts(output[:, inputs["input_ids"].shape[1] :].tolist())

    def alone(cases: Sequence[Case], **options: Any) -> list[str]:
        return [text for case in cases for text in together([case], **options)]

    def continuous(cases: Sequence[Case]) -> list[str]:
        ids = [tokenizer(prompt)["input_ids"] for prompt in prompts(cases)]
        config = transformers.GenerationConfig(do_sample=True, temperature=1.0)
        constraints = [compiled(case) for case in cases]
        return texts(
            generate_batch(
                model, ids, constraints, max_new_tokens=MAX_TOKENS, generation_config=config
            )
        )

    def piped(cases: Sequence[Case]) -> list[str]:
        pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
        found = []
        for case in cases:
            processor = ConstrainedLogitsProcessor(compiled(case), max_new_tokens=MAX_TOKENS)
            result = pipe(
                messages(case),
                logits_processor=processor.as_list(),
                max_new_tokens=MAX_TOKENS,
                return_full_text=False,
            )
            found.append(result[0]["generated_text"])
        return found

    return [
        ("greedy", lambda cases: together(cases, do_sample=False)),
        ("sampling", lambda cases: together(cases, do_sample=True, temperature=1.0)),
        ("beams", lambda cases: together(cases, num_beams=3, do_sample=False)),
        ("static cache", lambda cases: together(cases, cache_implementation="static")),
        ("prompt lookup", lambda cases: alone(cases, prompt_lookup_num_tokens=4, do_sample=False)),
        ("assistant", lambda cases: alone(cases, assistant_model=model, do_sample=False)),
        ("continuous batching", continuous),
        ("pipeline", piped),
    ]


if __name__ == "__main__":
    leave(main("transformers", ["transformers", "torch"], prepare))
