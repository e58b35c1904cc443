"""Constrain the ordinary `generate()` of transformers with a logits processor.

    python examples/plain_generate.py

Everything else stays as it is: sampling options, batches and beams are transformers' own.
"""

from __future__ import annotations

import constrain

PROMPTS = ("Write the date of the moon landing.", "Write the date on which the Berlin Wall fell.")
PATTERN = r"(January|July|November|December) [1-9][0-9]?, 19[0-9]{2}"


def generate(max_new_tokens: int = 24) -> list[str]:
    """One date for each prompt, in one batch."""
    from constrain.integrations.transformers import ConstrainedLogitsProcessor
    from constrain.models import load_model

    model, tokenizer = load_model()
    compiled = constrain.compile(
        constrain.Regex(PATTERN), constrain.Vocabulary.from_tokenizer(tokenizer)
    )
    chats = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    texts = [
        tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        for chat in chats
    ]
    tokenizer.padding_side = "left"
    inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    prompt_length = inputs["input_ids"].shape[1]
    output = model.generate(
        **inputs,
        logits_processor=[ConstrainedLogitsProcessor(compiled, prompt_length=prompt_length)],
        do_sample=False,
        max_new_tokens=max_new_tokens,
    )
    return tokenizer.batch_decode(output[:, prompt_length:], skip_special_tokens=True)


def main() -> None:
    for prompt, text in zip(PROMPTS, generate()):
        print(f"{prompt}  {text}")


if __name__ == "__main__":
    main()
