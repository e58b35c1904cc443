"""The renderings of the shared data: which format each template has, and texts as models write them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from constrain.tools.formats import ToolFormat
from constrain.tools.templates import Hole
from tests.reference import data

FORMAT_OF = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "hermes",
    "ByteDance-Seed-OSS": "seed-oss",
    "Cohere2MoE": "cohere-moe",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere",
    "GLM-4.6": "glm-4.5",
    "GLM-4.7-Flash": "glm-4.7",
    "GigaChat3-10B-A1.8B": "gigachat-3",
    "GigaChat3.1-10B-A1.8B": "gigachat-3.1",
    "Kimi-K3": "kimi-k3",
    "LFM2.5-8B-A1B": "lfm2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1",
    "MiniMax-M2": "minimax-m2",
    "MiniMax-M3": "minimax-m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-call-id",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3-coder",
    "NVIDIA-Nemotron-Nano-v2": "nemotron-nano-v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "Reka-Edge": "hermes",
    "Spark2.5": "glm-4.7",
    "StepFun3.5-Flash": "step-3.5",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
    "ibm-granite-granite-4.0": "granite-4",
    "ibm-granite-granite-4.1": "granite-4",
    "inclusionai-ling-3.0-flash": "ling-3",
    "meetkai-functionary-medium-v3.1": "functionary-v3.1",
    "meetkai-functionary-medium-v3.2": "functionary-v3.2",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3-json",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral-list",
    "moonshotai-Kimi-K2": "kimi-k2",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "openbmb-MiniCPM5-1B": "minicpm5",
    "poolside-Laguna-S-2.1": "glm-4.7",
    "poolside-Laguna-XS-2.1": "glm-4.5",
    "poolside-Laguna-XS.2": "glm-4.5",
    "tencent-Hy3": "hunyuan-3",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "upstage-Solar-Open-100B": "solar-open",
}

# Their templates write only the first of several calls, so there is only that one to read.
WRITES_ONE_CALL = {"GigaChat3-10B-A1.8B", "GigaChat3.1-10B-A1.8B", "openai-gpt-oss-120b"}


@lru_cache(maxsize=1)
def renderings() -> dict[str, list[dict[str, Any]]]:
    root = data.shared_root()
    result: dict[str, list[dict[str, Any]]] = {}
    if root is not None:
        with (root / "data" / "tool-renderings.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                result.setdefault(one["template"], []).append(one)
    return result


def tools(root: Path) -> list[dict[str, Any]]:
    return json.loads((root / "data" / "tool-renderings-tools.json").read_text(encoding="utf-8"))


def wanted(rendering: dict[str, Any]) -> list[tuple[str, Any]]:
    calls = []
    for call in rendering["message"].get("tool_calls", []):
        arguments = call["function"]["arguments"]
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        calls.append((call["function"]["name"], arguments))
    if rendering["template"] in WRITES_ONE_CALL:
        return calls[:1]
    return calls


def as_written(rendering: dict[str, Any], form: ToolFormat) -> tuple[str, str]:
    """The answer and the prompt that it follows.

    An answer that is not exact begins where prompt and history part, which may be inside the first
    tag of a call or of a section: what is missing is put back.
    """
    answer, asked = rendering["answer"].replace("<eos>", ""), rendering["prompt_end"]
    section = form.reasoning
    end = section.end.strip() if section else ""
    if rendering["exact"]:
        return answer, asked if not end or end in asked + answer else ""
    # one template moves the system message, and with it the end of the user's turn
    answer = answer.rpartition("[/INST]")[2]
    openings = []
    calls = wanted(rendering)
    if calls:
        openings.append(
            "".join(
                one.text
                if not isinstance(one, Hole)
                else calls[0][0]
                if one.kind == "name"
                else "0"
                for one in form.opening(True)
            )
        )
    openings += [one.begin for one in (section, form.text) if one is not None]
    for opening in openings:
        for at in range(1, len(opening)):
            rest = opening[at:]
            if len(rest.strip()) > 2 and answer.startswith(rest) and opening[:at] in asked:
                return opening[:at] + answer, ""
    if section is not None and end:
        for at in range(1, len(end)):
            if answer.startswith(end[at:]) and asked.endswith(end):
                return answer[len(end) - at :], end
        return answer, section.begin if end in answer else ""
    return answer, ""


def cuts(form: ToolFormat, text: str) -> list[str]:
    """The text up to each place where the message may have ended: before a stop, or at its end."""
    places = {at for stop in form.stop for at in range(len(text)) if text.startswith(stop, at)}
    return [text[:at] for at in sorted({*places, len(text)})]
