"""The JSON Schema front end: schemas of five drafts, and Python types, to programs."""

from constrain.schema.report import Report, ReportEntry
from constrain.schema.spec import JsonSchema

__all__ = ["JsonSchema", "Report", "ReportEntry"]
