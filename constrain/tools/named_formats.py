"""The tool-call formats of current model families, by name.

Each was compared with what published chat templates of its family write.  A model whose template is
at hand needs no name: ``format="auto"`` reads the format from the template.
"""

from __future__ import annotations

from constrain.tools.errors import ToolFormatError
from constrain.tools.formats import (
    JsonArguments,
    PythonArguments,
    Section,
    TaggedArguments,
    ToolFormat,
)

__all__ = ["FORMATS", "get_format"]

_THINK = Section("<think>", "</think>")
_TAG_PAIR = "<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>\n"
_DSML_PARAMETER = '<｜DSML｜parameter name="$key" string="$string">$value</｜DSML｜parameter>'


def _dsml(name: str, word: str, call: str, parameter: str, separator: str) -> ToolFormat:
    return ToolFormat(
        name=name,
        begin=f"<｜DSML｜{word}>\n",
        call=call,
        arguments=TaggedArguments(parameter, separator),
        separator="\n",
        end=f"\n</｜DSML｜{word}>",
        after_text="\n\n",
        reasoning=_THINK,
        stop=("<｜end▁of▁sentence｜>",),
        special_tokens=("<｜end▁of▁sentence｜>", "<think>", "</think>"),
    )


_ALL = (
    ToolFormat(
        name="hermes",
        call='<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>',
        separator="\n",
        after_text="\n",
        reasoning=_THINK,
        stop=("<|im_end|>", "<|end_of_text|>", "<sep>"),
        special_tokens=("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>"),
    ),
    ToolFormat(
        name="qwen3-coder",
        call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
        arguments=TaggedArguments("<parameter=$key>\n$value\n</parameter>\n", values="json"),
        separator="\n",
        after_text="\n\n",
        reasoning=_THINK,
        stop=("<|im_end|>",),
        special_tokens=("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>"),
    ),
    ToolFormat(
        name="seed-oss",
        call="<seed:tool_call>\n<function=$name>\n$arguments</function>\n</seed:tool_call>",
        arguments=TaggedArguments("<parameter=$key>$value</parameter>\n", values="python"),
        separator="\n",
        after_text="\n\n",
        reasoning=Section("<seed:think>", "</seed:think>"),
        stop=("<seed:eos>",),
        special_tokens=("<seed:tool_call>", "</seed:tool_call>", "<seed:eos>"),
    ),
    ToolFormat(
        name="llama3-json",
        call='{"name": "$name", "parameters": $arguments}',
        parallel=False,
        prose=False,
        stop=("<|eot_id|>", "<|eom_id|>"),
        special_tokens=("<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
        variants=('<|python_tag|>{"name": "$name", "parameters": $arguments}',),
    ),
    ToolFormat(
        name="llama-pythonic",
        begin="[",
        call="$name($arguments)",
        arguments=PythonArguments(),
        separator=", ",
        end="]",
        prose=False,
        stop=("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>"),
        special_tokens=("<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>"),
    ),
    ToolFormat(
        name="mistral-list",
        begin="[TOOL_CALLS][",
        call='{"name": "$name", "arguments": $arguments, "id": "$id"}',
        separator=", ",
        end="]",
        stop=("</s>",),
        special_tokens=("[TOOL_CALLS]", "</s>"),
        variants=('[TOOL_CALLS][{"name": "$name", "arguments": $arguments}',),
    ),
    ToolFormat(
        name="mistral",
        call="[TOOL_CALLS]$name[ARGS]$arguments",
        reasoning=Section("[THINK]", "[/THINK]"),
        stop=("</s>",),
        special_tokens=("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]", "</s>"),
    ),
    ToolFormat(
        name="mistral-call-id",
        call="[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments",
        stop=("</s>",),
        special_tokens=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "</s>"),
    ),
    ToolFormat(
        name="deepseek-r1",
        begin="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```"
        "<｜tool▁call▁end｜>",
        separator="\n",
        end="<｜tool▁calls▁end｜>",
        reasoning=_THINK,
        stop=("<｜end▁of▁sentence｜>",),
        special_tokens=(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
            "<｜end▁of▁sentence｜>",
        ),
    ),
    ToolFormat(
        name="deepseek-v3.1",
        begin="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>",
        end="<｜tool▁calls▁end｜>",
        reasoning=_THINK,
        stop=("<｜end▁of▁sentence｜>",),
        special_tokens=(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
            "<｜end▁of▁sentence｜>",
        ),
    ),
    _dsml(
        "deepseek-v3.2",
        "function_calls",
        '<｜DSML｜invoke name="$name">\n$arguments</｜DSML｜invoke>',
        _DSML_PARAMETER + "\n",
        "",
    ),
    _dsml(
        "deepseek-v4",
        "tool_calls",
        '<｜DSML｜invoke name="$name">\n$arguments\n</｜DSML｜invoke>',
        _DSML_PARAMETER,
        "\n",
    ),
    ToolFormat(
        name="harmony",
        call=" to=functions.$name<|channel|>commentary json<|message|>$arguments",
        parallel=False,
        after_text="<|end|><|start|>assistant",
        text=Section("<|channel|>final<|message|>", ""),
        reasoning=Section("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        stop=("<|call|>", "<|return|>", "<|end|>"),
        special_tokens=(
            "<|start|>",
            "<|channel|>",
            "<|message|>",
            "<|constrain|>",
            "<|end|>",
            "<|call|>",
            "<|return|>",
        ),
        variants=(
            "<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$arguments",
            "<|channel|>commentary to=functions.$name<|message|>$arguments",
            " to=functions.$name<|channel|>commentary <|constrain|>json<|message|>$arguments",
        ),
    ),
    ToolFormat(
        name="glm-4.5",
        call="<tool_call>$name\n$arguments</tool_call>",
        arguments=TaggedArguments(_TAG_PAIR),
        separator="\n",
        after_text="\n",
        reasoning=_THINK,
        stop=("<|user|>", "<|observation|>", "<|endoftext|>", "</assistant>"),
        special_tokens=(
            "<tool_call>",
            "</tool_call>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
            "<think>",
            "</think>",
        ),
    ),
    ToolFormat(
        name="glm-4.7",
        call="<tool_call>$name$arguments</tool_call>",
        arguments=TaggedArguments("<arg_key>$key</arg_key><arg_value>$value</arg_value>"),
        reasoning=_THINK,
        stop=(
            "<|user|>",
            "<|observation|>",
            "<|endoftext|>",
            "</assistant>",
            "<｜end▁of▁sentence｜>",
        ),
        special_tokens=(
            "<tool_call>",
            "</tool_call>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
            "<think>",
            "</think>",
        ),
    ),
    ToolFormat(
        name="ling-3",
        call="<tool_call>$name\n$arguments\n</tool_call>",
        arguments=TaggedArguments("<arg_key>$key</arg_key>\n<arg_value>$value</arg_value>"),
        separator="\n",
        after_text="\n",
        reasoning=_THINK,
        stop=("<|role_end|>",),
    ),
    ToolFormat(
        name="hunyuan-3",
        begin="<tool_calls:opensource>\n",
        call="<tool_call:opensource>$name<tool_sep:opensource>\n$arguments</tool_call:opensource>",
        arguments=TaggedArguments(
            "<arg_key:opensource>$key</arg_key:opensource>\n"
            "<arg_value:opensource>$value</arg_value:opensource>\n"
        ),
        separator="\n",
        end="\n</tool_calls:opensource>",
        reasoning=Section("<think:opensource>", "</think:opensource>"),
        stop=("<｜hy_eos:opensource｜>",),
    ),
    ToolFormat(
        name="kimi-k2",
        begin="<|tool_calls_section_begin|>",
        call="<|tool_call_begin|>functions.$name:$index<|tool_call_argument_begin|>$arguments"
        "<|tool_call_end|>",
        end="<|tool_calls_section_end|>",
        reasoning=_THINK,
        stop=("<|im_end|>",),
        special_tokens=(
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
            "<|im_end|>",
        ),
    ),
    ToolFormat(
        name="kimi-k3",
        begin="<|open|>tools<|sep|>",
        call='<|open|>call tool="$name" index="$index"<|sep|>$arguments<|close|>call<|sep|>',
        arguments=TaggedArguments(
            '<|open|>argument key="$key" type="$type"<|sep|>$value<|close|>argument<|sep|>'
        ),
        end="<|close|>tools<|sep|>",
        first_index=1,
        text=Section("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        reasoning=Section("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        stop=("<|close|>message<|sep|>", "<|end_of_msg|>"),
        special_tokens=("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"),
    ),
    ToolFormat(
        name="gemma4",
        call="<|tool_call>call:$name$arguments<tool_call|>",
        arguments=JsonArguments(quote='<|"|>', sorted_keys=True),
        reasoning=Section("<|channel>thought\n", "<channel|>"),
        stop=("<turn|>", "<|tool_response>"),
        special_tokens=(
            "<|tool_call>",
            "<tool_call|>",
            '<|"|>',
            "<|channel>",
            "<channel|>",
            "<turn|>",
            "<|tool_response>",
        ),
    ),
    ToolFormat(
        name="granite-3",
        begin="<|tool_call|>[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]",
        stop=("<|end_of_text|>",),
        special_tokens=("<|tool_call|>", "<|end_of_text|>"),
    ),
    ToolFormat(
        name="granite-4",
        call='<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>',
        separator="\n",
        after_text="\n",
        reasoning=_THINK,
        stop=("<|end_of_text|>",),
        special_tokens=("<tool_call>", "</tool_call>", "<|end_of_text|>"),
    ),
    ToolFormat(
        name="cohere",
        begin="<|START_ACTION|>[\n    ",
        call='{"tool_call_id": "$index", "tool_name": "$name", "parameters": $arguments}',
        separator=",\n    ",
        end="\n]<|END_ACTION|>",
        text=Section("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        reasoning=Section("<|START_THINKING|>", "<|END_THINKING|>"),
        stop=("<|END_OF_TURN_TOKEN|>",),
        special_tokens=(
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "<|START_RESPONSE|>",
            "<|END_RESPONSE|>",
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|END_OF_TURN_TOKEN|>",
        ),
    ),
    ToolFormat(
        name="cohere-moe",
        begin="<|START_ACTION|>[\n    ",
        call='{"tool_call_id": "$index", "tool_name": "$name", "parameters": $arguments}',
        separator=",\n    ",
        end="\n]<|END_ACTION|>",
        text=Section("<|START_TEXT|>", "<|END_TEXT|>"),
        reasoning=Section("<|START_THINKING|>", "<|END_THINKING|>"),
        stop=("<|END_OF_TURN_TOKEN|>",),
        special_tokens=(
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "<|START_TEXT|>",
            "<|END_TEXT|>",
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|END_OF_TURN_TOKEN|>",
        ),
    ),
    ToolFormat(
        name="minimax-m1",
        begin="<tool_calls>\n",
        call='{"name": "$name", "arguments": $arguments}\n',
        end="</tool_calls>",
        after_text="\n",
        reasoning=_THINK,
        stop=("<end_of_sentence>",),
    ),
    ToolFormat(
        name="minimax-m2",
        begin="<minimax:tool_call>\n",
        call='<invoke name="$name">\n$arguments</invoke>',
        arguments=TaggedArguments('<parameter name="$key">$value</parameter>\n'),
        separator="\n",
        end="\n</minimax:tool_call>",
        after_text="\n",
        reasoning=_THINK,
        stop=("[e~[",),
        special_tokens=("<minimax:tool_call>", "</minimax:tool_call>", "[e~["),
    ),
    ToolFormat(
        name="minimax-m3",
        begin="]<]minimax[>[<tool_call>\n",
        call=']<]minimax[>[<invoke name="$name">$arguments]<]minimax[>[</invoke>\n',
        arguments=TaggedArguments(
            "]<]minimax[>[<$key>$value]<]minimax[>[</$key>", values="nested"
        ),
        end="]<]minimax[>[</tool_call>",
        reasoning=Section("<mm:think>", "</mm:think>"),
        stop=("[e~[",),
        special_tokens=("]<]minimax[>[", "[e~["),
    ),
    ToolFormat(
        name="lfm2",
        begin="<|tool_call_start|>[",
        call="$name($arguments)",
        arguments=PythonArguments("raw"),
        separator=", ",
        end="]<|tool_call_end|>",
        reasoning=_THINK,
        stop=("<|im_end|>",),
        special_tokens=("<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>"),
    ),
    ToolFormat(
        name="phi4",
        begin="<|tool_call|>[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]<|/tool_call|>",
        stop=("<|end|>", "<|endoftext|>"),
        special_tokens=("<|tool_call|>", "<|/tool_call|>", "<|end|>"),
    ),
    ToolFormat(
        name="functionary-v3.1",
        call="<function=$name>$arguments</function>",
        stop=("<|eot_id|>", "<|eom_id|>"),
        special_tokens=("<|eot_id|>", "<|eom_id|>"),
    ),
    ToolFormat(
        name="functionary-v3.2",
        call=">>>$name\n$arguments",
        text=Section(">>>all\n", ""),
        prompted=">>>",
        stop=("<|eot_id|>", "<|eom_id|>"),
        special_tokens=("<|eot_id|>", "<|eom_id|>"),
    ),
    ToolFormat(
        name="apertus",
        begin="<|tools_prefix|>[",
        call='{"$name": $arguments}',
        separator=", ",
        end="]<|tools_suffix|>",
        stop=("<|assistant_end|>",),
        special_tokens=("<|tools_prefix|>", "<|tools_suffix|>"),
    ),
    ToolFormat(
        name="apriel",
        begin="<tool_calls>[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]</tool_calls>",
        after_text="\n",
        reasoning=Section("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
        stop=("<|end|>",),
    ),
    ToolFormat(
        name="nemotron-nano-v2",
        begin="<TOOLCALL>[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]</TOOLCALL>",
        after_text="\n<SPECIAL_12>\n<SPECIAL_11>Assistant\n",
        reasoning=_THINK,
        stop=("<SPECIAL_12>",),
        special_tokens=("<SPECIAL_12>", "<SPECIAL_11>"),
    ),
    ToolFormat(
        name="gigachat-3",
        call='<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "$name", "arguments": '
        "$arguments}",
        parallel=False,
        stop=("<|message_sep|>",),
        special_tokens=("<|message_sep|>", "<|role_sep|>"),
    ),
    ToolFormat(
        name="gigachat-3.1",
        call='<|function_call|>{"name": "$name", "arguments": $arguments}',
        parallel=False,
        stop=("<|message_sep|>",),
        special_tokens=("<|function_call|>", "<|message_sep|>"),
    ),
    ToolFormat(
        name="step-3.5",
        call="<tool_call>\n<function=$name>\n$arguments</function>\n</tool_call>",
        arguments=TaggedArguments("<parameter=$key>\n$value\n</parameter>\n", values="json"),
        reasoning=_THINK,
        stop=("<|im_end|>",),
        special_tokens=("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>"),
    ),
    ToolFormat(
        name="minicpm5",
        call='<function name="$name">$arguments</function>',
        arguments=TaggedArguments(
            '<param name="$key">$value</param>', values="python", cdata=True
        ),
        separator="\n",
        after_text="\n",
        reasoning=_THINK,
        stop=("<|im_end|>",),
    ),
    ToolFormat(
        name="muse",
        call=' to=$name<|message|><atem:function_calls>\n<atem:invoke name="$name">\n$arguments'
        "</atem:invoke>\n</atem:function_calls>",
        arguments=TaggedArguments('<atem:parameter name="$key">$value</atem:parameter>\n'),
        separator="<|eom|><|start|>assistant",
        after_text="<|eom|><|start|>assistant",
        text=Section(" to=user<|message|>", ""),
        reasoning=Section(" to=self<|message|>", "<|eom|><|start|>assistant"),
        stop=("<|eot|>", "<|eom|>"),
        special_tokens=("<|message|>", "<|eom|>", "<|eot|>", "<|start|>"),
    ),
    ToolFormat(
        name="solar-open",
        begin="<|tool_calls|>",
        call="<|tool_call:begin|>$id<|tool_call:name|>$name<|tool_call:args|>$arguments"
        "<|tool_call:end|>",
        text=Section("<|content|>", ""),
        reasoning=Section("<|think|>", "<|end|><|begin|>assistant"),
        stop=("<|calls|>", "<|end|>"),
        special_tokens=(
            "<|tool_calls|>",
            "<|tool_call:begin|>",
            "<|tool_call:name|>",
            "<|tool_call:args|>",
            "<|tool_call:end|>",
            "<|calls|>",
        ),
    ),
    ToolFormat(
        name="json",
        begin="[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]",
        prose=False,
    ),
)

_ALIASES = {
    "qwen2.5": "hermes",
    "qwen3": "hermes",
    "qwq": "hermes",
    "qwen3.5": "qwen3-coder",
    "nemotron-3": "qwen3-coder",
    "llama3": "llama3-json",
    "llama3.1": "llama3-json",
    "llama3.2": "llama3-json",
    "llama3.3": "llama3-json",
    "llama4": "llama-pythonic",
    "gpt-oss": "harmony",
    "glm-4.6": "glm-4.5",
    "granite": "granite-4",
    "cohere-r7b": "cohere",
    "functionary": "functionary-v3.2",
    "openai": "json",
}

FORMATS: dict[str, ToolFormat] = {one.name: one for one in _ALL}
FORMATS.update({alias: FORMATS[name] for alias, name in _ALIASES.items()})


def get_format(name: str) -> ToolFormat:
    """The named format.  Raises ToolFormatError that lists the names."""
    try:
        return FORMATS[name]
    except KeyError:
        known = ", ".join(sorted(FORMATS))
        raise ToolFormatError(
            f"there is no format {name!r}; the names are {known}", field="format"
        ) from None
