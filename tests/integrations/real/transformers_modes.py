"""transformers: ``python -m tests.integrations.real.transformers_modes``.

Beside the four cases in every mode of generation: tool calls in a model family's format, sixteen
schemas in one call of `generate`, and texts that are continued behind a prefix.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import constrain
from constrain.integrations.transformers import (
    ConstrainedLogitsProcessor,
    generate,
    generate_batch,
)
from tests.integrations.real.cases import (
    MAX_TOKENS,
    Case,
    Judged,
    judge,
    leave,
    main,
    messages,
    rounds,
)

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 30},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        },
    },
    {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
]
FORMATS = ("hermes", "mistral", "llama3-json")


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

    def samples(cases: Sequence[Case]) -> list[str]:
        found = together(cases, do_sample=True, temperature=1.0, num_return_sequences=3)
        return rounds(found, cases)

    def resumed(cases: Sequence[Case]) -> list[str]:
        """Greedy texts, each cut in its middle and continued by sampling."""
        whole = [vocabulary.encode(text.encode()) for text in together(cases, do_sample=False)]
        begun = [ids[: len(ids) // 2] for ids in whole]
        given = [tokenizer(prompt)["input_ids"] for prompt in prompts(cases)]
        rows = [[*ids, *prefix] for ids, prefix in zip(given, begun)]
        inputs = tokenizer.pad({"input_ids": rows}, padding_side="left", return_tensors="pt")
        width = inputs["input_ids"].shape[1]
        output = generate(
            model,
            inputs,
            [compiled(case) for case in cases],
            prompt_length=[width - len(prefix) for prefix in begun],
            max_new_tokens=MAX_TOKENS,
            do_sample=True,
        )
        rest = texts(output[:, width:].tolist())
        return [vocabulary.decode(prefix).decode() + text for prefix, text in zip(begun, rest)]

    def tool_calls(_: Sequence[Case]) -> list[Judged]:
        """A call of one of two tools in the formats of three model families, in one batch."""
        specs = [constrain.ToolCalls(TOOLS, format=f, tool_choice="required") for f in FORMATS]
        asked = ("weather", "What is the weather in Oslo? Call get_weather.", {})
        inputs = tokenizer(
            prompts([asked] * len(specs)), return_tensors="pt", padding=True, padding_side="left"
        )
        constraints = [constrain.compile(spec, vocabulary) for spec in specs]
        output = generate(model, inputs, constraints, max_new_tokens=MAX_TOKENS, do_sample=True)
        found: list[Judged] = []
        for spec, name, row in zip(specs, FORMATS, output[:, inputs["input_ids"].shape[1] :]):
            kept = [i for i in row.tolist() if i not in vocabulary.eos_token_ids]
            text = vocabulary.decode(kept, special_tokens=True).decode()
            message = spec.parse(text)
            problem = None if message.calls else "no call"
            for call in message.calls:
                tool = next((tool for tool in TOOLS if tool["name"] == call.name), None)
                if tool is None:
                    problem = f"no tool {call.name}"
                else:
                    schema: Any = tool["parameters"]
                    problem = problem or judge(("", "", schema), json.dumps(call.arguments))
            found.append((name, text, problem))
        return found

    def sixteen(**options: Any) -> list[Judged]:
        """Sixteen schemas in one call: texts of very different lengths."""
        from tests.integrations.test_transformers_modes import SCHEMAS

        cases = [(str(n), "Some JSON, please.", schema) for n, schema in enumerate(SCHEMAS)]
        found = together(cases, **options)
        return [
            (case[0], text, judge(case, text))
            for case, text in zip([c for c in cases for _ in range(len(found) // 16)], found)
        ]

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
        ("3 samples of each", samples),
        ("resumed prefix", resumed),
        ("tool calls", tool_calls),
        ("16 schemas, sampling", lambda _: sixteen(do_sample=True, temperature=1.0)),
        ("16 schemas, beams", lambda _: sixteen(num_beams=2, do_sample=False)),
    ]


if __name__ == "__main__":
    leave(main("transformers", ["transformers", "torch"], prepare))
