"""constrain: exact, fast constrained decoding.

Compile a spec (a JSON Schema, a regular expression, a list of choices) for a model's vocabulary,
take one matcher per sequence, and apply its bitmask to the logits before sampling::

    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer)
    compiled = constrain.compile(constrain.JsonSchema(schema), vocabulary)
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    while not matcher.is_finished:
        matcher.fill_bitmask(bitmask, 0)
        constrain.apply_bitmask(logits, bitmask)
        matcher.advance(sample(logits))

Importing the package imports neither torch nor transformers; the front ends are imported when they
are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from constrain.compile import CompiledConstraint, compile
from constrain.errors import (
    ConstrainError,
    GrammarError,
    GrammarWarning,
    LimitExceededError,
    RegexError,
    SchemaError,
    TokenizerError,
    TokenRejectedError,
    UnsatisfiableError,
    UnsupportedError,
)
from constrain.masks import allocate_bitmask, apply_bitmask, fill_bitmasks
from constrain.matcher import Matcher
from constrain.vocabulary import Vocabulary

if TYPE_CHECKING:
    from constrain.specs import (
        Choice,
        Gbnf,
        JsonSchema,
        Lark,
        OneOf,
        Regex,
        Repeat,
        Sequence,
        Text,
        Token,
        TokenRange,
    )
    from constrain.tools.constraint import ToolCalls

__all__ = [
    "Choice",
    "CompiledConstraint",
    "ConstrainError",
    "Gbnf",
    "GrammarError",
    "GrammarWarning",
    "JsonSchema",
    "Lark",
    "LimitExceededError",
    "Matcher",
    "OneOf",
    "Regex",
    "RegexError",
    "Repeat",
    "SchemaError",
    "Sequence",
    "Text",
    "Token",
    "TokenRange",
    "TokenRejectedError",
    "TokenizerError",
    "ToolCalls",
    "UnsatisfiableError",
    "UnsupportedError",
    "Vocabulary",
    "allocate_bitmask",
    "apply_bitmask",
    "compile",
    "fill_bitmasks",
]

_LAZY = {
    name: "constrain.specs"
    for name in (
        "Choice",
        "Gbnf",
        "JsonSchema",
        "Lark",
        "OneOf",
        "Regex",
        "Repeat",
        "Sequence",
        "Text",
        "Token",
        "TokenRange",
    )
}
_LAZY["ToolCalls"] = "constrain.tools.constraint"


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if name == "grammars":
        return importlib.import_module("constrain.grammars")
    if module is None:
        raise AttributeError(f"module 'constrain' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
