"""mlx-lm: ``python -m tests.integrations.real.mlx_lm``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrain.integrations.mlx_lm import Constraints
from tests.integrations.real.cases import MAX_TOKENS, Case, leave, main, messages


def loadable(folder: str) -> str:
    """The same folder with a config that mlx-lm reads: it looks for a ``rope_theta`` of its own."""
    copy = Path(tempfile.mkdtemp(prefix="mlx-"))
    for file in Path(folder).iterdir():
        if file.name != "config.json":
            (copy / file.name).symlink_to(file.resolve())
    config = json.loads((Path(folder) / "config.json").read_text())
    config.setdefault("rope_theta", (config.get("rope_parameters") or {}).get("rope_theta", 1e5))
    (copy / "config.json").write_text(json.dumps(config))
    return str(copy)


def prepare(folder: str) -> Any:
    from mlx_lm import generate, load
    from mlx_lm.generate import BatchGenerator
    from mlx_lm.sample_utils import make_sampler

    model, tokenizer = load(loadable(folder))
    constraints = Constraints(tokenizer, model)

    def prompt(case: Case) -> list[int]:
        return tokenizer.apply_chat_template(messages(case), add_generation_prompt=True)

    def processor(case: Case) -> Any:
        return constraints.processor({"json_schema": case[2]}, max_tokens=MAX_TOKENS)

    def one_by_one(cases: Sequence[Case], **options: Any) -> list[str]:
        return [
            generate(
                model,
                tokenizer,
                prompt(case),
                max_tokens=MAX_TOKENS,
                logits_processors=[processor(case)],
                **options,
            )
            for case in cases
        ]

    def batched(cases: Sequence[Case]) -> list[str]:
        generator = BatchGenerator(
            model,
            stop_tokens=[[i] for i in tokenizer.eos_token_ids],
            sampler=make_sampler(temp=1.0),
        )
        uids = generator.insert(
            [prompt(case) for case in cases],
            max_tokens=[MAX_TOKENS] * len(cases),
            logits_processors=[[processor(case)] for case in cases],
        )
        texts: dict[int, list[int]] = {uid: [] for uid in uids}
        done: set[int] = set()
        while len(done) < len(uids):
            for response in generator.next_generated():
                if response.finish_reason is not None:
                    done.add(response.uid)
                if response.finish_reason != "stop":
                    texts[response.uid].append(response.token)
        return [constraints.vocabulary.decode(texts[uid]).decode() for uid in uids]

    return [
        ("greedy", one_by_one),
        ("temperature 1", lambda cases: one_by_one(cases, sampler=make_sampler(temp=1.0))),
        ("batch", batched),
        ("draft model", lambda cases: one_by_one(cases, draft_model=model, num_draft_tokens=3)),
    ]


if __name__ == "__main__":
    leave(main("mlx-lm", ["mlx-lm", "mlx"], prepare))
