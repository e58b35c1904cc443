"""Structured outputs of vLLM (``response_format``, ``structured_outputs``, required tool calls) by
constrain.

vLLM has no registry of backends: the environment variable CONSTRAIN_VLLM_STRUCTURED_OUTPUTS=1 lets
`constrain.integrations.vllm.register` put this backend in the place of the one named "guidance", in
every process of vLLM, for the versions in `VERSIONS` and no other::

    CONSTRAIN_VLLM_STRUCTURED_OUTPUTS=1 vllm serve MODEL \\
        --structured-outputs-config '{"backend": "guidance"}'

It works with speculation, whose drafts vLLM verifies against the grammar.  Reasoning is vLLM's: the
grammar begins where its reasoning parser says that the reasoning has ended.  vLLM does not tell a
backend ``max_tokens``, so there is no token budget here; the logits processor has one.

Grammars are GBNF where a line begins with ``name ::=``, else Lark.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from constrain.errors import ConstrainError, UnsatisfiableError, UnsupportedError
from constrain.integrations.base import Adapter
from constrain.integrations.errors import EngineConfigurationError
from constrain.integrations.requests import grammar_syntax
from constrain.integrations.vllm import check_constraint, vocabulary_of

__all__ = ["VERSIONS", "ConstrainBackend", "ConstrainGrammar", "constraint_of", "install"]

VERSIONS = ("0.32", "0.33")

_log = logging.getLogger("constrain")


def constraint_of(request_type: Any, grammar_spec: str, structured: Any = None) -> dict[str, Any]:
    """The constraint of a structured-output request, as plain data.

    Args:
        request_type: the member of vLLM's enumeration, of which the name is read.
        grammar_spec: its text.
        structured: the engine's structured-output configuration, if any.

    Raises:
        UnsupportedError: structural tags.
    """
    kind = request_type.name
    options: dict[str, Any] = {}
    if getattr(structured, "disable_any_whitespace", False):
        options["whitespace"] = "compact"
    if getattr(structured, "disable_additional_properties", False):
        options["extra_properties"] = "forbid"
    if kind == "JSON":
        return {"json_schema": grammar_spec, **options}
    if kind == "JSON_OBJECT":
        return {"json_object": True, **options}
    if kind == "REGEX":
        return {"regex": grammar_spec}
    if kind == "CHOICE":
        return {"choice": json.loads(grammar_spec)}
    if kind == "GRAMMAR":
        return {grammar_syntax(grammar_spec): grammar_spec}
    raise UnsupportedError(f"vllm: requests of the type {kind} are not served", feature=kind)


class ConstrainBackend:
    """vLLM's ``StructuredOutputBackend``: one for each engine.

    Args:
        vllm_config: the engine's configuration.
        tokenizer: its tokenizer.
        vocab_size: the width of the logits.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self._adapter = Adapter(vocabulary_of(vllm_config, tokenizer), engine="vllm")

    @staticmethod
    def is_tokenizer_supported(tokenizer: Any) -> bool:
        """Every tokenizer that can be read; the error of one that cannot says why."""
        return True

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> ConstrainGrammar:
        """The grammar of a request; raises a ConstrainError, which fails that request."""
        structured = getattr(self.vllm_config, "structured_outputs_config", None)
        compiled = self._adapter.cache.get(constraint_of(request_type, grammar_spec, structured))
        if compiled is None:
            raise ConstrainError("vllm: the request has no constraint")
        return ConstrainGrammar(compiled.matcher(), self._adapter, stop_token_ids or ())

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """int32 tensor ``[max_num_seqs, ceil(vocab_size / 32)]`` that allows everything."""
        import torch

        return torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Drop what was compiled."""
        self._adapter.cache.clear()


class ConstrainGrammar:
    """vLLM's ``StructuredOutputGrammar``: one for each request.

    Tokens behind an end of sequence are counted and change nothing, so that a rollback over them
    is exact.
    """

    def __init__(self, matcher: Any, adapter: Adapter, stop_token_ids: Any = ()) -> None:
        self._matcher = matcher
        self._adapter = adapter
        ends = adapter.vocabulary.eos_token_ids
        # the user's stop tokens must not cut a text that is not complete
        self._stops = sorted(i for i in stop_token_ids if i not in ends)
        self._behind = 0

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Append tokens, all or none; False if one of them is illegal."""
        for accepted, token_id in enumerate(tokens):
            if self._matcher.is_finished:
                self._behind += 1
            elif not self._matcher.try_advance(token_id):
                self.rollback(accepted)
                _log.error("vllm: request %s: token %d is not allowed", request_id, token_id)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The part of the tokens that could be appended; the state is unchanged."""
        if self._matcher.is_finished:
            return []
        legal = next((i for i, token_id in enumerate(tokens) if token_id < 0), len(tokens))
        return tokens[: self._matcher.validate(tokens[:legal])]

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens."""
        behind = min(num_tokens, self._behind)
        self._behind -= behind
        if num_tokens > behind:
            self._matcher.rollback(num_tokens - behind)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Write the allowed tokens to a row of an int32 tensor in CPU memory."""
        try:
            self._matcher.fill_bitmask(bitmask, batch_index)
        except UnsatisfiableError as error:
            _log.warning("vllm: %s", error)  # the row has its ends of sequence open
        if self._stops and not self._matcher.is_finished:
            self._close_stops(bitmask[batch_index])

    def _close_stops(self, row: Any) -> None:
        import torch

        before = row.clone()
        for token_id in self._stops:
            bit = 1 << token_id % 32
            row[token_id // 32] &= ~(bit - (1 << 32) if bit >> 31 else bit)
        if not bool(torch.any(row != 0)):
            row.copy_(before)  # nothing else continues the text

    def is_terminated(self) -> bool:
        """An end of sequence was accepted."""
        return bool(self._matcher.is_finished)

    def reset(self) -> None:
        """Back to the start."""
        self._matcher.reset()
        self._behind = 0


def _validate(sampling_params: Any, tokenizer: Any = None) -> None:
    """In place of vLLM's own check at admission; raises its ValueError, an HTTP 400."""
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.request import get_structured_output_key

    if sampling_params.structured_outputs is None:
        return
    kind, text = get_structured_output_key(sampling_params.structured_outputs)
    try:
        check_constraint(constraint_of(kind, text))
    except ConstrainError as error:
        raise VLLMValidationError(str(error)) from error


def install() -> None:
    """Put the backend in the place of the one named "guidance".

    Raises:
        EngineConfigurationError: this version of vLLM is not known, or not as it was.
    """
    import vllm
    from vllm.v1 import structured_output
    from vllm.v1.structured_output import backend_guidance, backend_types

    version = ".".join(vllm.__version__.split(".")[:2])
    if version not in VERSIONS:
        raise _refused(f"version {vllm.__version__} is not among {', '.join(VERSIONS)}")
    for module, name in (
        (structured_output, "GuidanceBackend"),
        (backend_guidance, "GuidanceBackend"),
        (backend_guidance, "validate_guidance_grammar"),
        (backend_types, "StructuredOutputBackend"),
        (backend_types, "StructuredOutputGrammar"),
    ):
        if not hasattr(module, name):
            raise _refused(f"{module.__name__} has no {name}")
    backend_types.StructuredOutputBackend.register(ConstrainBackend)
    backend_types.StructuredOutputGrammar.register(ConstrainGrammar)
    structured_output.GuidanceBackend = ConstrainBackend
    backend_guidance.GuidanceBackend = ConstrainBackend
    backend_guidance.validate_guidance_grammar = _validate
    _install_check()


def _install_check() -> None:
    """With another backend chosen, constrain would not be asked: that is refused at start."""
    from vllm.v1.structured_output import StructuredOutputManager

    original = StructuredOutputManager.__init__
    if getattr(original, "checks", False):
        return

    def checked(self: Any, vllm_config: Any) -> None:
        backend = vllm_config.structured_outputs_config.backend
        if backend != "guidance":
            raise EngineConfigurationError(
                f'the backend is {backend!r}: constrain takes the place of "guidance", choose it by'
                ' structured_outputs_config={"backend": "guidance"}',
                engine="vllm",
                setting="structured_outputs_config",
            )
        original(self, vllm_config)

    checked.checks = True  # type: ignore[attr-defined]
    StructuredOutputManager.__init__ = checked


def _refused(reason: str) -> EngineConfigurationError:
    return EngineConfigurationError(
        f"the structured-output backend of constrain cannot be installed: {reason}",
        engine="vllm",
        setting="CONSTRAIN_VLLM_STRUCTURED_OUTPUTS",
    )
