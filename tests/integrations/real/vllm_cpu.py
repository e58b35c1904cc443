"""vLLM on a CPU: ``python -m tests.integrations.real.vllm_cpu SETTING``.

Settings, each an engine of its own:

* named: the logits processor by its qualified name;
* entry-point: the same, found by vLLM itself, without asynchronous scheduling;
* backend: structured outputs by constrain;
* backend-speculating: the same with n-gram speculation;
* refused: what must be an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from tests.integrations.real.cases import CASES, MAX_TOKENS, Case, leave, main, messages, rounds

SETTINGS = ("named", "entry-point", "backend", "backend-speculating", "refused")
NAME = "constrain.integrations.vllm:LogitsProcessor"


def prepare(folder: str, setting: str) -> Any:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    if setting.startswith("backend"):
        os.environ["CONSTRAIN_VLLM_STRUCTURED_OUTPUTS"] = "1"
    from vllm import LLM, SamplingParams

    options: dict[str, Any] = {}
    speculation = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3}
    if setting == "named":
        options["logits_processors"] = [NAME]
    elif setting == "entry-point":
        options["async_scheduling"] = False
    elif setting.startswith("backend"):
        options["structured_outputs_config"] = {"backend": "guidance"}
    if setting in ("backend-speculating", "refused"):
        options["speculative_config"] = speculation
    llm = LLM(
        model=folder, enforce_eager=True, max_model_len=1024, max_num_seqs=4, seed=5, **options
    )

    def params(case: Case, **sampling: Any) -> Any:
        if setting.startswith("backend"):
            from vllm.sampling_params import StructuredOutputsParams

            # no token budget there: room for a small model to get to the end
            structured = StructuredOutputsParams(json=case[2])
            return SamplingParams(max_tokens=500, structured_outputs=structured, **sampling)
        asked = {"json_schema": case[2]}
        return SamplingParams(max_tokens=MAX_TOKENS, extra_args={"constrain": asked}, **sampling)

    def run(cases: Sequence[Case], **sampling: Any) -> list[str]:
        outputs = llm.chat(
            [messages(case) for case in cases],
            [params(case, **sampling) for case in cases],
            use_tqdm=False,
        )
        return [one.text for output in outputs for one in output.outputs]

    def as_text(cases: Sequence[Case]) -> list[str]:
        """As over HTTP, where extra arguments are texts; with free requests in the same batch."""
        asked = [
            SamplingParams(
                max_tokens=MAX_TOKENS,
                temperature=1.0,
                extra_args={"constrain": json.dumps({"json_schema": case[2]})},
            )
            for case in cases
        ]
        mixed = [p for one in asked for p in (one, SamplingParams(max_tokens=12))]
        outputs = llm.chat(
            [messages(case) for case in cases for _ in range(2)], mixed, use_tqdm=False
        )
        return [output.outputs[0].text for output in outputs[::2]]

    if setting == "refused":
        check_refusals(llm, params(CASES[0]))
        return []
    modes = [
        ("greedy", lambda cases: run(cases, temperature=0.0)),
        ("temperature 1, 2 each", lambda cases: run(cases, temperature=1.0, n=2)),
    ]
    if setting in ("named", "entry-point"):
        modes.append(("as text, mixed", as_text))
    return [(mode, lambda cases, run=run: rounds(run(cases), cases)) for mode, run in modes]


def check_refusals(llm: Any, params: Any) -> None:
    """Under speculation this runner would drop the processor: the request must fail."""
    try:
        llm.chat(messages(CASES[0]), params, use_tqdm=False)
    except Exception as error:
        # vLLM's own error, which no base class of Python's tells apart
        if "drops logits processors while it speculates" in str(error):
            print(f"  refused: {error}")
            return
        raise
    print("  NOT VALID: a constraint that is dropped was not refused")
    leave(1)


if __name__ == "__main__":
    leave(main("vllm", ["vllm-cpu", "torch", "transformers"], prepare, SETTINGS))
