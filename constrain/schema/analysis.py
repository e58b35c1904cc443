"""The analysis of a schema: everything in `constrain/schema/findings.py`, for one schema.

What is said to be impossible is proved by the core that also makes the masks; where a budget ran
out nothing is said.  Subschemas are looked at in place: an alternative is dead if no value of the
schemas around it takes it.  Nothing is reported twice: what lies inside a dead place is left out.

Cost: a few questions for each subschema, each of bounded size, under a budget for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from constrain.errors import (
    ConstrainError,
    RegexError,
    SchemaError,
    UnsatisfiableError,
    UnsupportedError,
)
from constrain.program import Program
from constrain.schema import contradictions
from constrain.schema.builder import TRUE
from constrain.schema.cycles import cycles
from constrain.schema.dialects import DRAFTS
from constrain.schema.findings import Finding, sorted_findings
from constrain.schema.lint import TYPE_OF, lint, noted
from constrain.schema.questions import BudgetSpentError, Clauses, Questions
from constrain.schema.report import Report, ReportEntry
from constrain.schema.spec import JsonSchema
from constrain.schema.subschemas import Subschema, is_false, subschemas

__all__ = ["analyze", "analyze_anything", "unsatisfiable_error"]

_MAX_AROUND = 24
_MANY = 100_000
_SEVERAL = 100
_EXPLAINS_BOUNDS = ("unsatisfiable", "contradiction", "empty-enum", "dead-type")
_MAX_PAIRS = 300
_MAX_UNDECIDED = 3
_MAX_CONSTANTS = 200
_MAX_EXPLAINED = 8
_FRESH = "\x7fanother"
"""A key that no schema declares."""
_ALTERNATIVES = ("anyOf", "oneOf", "then", "else", "dependentSchemas", "dependencies")


def analyze(spec: JsonSchema, *, max_questions: int = 20_000, max_seconds: float = 5.0) -> Report:
    """The report of a schema with all findings.

    Never raises for what the schema says: a schema that does not compile has one finding that
    says why.

    Args:
        spec: the schema and its policies.
        max_questions: how much may be asked of the core.
        max_seconds: when to stop asking; the finding ``analysis-incomplete`` says that it happened.
    """
    try:
        program = spec.program()
    except ConstrainError as error:
        return Report((), (_refused(error),))
    entries = Report.from_program(program).entries
    analysis = _Analysis(spec, program, entries, max_questions, max_seconds)
    findings = list(analysis.run())
    explained = {f.pointer for f in findings if f.code in _EXPLAINS_BOUNDS}
    findings = [f for f in findings if f.code != "crossed-bounds" or f.pointer not in explained]
    return Report(entries, sorted_findings(findings))


def analyze_anything(schema: object, options: dict[str, Any]) -> Report:
    """`analyze` for a `JsonSchema` or for what one is made of."""
    if isinstance(schema, JsonSchema):
        return analyze(schema, **options)
    try:
        spec = JsonSchema(schema, **options)
    except SchemaError as error:
        return Report((), (_refused(error),))
    return analyze(spec)


def unsatisfiable_error(spec: JsonSchema) -> UnsatisfiableError:
    """The error for a schema that the core has found to be unsatisfiable, with the reason."""
    reason, closing = _explain(spec, ()), _closing_matters(spec)
    if reason is None:
        return UnsatisfiableError(f"nothing can satisfy this schema{closing}", pointer="")
    return UnsatisfiableError(
        f"nothing can satisfy this schema: {reason}{closing}", pointer=reason.pointer
    )


def _closing_matters(spec: JsonSchema) -> str:
    """The words that say so where the schema as written could be satisfied."""
    if spec.extra_properties != "forbid":
        return ""
    try:
        program = spec.program_as_written()
    except ConstrainError:
        return ""
    if Questions(program).impossible([program.root]):
        return ""
    return " (with extra_properties='forbid', which allows no properties but the declared ones)"


def _refused(error: ConstrainError) -> Finding:
    code = "invalid-schema"
    if isinstance(error, RegexError):
        code = "invalid-pattern"
    elif isinstance(error, UnsupportedError):
        code = "unsupported-keyword"
    pointer = getattr(error, "pointer", None) or ""
    message = str(error)
    for place in (f" (at {pointer})", " (at the root)"):
        message = message.removesuffix(place)
    return Finding(code, pointer, message)


def _explain(
    spec: JsonSchema, path: tuple[str, ...], work: int = 150_000
) -> contradictions.Contradiction | None:
    return contradictions.explain(
        spec.schema,
        draft=DRAFTS[spec.draft],
        resources=spec.resources,
        formats=spec.formats == "assert",
        content=spec.content == "assert",
        forbid=spec.extra_properties == "forbid",
        numbers=spec.numbers,
        at=path,
        max_work=work,
    )


class _Analysis:
    def __init__(
        self,
        spec: JsonSchema,
        program: Program,
        entries: tuple[ReportEntry, ...],
        max_questions: int,
        max_seconds: float,
    ) -> None:
        self.entries = entries
        self.spec = spec
        self.program = program
        self.subs = subschemas(program)
        self.ask = Questions(program, max_questions=max_questions, max_seconds=max_seconds)
        self.dead: set[Subschema] = set()
        self.explained = 0
        self.undecided = 0
        self.by_path = {sub.path: sub for sub in self.subs}

    def run(self) -> Iterator[Finding]:
        yield from noted(self.entries, self.subs)
        for sub in self.subs:
            yield from lint(sub)
        yield from self.unused()
        self.prepare()
        yield from self.recursion()
        try:
            hopeless = self.ask.impossible([self.program.root])
            if hopeless:
                reason = _explain(self.spec, ())
                text = "no value satisfies the schema" + (f": {reason}" if reason else "")
                text += _closing_matters(self.spec)
                related = reason.pointers if reason else ()
                yield Finding("unsatisfiable", "", text, related=related)
            yield from self.contradictions()
            if hopeless:
                return
            for sub in self.subs:
                yield from self.look_at(sub)
            for sub in self.subs:
                if sub not in self.dead and not sub.is_aside:
                    yield from self.overlaps(sub)
            if self.undecided:
                text = f"{self.undecided} questions were too hard to be decided"
                yield Finding("analysis-incomplete", "", text)
        except BudgetSpentError:
            yield Finding(
                "analysis-incomplete", "", "not everything was looked at within the budget"
            )

    def prepare(self) -> None:
        """Make the formulas of all questions before the first is asked."""
        ask = self.ask
        for name in ("null", "boolean", "number", "string", "array", "object"):
            ask.of_type(name)
        ask.has(_FRESH)
        ask.many_items(_MANY)
        ask.many_items(_SEVERAL)
        ask.many_properties(_MANY)
        for sub in self.subs:
            schema = sub.schema
            members = schema.get("properties")
            if isinstance(members, dict):
                ask.all_of_these(_possible(members))
                for key in members:
                    ask.all_of_these([key])
            if sub.keyword in ("dependentSchemas", "dependencies"):
                ask.has(str(sub.key))
            for _, _, values in _constants(schema):
                for value in values[:_MAX_CONSTANTS]:
                    ask.constant(value)
            if isinstance(schema.get("enum"), list) and schema["enum"]:
                ask.one_of(schema["enum"])

    # -- contradictions --------------------------------------------------------------------

    def context(self, sub: Subschema) -> Clauses:
        """What a value satisfies for which `sub` matters, `sub` included."""
        clauses: Clauses = [sub.nodes]
        at = sub
        for parent in islice(sub.around(), _MAX_AROUND):
            condition = self.by_path.get((*parent.path, "if"))
            if at.keyword == "then" and condition is not None:
                clauses.append(condition.nodes)
            elif at.keyword == "else" and condition is not None and len(condition.nodes) == 1:
                clauses.append([~condition.nodes[0]])
            elif at.keyword in ("dependentSchemas", "dependencies"):
                has = self.ask.has(str(at.key))
                if has is not None:
                    clauses += [[has], self.ask.of_type("object")]
            clauses.append(parent.nodes)
            at = parent
        return clauses

    def contradictions(self) -> Iterator[Finding]:
        """The subschemas that are unsatisfiable by themselves.

        Where one is so because of another inside it, the innermost and the outermost are named.
        """
        inside: set[Subschema] = set()  # what contains something unsatisfiable
        for sub in reversed(self.subs):
            if not self.ask.impossible(sub.nodes):
                continue
            self.dead.add(sub)
            at = sub.parent
            while at is not None and at not in inside and not is_false(sub.schema):
                inside.add(at)
                at = at.parent
        for sub in self.subs:
            if sub not in self.dead or len(sub.path) == 1 or is_false(sub.schema) or sub.is_aside:
                continue
            if sub not in inside or not (sub.parent and sub.parent in self.dead):
                yield self.contradiction(sub)

    def contradiction(self, sub: Subschema) -> Finding:
        schema = sub.schema
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and not any(
            k in schema for k in ("$ref", "allOf", "anyOf", "oneOf", "not", "if")
        ):
            keyword = "enum" if "enum" in schema else "const"
            others = [k for k in schema if k == "type" or k in TYPE_OF]
            text = f"{keyword} {_short(schema[keyword], 80)} has no value"
            if values and others:
                said = " and ".join(f"{k} {_short(schema[k], 80)}" for k in others)
                text += f" that satisfies {said}"
            return Finding("empty-enum", sub.pointer, text, keyword)
        reason = None
        if self.explained < _MAX_EXPLAINED and not sub.path[0]:
            self.explained += 1
            reason = _explain(self.spec, sub.path[1:], 40_000)
        text = "no value satisfies this" + (f": {reason}" if reason else "")
        related = reason.pointers if reason else ()
        code = "contradiction"
        if reason and any(
            keyword == "required" and len(path) == len(sub.path) - 1
            for path, keyword, _ in reason.clauses
        ):
            code = "impossible-required"
        return Finding(code, sub.pointer, text, related=related)

    def look_at(self, sub: Subschema) -> Iterator[Finding]:
        if sub.parent is not None and sub.parent in self.dead:
            self.dead.add(sub)
            return
        if sub in self.dead:
            return
        context = self.context(sub)
        if sub.is_in_place and not (sub.parent and sub.parent.is_aside):
            dead = self.dead_in_place(sub, context)
            if dead is not None:
                yield dead
                if sub.keyword != "if":
                    self.dead.add(sub)
                    return
        yield from self.values(sub)
        if sub.is_aside:
            return
        if self.ask.satisfiable(*context) is None:
            self.undecided += 1  # nor would be what follows
            return
        yield from self.types(sub, context)
        yield from self.properties(sub, context)
        yield from self.unbounded(sub, context)

    def dead_in_place(self, sub: Subschema, context: Clauses) -> Finding | None:
        ask, parent = self.ask, sub.parent
        if parent is None:
            return None
        if sub.keyword == "if":
            around = self.context(parent)
            if ask.impossible(*around, sub.nodes):
                return Finding("dead-branch", sub.pointer, "the condition never holds", "if")
            if len(sub.nodes) == 1 and ask.impossible(*around, [~sub.nodes[0]]):
                text = "the condition always holds, so 'else' never applies"
                return (
                    Finding("dead-branch", sub.pointer, text, "if")
                    if ("else" in parent.schema)
                    else None
                )
            return None
        if sub.keyword not in _ALTERNATIVES or not ask.impossible(*context):
            return None
        if sub.keyword == "oneOf" and len(sub.nodes) == 1:
            for other in self.siblings(sub):
                if other.nodes and ask.impossible(sub.nodes, [~n for n in other.nodes[:1]]):
                    text = (
                        f"whatever satisfies this satisfies branch {other.key} as well, "
                        "so oneOf never chooses it"
                    )
                    return Finding(
                        "dead-branch", sub.pointer, text, "oneOf", related=(other.pointer,)
                    )
        text = {
            "then": "whenever the condition holds, nothing can satisfy this",
            "else": "whenever the condition fails, nothing can satisfy this",
            "dependentSchemas": f"an object with {sub.key!r} can never satisfy this",
            "dependencies": f"an object with {sub.key!r} can never satisfy this",
        }.get(sub.keyword, "excluded by the schemas around it: no value takes this branch")
        return Finding("dead-branch", sub.pointer, text, sub.keyword)

    def siblings(self, sub: Subschema) -> list[Subschema]:
        """The other members of the same list."""
        if sub.parent is None:
            return []
        members = sub.parent.schema.get(sub.keyword)
        count = len(members) if isinstance(members, list) else 0
        paths = ((*sub.path[:-1], str(i)) for i in range(count))
        found = [self.by_path[path] for path in paths if path in self.by_path]
        return [other for other in found if other is not sub]

    # -- what cannot happen within a schema ------------------------------------------------

    def types(self, sub: Subschema, context: Clauses) -> Iterator[Finding]:
        names = sub.types()
        if len(names) < 2 or "enum" in sub.schema or "const" in sub.schema:
            return
        for name in names:
            if self.ask.impossible(*context, self.ask.of_type(name)):
                yield Finding(
                    "dead-type", sub.pointer, f"no value of type {name} is valid here", "type"
                )

    def properties(self, sub: Subschema, context: Clauses) -> Iterator[Finding]:
        members = sub.schema.get("properties")
        if not isinstance(members, dict) or ("$ref" in sub.schema and sub.draft <= 7):
            return
        an_object = self.ask.of_type("object")
        if self.ask.impossible(*context, an_object):
            return
        everything = self.ask.all_of_these(_possible(members))
        if everything is not None:
            together = self.ask.satisfiable(*context, an_object, [everything])
            if together is not False:
                self.undecided += together is None
                return
        for key in _possible(members):
            node = self.ask.all_of_these([key])
            if node is None:
                continue
            if self.ask.impossible(*context, an_object, [node]):
                inner = self.by_path.get((*sub.path, "properties", key))
                if inner is not None:
                    if self.ask.impossible(inner.nodes):
                        continue  # said of that schema itself
                    self.dead.add(inner)
                place = f"{sub.pointer}/properties/{key.replace('~', '~0').replace('/', '~1')}"
                text = "this property can never appear: other keywords exclude it"
                yield Finding("dead-property", place, text, "properties")

    def values(self, sub: Subschema) -> Iterator[Finding]:
        ask = self.ask
        for code, keyword, values in _constants(sub.schema):
            if keyword == "enum":
                everything = ask.one_of(values)
                if everything is None or len(sub.nodes) != 1:
                    continue
                if ask.impossible([everything], [~sub.nodes[0]]):
                    continue
            wrong = []
            for value in values[:_MAX_CONSTANTS]:
                node = ask.constant(value)
                if node is not None and ask.impossible([node], sub.nodes):
                    wrong.append(value)
            if wrong:
                text = {
                    "default": "the default does not satisfy its own schema",
                    "examples": "an example does not satisfy its own schema",
                    "enum": "a constant of enum that the other keywords refuse",
                }[keyword]
                if len(wrong) > 1:
                    text += f" ({len(wrong) - 1} more do not either)"
                yield Finding(code, sub.pointer, text, keyword, example=_short(wrong[0]))

    def overlaps(self, sub: Subschema) -> Iterator[Finding]:
        branches = sub.schema.get("oneOf")
        if not isinstance(branches, list) or ("$ref" in sub.schema and sub.draft <= 7):
            return
        ask = self.ask
        found = [self.by_path.get((*sub.path, "oneOf", str(i))) for i in range(len(branches))]
        alive = [b for b in found if b is not None and b not in self.dead]
        types = [node for name in sub.types() for node in ask.of_type(name)]
        around: Clauses = [types] if types else []
        pairs: list[tuple[str, str, str | None]] = []
        looked, undecided = 0, 0
        for index, one in enumerate(alive):
            for other in alive[index + 1 :]:
                looked += 1
                if looked > _MAX_PAIRS or undecided > _MAX_UNDECIDED:
                    self.undecided += 1
                    break
                together = ask.satisfiable(*around, one.nodes, other.nodes)
                undecided += together is None
                if not together:
                    continue
                example = None
                if not pairs or pairs[0][2] is None:
                    example = ask.example(*around, one.nodes, other.nodes)
                pairs.append((str(one.key), str(other.key), example))
        if not pairs:
            return
        pairs.sort(key=lambda pair: pair[2] is None)
        first, second, example = pairs[0]
        if example is None:
            return
        text = f"branches {first} and {second} overlap: a value that satisfies both is refused"
        if len(pairs) > 1:
            text += f" ({len(pairs) - 1} more such pairs)"
        only_names = all(
            isinstance(b, dict) and set(b) <= {"required", "title", "description", "not"}
            for b in branches
        )
        yield Finding(
            "overlapping-one-of",
            sub.pointer,
            text,
            "oneOf",
            severity="info" if only_names else "",
            example=example,
        )

    # -- what has no limit -----------------------------------------------------------------

    def unbounded(self, sub: Subschema, context: Clauses) -> Iterator[Finding]:
        ask, schema = self.ask, sub.schema
        if "$ref" in schema:
            return
        if all(node == TRUE for node in sub.nodes):
            if not sub.is_in_place:
                yield Finding("unbounded-value", sub.pointer, "any JSON value is valid here")
            return
        types = sub.types()
        if "string" in types:
            finite = ask.strings_are_finite(*context)
            if finite is False:
                yield Finding(
                    "unbounded-string", sub.pointer, "strings of any length are valid here"
                )
        if "array" in types or (not types and "items" in schema):
            is_array = ask.of_type("array")
            # where items must differ, counting to the larger number is too much
            if not any(
                ask.impossible(*context, is_array, [ask.many_items(least)])
                for least in (_SEVERAL, _MANY)
            ):
                yield Finding("unbounded-array", sub.pointer, "arrays of any length are valid here")
        if "object" in types or (not types and "properties" in schema):
            is_object, fresh = ask.of_type("object"), ask.has(_FRESH)
            if schema.get("properties"):
                if any(
                    outer.schema.get("properties") for outer in islice(sub.around(), _MAX_AROUND)
                ):
                    return  # said of the schema around it
                if fresh is not None and ask.satisfiable(*context, is_object, [fresh]):
                    yield Finding(
                        "open-object",
                        sub.pointer,
                        "properties other than the declared ones are allowed",
                        "additionalProperties",
                    )
            elif ask.satisfiable(*context, is_object, [ask.many_properties(_MANY)]) is not False:
                yield Finding(
                    "unbounded-object", sub.pointer, "any number of properties is valid here"
                )

    def recursion(self) -> Iterator[Finding]:
        """One finding for each knot of schemas that contain each other."""
        program = self.program
        cyclic = cycles(program)
        seen: set[int] = set()
        for sub in self.subs:
            knots = {cyclic[n] for n in sub.nodes if n in cyclic}
            if knots and not knots & seen:
                yield Finding(
                    "recursive", sub.pointer, "contains itself, so nesting has no limit of its own"
                )
            seen |= knots

    def unused(self) -> Iterator[Finding]:
        """Definitions of the root document that were never translated."""
        schema = self.spec.schema
        if not isinstance(schema, dict):
            return
        used = {sub.path[:3] for sub in self.subs}
        # a definition that only refers elsewhere is not translated where it stands
        for keyword in ("$defs", "definitions"):
            members = schema.get(keyword)
            if not isinstance(members, dict):
                continue
            for name, member in members.items():
                if ("", keyword, name) in used or not isinstance(member, dict) or "$ref" in member:
                    continue
                if any(k in member for k in ("$id", "id", "$anchor", "$dynamicAnchor")):
                    continue
                place = f"/{keyword}/{name.replace('~', '~0').replace('/', '~1')}"
                yield Finding("unused-definition", place, "nothing refers to this definition")


def _constants(schema: dict[str, Any]) -> Iterator[tuple[str, str, list]]:
    if "default" in schema:
        yield "invalid-default", "default", [schema["default"]]
    examples = schema.get("examples")
    if isinstance(examples, list):
        yield "invalid-example", "examples", examples
    values = schema.get("enum")
    if isinstance(values, list) and values:
        yield "dead-enum-value", "enum", values


def _possible(members: dict[str, Any]) -> list[str]:
    """The names of `properties` that are not forbidden on purpose."""
    return [key for key, schema in members.items() if not is_false(schema)]


def _short(value: object, limit: int = 200) -> str:
    from constrain.schema.loading import schema_text

    text = schema_text(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
