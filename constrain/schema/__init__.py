"""The JSON Schema front end: schemas of five drafts, and Python types, to programs."""

from __future__ import annotations

from typing import Any

from constrain.schema.findings import Finding
from constrain.schema.report import Report, ReportEntry
from constrain.schema.spec import JsonSchema

__all__ = ["Finding", "JsonSchema", "Report", "ReportEntry", "analyze"]


def analyze(schema: object, **options: Any) -> Report:
    """Everything that can be found in a schema: `JsonSchema.report` with ``analyze``.

    ``schema`` is a `JsonSchema`, or what one is made of, with its options.  Unlike `JsonSchema`
    itself this never raises for what the schema says: that is a finding then.
    """
    from constrain.schema.analysis import analyze_anything

    return analyze_anything(schema, options)
