"""llama-cpp-python: ``python -m tests.integrations.real.llama_cpp_python``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrain.integrations.llama_cpp import create_chat_completion, create_completion
from constrain.models import _packaged_gguf
from tests.integrations.real.cases import MAX_TOKENS, Case, leave, main, messages


def prepare(_: str) -> Any:
    from llama_cpp import Llama

    llama = Llama(str(_packaged_gguf()), n_ctx=1024, n_threads=1, seed=3, verbose=False)

    def run(cases: Sequence[Case], **sampling: Any) -> list[str]:
        texts = []
        for case in cases:
            answer = create_chat_completion(
                llama, messages(case), {"json_schema": case[2]}, max_tokens=MAX_TOKENS, **sampling
            )
            if sampling.get("stream"):
                deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in answer]
                texts.append("".join(deltas))
            else:
                texts.append(answer["choices"][0]["message"]["content"])
        return texts

    def completion(cases: Sequence[Case]) -> list[str]:
        constraint = [{"json_schema": case[2]} for case in cases]
        return [
            create_completion(llama, case[1] + "\n", one, max_tokens=MAX_TOKENS)["choices"][0][
                "text"
            ]
            for case, one in zip(cases, constraint)
        ]

    return [
        ("greedy", lambda cases: run(cases, temperature=0.0)),
        ("temperature 1", lambda cases: run(cases, temperature=1.0, repeat_penalty=1.2)),
        ("completion", completion),
        ("stream", lambda cases: run(cases, temperature=0.7, stream=True)),
        # a bias that wants another token than the constraint allows
        ("logit bias", lambda cases: run(cases, temperature=1.0, logit_bias={"10": 90.0})),
    ]


if __name__ == "__main__":
    leave(main("llama-cpp-python", ["llama-cpp-python", "numpy"], prepare))
