"""The reference decode loop: prefill, then one forward pass per token, masked before sampling.

A reference for how constraints are used, and what the command line runs on; serving engines have
plugins in ``constrain.integrations``.  Importing this package imports neither torch nor
transformers.
"""

from __future__ import annotations

from constrain.decoding.calls import generate, generate_batch
from constrain.decoding.metrics import Metrics, Timings
from constrain.decoding.result import GenerationResult
from constrain.decoding.sampling import Sampler
from constrain.decoding.speculation import ConstraintDrafts, DraftModel, FirstOf, PromptLookup

__all__ = [
    "ConstraintDrafts",
    "DraftModel",
    "FirstOf",
    "GenerationResult",
    "Metrics",
    "PromptLookup",
    "Sampler",
    "Timings",
    "generate",
    "generate_batch",
]
