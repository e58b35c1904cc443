"""The analysis of schemas: which findings there are, and that no claim is wrong.

Small schemas are compared with the codes they must and must not give.  What is called
unsatisfiable or dead is never contradicted by instances that the oracle accepts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import constrain
from constrain.errors import UnsatisfiableError
from constrain.schema import JsonSchema, analyze, findings
from tests.reference import data, schemas
from tests.reference.oracle import Oracle, OracleError, exact

QUIET = {"narrowed"}
"""Codes that the default policies give for every schema."""


def codes(schema: Any, **options: Any) -> dict[str, list[str]]:
    """The pointers of the findings, by code."""
    result: dict[str, list[str]] = {}
    for finding in analyze(schema, **options).findings:
        result.setdefault(finding.code, []).append(finding.pointer)
    return {code: places for code, places in result.items() if code not in QUIET}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


CASES: list[tuple[str, Any, dict[str, list[str]]]] = [
    ("nothing to say", closed(a={"type": "integer"}), {}),
    ("malformed", {"properties": {"a": {"type": 5}}}, {"invalid-schema": ["/properties/a/type"]}),
    ("no schema", "[]", {"invalid-schema": [""]}),
    ("bad pattern", {"pattern": "("}, {"invalid-pattern": ["/pattern"]}),
    ("not regular", {"pattern": "(a)\\1"}, {"unsupported-keyword": ["/pattern"]}),
    ("lost reference", {"$ref": "#/nowhere"}, {"invalid-schema": [""]}),
    ("false", False, {"unsatisfiable": [""]}),
    ("not anything", {"not": {}}, {"unsatisfiable": [""]}),
    (
        "crossed and required",
        {**closed(a={"type": "integer", "minimum": 10, "maximum": 5}), "required": ["a"]},
        {"unsatisfiable": [""], "contradiction": ["/properties/a"]},
    ),
    (
        "crossed and optional",
        closed(a={"type": "integer", "minimum": 10, "maximum": 5}),
        {"contradiction": ["/properties/a"]},
    ),
    (
        "between two integers",
        closed(a={"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}),
        {"contradiction": ["/properties/a"]},
    ),
    (
        "pattern and length",
        closed(a={"type": "string", "pattern": "^a{5}$", "maxLength": 3}),
        {"contradiction": ["/properties/a"]},
    ),
    (
        "pattern and format",
        closed(a={"type": "string", "pattern": "^x", "format": "date"}),
        {"contradiction": ["/properties/a"]},
    ),
    ("empty enum", closed(a={"enum": []}), {"empty-enum": ["/properties/a"]}),
    (
        "enum of another type",
        closed(a={"type": "string", "enum": [1, 2]}),
        {"empty-enum": ["/properties/a"]},
    ),
    (
        "required of a closed object",
        closed(a={**closed(b={"type": "null"}), "required": ["c"]}),
        {"impossible-required": ["/properties/a"], "undeclared-required": ["/properties/a"]},
    ),
    (
        "unique booleans",
        closed(a={"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}),
        {},
    ),
    (
        "three unique booleans",
        closed(
            a={"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3}
        ),
        {"contradiction": ["/properties/a"]},
    ),
    (
        "no base case",
        closed(a={"$ref": "#/$defs/n"})
        | {"$defs": {"n": {**closed(next={"$ref": "#/$defs/n"}), "required": ["next"]}}},
        {
            "impossible-required": ["/$defs/n"],
            "recursive": ["/$defs/n"],
            "dead-property": ["/properties/a"],
        },
    ),
    ("forbidden on purpose", closed(a=False, b={"not": {}}), {}),
    (
        "declared beside a closed sibling",
        {
            **{"type": "object", "properties": {"a": {"type": "null"}}},
            "allOf": [closed(b={"type": "null"})],
        },
        {"dead-property": ["/properties/a"]},
    ),
    (
        "dead alternatives",
        {"type": "integer", "anyOf": [{"type": "string"}, {"minimum": 1}]},
        {"dead-branch": ["/anyOf/0"]},
    ),
    (
        "subsumed alternative",
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"dead-branch": ["/oneOf/0"]},
    ),
    (
        "condition that never holds",
        {"type": "integer", "if": {"type": "string"}, "then": {"minimum": 3}},
        {"dead-branch": ["/if", "/then"]},
    ),
    (
        "condition that always holds",
        {"type": "integer", "if": {"type": "number"}, "then": {}, "else": {"minimum": 3}},
        {"dead-branch": ["/else", "/if"]},
    ),
    (
        "overlap",
        {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 0}]},
        {"overlapping-one-of": [""]},
    ),
    (
        "no overlap",
        {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "maximum": 0}]},
        {},
    ),
    (
        "overlap of referenced branches",
        {
            "oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
            "$defs": {
                "a": closed(x={"type": "null"}),
                "b": {**closed(x={"type": "null"}, y={"type": "null"}), "required": ["x"]},
            },
        },
        {"overlapping-one-of": [""]},
    ),
    (
        "type without values",
        {"type": ["string", "integer"], "minLength": 3, "maxLength": 2},
        {"dead-type": [""]},
    ),
    ("crossed without type", {"minLength": 3, "maxLength": 2}, {"crossed-bounds": [""]}),
    ("dead constant", {"enum": ["a", "bb"], "minLength": 2}, {"dead-enum-value": [""]}),
    (
        "dead items",
        {"type": "array", "prefixItems": [{"type": "null"}, {"type": "null"}], "maxItems": 1},
        {"dead-items": [""]},
    ),
    ("bad default", {"type": "integer", "default": "x"}, {"invalid-default": [""]}),
    ("good default", {"type": "integer", "default": 3}, {}),
    ("bad example", {"type": "integer", "examples": [1, 1.5]}, {"invalid-example": [""]}),
    ("typing error", {"type": "integer", "minimun": 3}, {"unknown-keyword": [""]}),
    ("wrong case", {**closed(), "additionalproperties": False}, {"unknown-keyword": [""]}),
    (
        "OpenAPI",
        closed(a={"type": "integer", "nullable": True}),
        {"unknown-keyword": ["/properties/a"]},
    ),
    (
        "unknown format",
        {"type": "string", "maxLength": 5, "format": "emial"},
        {"unknown-format": [""]},
    ),
    (
        "keyword of another type",
        {"type": "integer", "maxLength": 3},
        {"keyword-without-effect": [""]},
    ),
    (
        "no array of items",
        {"type": "array", "maxItems": 2, "additionalItems": False},
        {"keyword-without-effect": [""]},
    ),
    (
        "boolean exclusiveMinimum",
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        {"draft-mismatch": [""]},
    ),
    ("repeated key", '{"type": "integer", "type": "integer"}', {"duplicate-key": [""]}),
    (
        "undeclared",
        {**closed(name={"type": "null"}), "additionalProperties": True, "required": ["nmae"]},
        {"undeclared-required": [""], "open-object": [""]},
    ),
    (
        "declared around",
        {
            **{"type": "object", "properties": {"a": {"type": "null"}}},
            "anyOf": [{"required": ["a"], "properties": {"b": {"type": "null"}}}],
        },
        {"open-object": [""]},
    ),
    (
        "unanchored",
        {"type": "string", "maxLength": 9, "pattern": "[0-9]{4}"},
        {"unanchored-pattern": [""]},
    ),
    ("search", {"type": "string", "maxLength": 9, "pattern": "foo"}, {}),
    ("anchored", {"type": "string", "pattern": "^[0-9]{4}$"}, {}),
    (
        "partly anchored",
        {"type": "string", "maxLength": 9, "pattern": "^a|b$"},
        {"partly-anchored-pattern": [""]},
    ),
    ("open", {"type": "object", "properties": {"a": {"type": "null"}}}, {"open-object": [""]}),
    ("any string", {"type": "string"}, {"unbounded-string": [""]}),
    ("unlimited pattern", {"type": "string", "pattern": "^a+$"}, {"unbounded-string": [""]}),
    ("date", {"type": "string", "format": "date"}, {}),
    ("limited around", {"maxLength": 4, "allOf": [{"type": "string"}]}, {}),
    ("any array", {"type": "array", "items": {"type": "null"}}, {"unbounded-array": [""]}),
    (
        "array limited by its items",
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
        {},
    ),
    (
        "free map",
        {"type": "object", "additionalProperties": {"type": "null"}},
        {"unbounded-object": [""]},
    ),
    ("anything", closed(a={}), {"unbounded-value": ["/properties/a"]}),
    (
        "unused",
        {"type": "null", "$defs": {"a": {"type": "null"}}},
        {"unused-definition": ["/$defs/a"]},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_findings(schema: Any, expected: dict[str, list[str]]) -> None:
    found = codes(schema)
    if found.get("dead-branch") == ["/oneOf/0"]:
        found.pop("overlapping-one-of", None)
    assert found == expected


def test_siblings_of_a_reference_in_draft_7() -> None:
    schema = {"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {"type": "integer"}}}
    assert codes(schema, draft="7") == {"ref-sibling-ignored": [""]}


def test_every_code_is_documented_with_its_severity() -> None:
    rows = [line.split() for line in (findings.__doc__ or "").split("\n")]
    table = {row[0]: row[1] for row in rows if len(row) > 2 and row[1] in findings.SEVERITIES}
    assert table == findings.CODES


def test_the_report_as_json_and_as_text() -> None:
    report = analyze({"type": "integer", "default": "x", "oneOf": [{"minimum": 1}, {"maximum": 1}]})
    answer = json.loads(json.dumps(report.to_dict()))
    assert answer["severities"] == {"error": 0, "warning": 2, "info": 2}
    by_code = {finding["code"]: finding for finding in answer["findings"]}
    assert by_code["overlapping-one-of"]["example"] == "1"
    assert by_code["invalid-default"]["pointer"] == ""
    text = str(report)
    assert text.index("warning: overlapping-one-of") < text.index("info: narrowed")
    assert "for example 1" in text


def test_the_plain_report_has_no_findings() -> None:
    assert JsonSchema({"type": "integer", "default": "x"}).report().findings == ()


def test_a_spent_budget_is_said() -> None:
    report = JsonSchema(closed(a={"type": "integer"})).report(analyze=True)
    assert "analysis-incomplete" not in {f.code for f in report.findings}
    from constrain.schema.analysis import analyze as analyze_spec

    report = analyze_spec(JsonSchema(closed(a={"type": "integer"})), max_questions=1)
    assert "analysis-incomplete" in {f.code for f in report.findings}


# -- explanations ------------------------------------------------------------------------------

EXPLAINED: list[tuple[Any, str, list[str], list[str]]] = [
    (
        {**closed(a={"type": "integer", "minimum": 10, "maximum": 5}), "required": ["a"]},
        "",
        ["/properties/a has", "minimum 10", "maximum 5", 'required ["a"]'],
        ["additionalProperties"],
    ),
    (
        {
            "allOf": [closed(a={"type": "null"}), {"required": ["b"], "title": "x"}],
            "type": "object",
        },
        "",
        ["/allOf/0 has", "additionalProperties false", '/allOf/1 has required ["b"]'],
        ["title", "null"],
    ),
    (
        {"type": "string", "minLength": 2, "enum": ["a", "b"], "description": "letters"},
        "",
        ["minLength 2", 'enum ["a", "b"]'],
        ["type", "description"],
    ),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string", "pattern": "^a", "const": "b"}}},
        "/$defs/a",
        ['pattern "^a"', 'const "b"'],
        ["type"],
    ),
    (
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3},
        "",
        ["uniqueItems true", "minItems 3", '/items has type "boolean"'],
        [],
    ),
]


@pytest.mark.parametrize(("schema", "pointer", "present", "absent"), EXPLAINED)
def test_compiling_names_what_excludes_each_other(
    schema: Any, pointer: str, present: list[str], absent: list[str]
) -> None:
    vocabulary = constrain.Vocabulary([bytes([b]) for b in range(256)], eos_token_ids=[256])
    with pytest.raises(UnsatisfiableError) as caught:
        constrain.compile(JsonSchema(schema), vocabulary)
    message = str(caught.value)
    assert caught.value.pointer == pointer
    assert message.startswith("nothing can satisfy this schema: ")
    for text in present:
        assert text in message
    for text in absent:
        assert text not in message


def test_a_long_schema_is_explained_by_its_few_keywords() -> None:
    properties = {f"p{i}": {"type": "string", "maxLength": i} for i in range(300)}
    properties["p150"] = {"type": "string", "minLength": 9, "maxLength": 3}
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    error = JsonSchema(schema).unsatisfiable_error()
    assert "/properties/p150 has" in error.message
    assert "minLength 9" in error.message
    assert "p149" not in error.message.replace('"p149"', "")


def test_a_regex_that_matches_nothing() -> None:
    vocabulary = constrain.Vocabulary([bytes([b]) for b in range(256)], eos_token_ids=[256])
    with pytest.raises(UnsatisfiableError, match=r"no text matches the regular expression 'a\(\?!"):
        constrain.compile(constrain.Regex("a(?!)b"), vocabulary)


# -- content -----------------------------------------------------------------------------------


def _texts(encoding: str, **options: Any) -> Any:
    from tests.reference.program_semantics import holds

    program = JsonSchema({"contentEncoding": encoding}, **options).program()
    return lambda text: holds(program, text)


def test_content_encoding_is_asserted_on_request() -> None:
    import base64
    import random

    decoders = {
        "base64": base64.b64encode,
        "base64url": base64.urlsafe_b64encode,
        "base32": base64.b32encode,
        "base16": base64.b16encode,
    }
    pick = random.Random(0)
    for name, encode in decoders.items():
        asserted, ignored = _texts(name, content="assert"), _texts(name)
        for length in range(12):
            text = encode(pick.randbytes(length)).decode()
            assert asserted(text)
            for wrong in (text + "%", text + "A", "=" + text):
                if name != "base64url" or "%" in wrong:
                    assert not asserted(wrong)
                assert ignored(wrong)
    assert not _texts("base64", content="assert")("QQ==\n")
    assert not _texts("base64", content="assert")("QR==")
    assert _texts("base64url", content="assert")("QQ")


def test_content_in_the_report() -> None:
    schema = {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}
    ignored = {e.keyword: e.status for e in JsonSchema(schema).report()}
    asserted = {e.keyword: e.status for e in JsonSchema(schema, content="assert").report()}
    assert (ignored["contentEncoding"], asserted["contentEncoding"]) == ("annotation", "enforced")
    assert asserted["contentMediaType"] == "annotation"
    assert JsonSchema(schema) != JsonSchema(schema, content="assert")


# -- no claim is wrong -------------------------------------------------------------------------


def refute(schema: Any, values: list[Any], draft: str = "2020-12", **options: Any) -> list[str]:
    """Claims of the analysis that a valid value contradicts."""
    report = analyze(schema, draft=draft, numbers="any", formats="ignore", **options)
    resources = options.get("resources")
    wrong = []
    claims = [f for f in report.findings if f.code in ("unsatisfiable", "dead-property")]
    dead = {
        f.pointer.removeprefix("/properties/").replace("~1", "/").replace("~0", "~")
        for f in report.findings
        if f.code in ("dead-property", "contradiction", "empty-enum", "impossible-required")
        and f.pointer.count("/") == 2
        and f.pointer.startswith("/properties/")
    }
    if not claims and not dead:
        return []
    judge = Oracle(schema, draft=draft, resources=resources)
    for value in values:
        try:
            if not judge.is_valid(exact(value)):
                continue
        except OracleError:
            continue
        for claim in claims:
            if claim.code == "unsatisfiable":
                wrong.append(f"{claim} {value!r}")
        if isinstance(value, dict):
            wrong += [f"/properties/{key} {value!r}" for key in dead & set(value)]
    return wrong


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas.schemas(), st.lists(schemas.instances(), min_size=20, max_size=40))
def test_claims_hold_for_random_instances(schema: Any, values: list[Any]) -> None:
    assert refute(schema, [*schemas.VALUES, *values]) == []


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(schemas.schemas(), min_size=2, max_size=3))
def test_examples_of_overlaps_satisfy_two_branches(branches: list[Any]) -> None:
    schema = {"oneOf": branches}
    if "$ref" in json.dumps(schema):  # "#" would be another schema by itself
        return
    for finding in analyze(schema, numbers="any").findings:
        if finding.code == "overlapping-one-of" and finding.pointer == "":
            assert finding.example is not None
            taken = [branch for branch in branches if Oracle(branch).accepts(finding.example)]
            assert len(taken) >= 2


@pytest.mark.parametrize("part", range(4))
def test_claims_hold_for_maskbench(shared_root: Path, part: int) -> None:
    wrong = {}
    for bench in data.maskbench(shared_root, every=8, offset=part):
        valid = [test["data"] for test in bench.tests if test["valid"]]
        found = refute(bench.schema, valid)
        if found:
            wrong[bench.name] = found
    assert wrong == {}


@pytest.mark.parametrize("folder", sorted(data.DRAFTS))
def test_claims_hold_for_the_official_suite(shared_root: Path, folder: str) -> None:
    resources = data.suite_resources(shared_root)
    wrong = {}
    for file in data.suite_files(shared_root, folder):
        for group in data.suite_groups(shared_root, folder, file):
            valid = [test["data"] for test in group.tests if test["valid"]]
            report = analyze(
                group.schema,
                draft=data.DRAFTS[folder],
                resources=resources,
                numbers="any",
                formats="ignore",
            )
            claimed = any(f.code == "unsatisfiable" for f in report.findings)
            if claimed and valid:
                wrong[f"{file}/{group.description}"] = valid
            for finding in report.findings:
                key = finding.pointer.removeprefix("/properties/")
                if finding.code == "dead-property" and any(
                    isinstance(value, dict) and key in value for value in valid
                ):
                    wrong[f"{file}/{group.description}"] = [str(finding)]
    assert wrong == {}
