"""From schemas to formulas: the traversal.

Every schema becomes one formula, the conjunction of its keywords.  Schemas that apply in place
(`allOf`, `$ref`, ...) are inlined and shared; schemas of children become REF nodes, translated
from a worklist, so that recursion and any nesting of documents are fine.  In-place nesting beyond
a fixed depth becomes REF nodes as well, so no input can exhaust the stack.

Translation is memoised by context (resource, dynamic scope, closing mode) and identity of the
schema: its cost is linear in the schemas reached, times the dynamic scopes they are reached with.
"""

from __future__ import annotations

from array import array
from typing import NoReturn

from constrain import limits
from constrain.errors import GrammarError, RegexError, SchemaError, UnsupportedError
from constrain.program import Op, Program
from constrain.schema import arrays, closing, objects, regexes
from constrain.schema.builder import FALSE, TRUE, ProgramBuilder
from constrain.schema.context import CLOSE, OPEN, Context, Contexts
from constrain.schema.dialects import IN_LIST, IN_MAP, SINGLE
from constrain.schema.documents import RECURSIVE, Location, Registry
from constrain.schema.keywords import handlers_of

__all__ = ["Frame", "Translator"]

_BUSY = -1
_BETWEEN_CHECKS = 256
_MAX_DEPTH = 32  # about four Python frames each
_REF = int(Op.REF)
_JSON_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_REFS = ("$ref", "$dynamicRef", "$recursiveRef")
_STRUCTURAL = frozenset((*SINGLE, *IN_LIST, *IN_MAP, *_REFS))
_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "$comment", "deprecated"))
_BESIDE_REF = frozenset(("$ref", "definitions", "$defs"))


class Frame:
    """One schema under translation: what its keywords have said so far."""

    additional: object = None
    branches: Context
    close = closing.NOTHING
    has_array = False
    has_object = False
    max_items = -1
    max_properties = -1
    min_items = 0
    min_properties = 0
    names = TRUE
    pattern_properties: dict | None = None
    prefix: list = []  # noqa: RUF012 - replaced, never changed
    properties: dict | None = None
    required: list | None = None
    rest: object = None
    rest_keyword = "items"
    unevaluated_items: object = None
    unevaluated_properties: object = None

    def __init__(self, schema: dict, context: Context, place: int) -> None:
        self.schema = schema
        self.context = context
        self.place = place
        self.out: list[int] = []


class Translator:
    """The translation of one schema to one program."""

    def __init__(
        self, registry: Registry, *, formats: bool, forbid: bool, content: bool = False
    ) -> None:
        self.registry = registry
        self.places = registry.places
        self.builder = ProgramBuilder()
        self.formats = formats
        self.content = content
        self.contexts = Contexts(handlers_of)
        self.entries: list[tuple[int, str, str, str]] = []
        self.translated: list[tuple[int, int, dict, int]] = []
        self._mode = CLOSE if forbid else OPEN
        self._work: list[tuple[int, dict, Context, int]] = []
        self._cuts: list[int] = []
        self._depth = 0

    def run(self, **policies: str) -> Program:
        """Translate everything that the root reaches."""
        root = self.registry.root
        context = self.contexts.get(root, (), self._mode)
        node = self.in_place(root.root, context, root.place)
        refs = self.builder.refs
        done = 0
        while self._work:
            ref, schema, context, place = self._work.pop()
            done += 1
            if done % _BETWEEN_CHECKS == 0:
                limits.check(pointer=self.places.pointer(place))
                self.places.check_nesting()
            refs[ref] = self.in_place(schema, context, place)
        self.places.check_nesting()
        if self._cuts:
            self._refuse_cycles()
        for place, keyword, detail in self.registry.surprises:
            self.entries.append((place, keyword, "surprise", detail))
        notes: dict[str, object] = {
            "places": (array("i", self.places.parents), tuple(self.places.tokens)),
            "schemas": self.translated,
            "entries": self.entries,
            "formats": self.formats,
            "content": self.content,
        }
        return self.builder.build("json", node, notes=notes, **policies)

    # -- schemas ---------------------------------------------------------------------------

    def child(self, schema: object, context: Context, parent: int, token: str | int) -> int:
        """The formula that a child value must satisfy: a REF unless it is a simple one."""
        if type(schema) is not dict:
            return self._boolean(schema, self.places, parent, token)
        key = id(schema)
        found = context.refs.get(key)
        if found is not None:
            return found
        where, place = context, self.places.add(parent, token)
        if len(schema) == 1 and type(schema.get("type")) is str:
            # by far the most frequent schema
            found = context.types.get(schema["type"])
            if found is None:
                found = context.types[schema["type"]] = self.in_place(schema, context, place)
            else:
                self.translated.append((place, found, schema, context.draft))
            return found
        if context.embedded:
            where = self.enter(schema, context)
        if "$ref" in schema and self._is_plain_ref(schema, where, place):
            schema, where, place = self.follow(schema, where, place)
            if type(schema) is not dict:
                found = self._boolean(schema, self.places, place, "")
                context.refs[key] = found
                return found
            found = where.refs.get(id(schema))
        if found is None:
            if _STRUCTURAL.isdisjoint(schema):
                found = self.in_place(schema, where, place)
            else:
                found = self._reference(schema, where, place)
            where.refs[id(schema)] = found
        context.refs[key] = found
        return found

    def in_place(self, schema: object, context: Context, place: int) -> int:
        """The formula of a schema that applies to the same value."""
        if type(schema) is not dict:
            return self._boolean(schema, self.places, place, "")
        key = id(schema)
        found = context.nodes.get(key)
        if found is not None:
            if found == _BUSY:
                raise self._cycle(place)
            return found
        where = self.enter(schema, context) if context.embedded else context
        if "$ref" in schema and self._is_plain_ref(schema, where, place):
            target, inner, there = self.follow(schema, where, place)
            found = self.in_place(target, inner, there)
            self.translated.append((place, found, schema, context.draft))
        elif self._depth >= _MAX_DEPTH:
            found = where.refs.get(key)
            if found is None or self.builder.op(found) != _REF:
                found = self._reference(schema, where, place)
                where.refs[key] = found
            self._cuts.append(self.builder.nodes[3 * found + 1])
            return found
        elif where is not context:
            found = self.in_place(schema, where, place)
        else:
            context.nodes[key] = _BUSY
            self._depth += 1
            found = self._translate(schema, context, place)
            self._depth -= 1
            self.translated.append((place, found, schema, context.draft))
        context.nodes[key] = found
        return found

    def located(self, where: Location, context: Context) -> int:
        """The formula of the target of a reference made in `context`."""
        return self.in_place(where.schema, self.context_of(where, context), where.place)

    def context_of(self, where: Location, context: Context) -> Context:
        """The context in which the target of a reference made in `context` is read."""
        if where.resource is context.resource:
            return context
        return self.contexts.get(where.resource, context.scope, context.mode)

    def enter(self, schema: dict, context: Context) -> Context:
        resource = context.embedded.get(id(schema))
        if resource is None or resource is context.resource:
            return context
        return self.contexts.get(resource, context.scope, context.mode)

    def _reference(self, schema: dict, context: Context, place: int) -> int:
        refs = self.builder.refs
        refs.append(FALSE)
        self._work.append((len(refs) - 1, schema, context, place))
        return self.builder.node(_REF, len(refs) - 1)

    def _boolean(self, schema: object, places: object, place: int, token: str | int) -> int:
        if schema is True:
            return TRUE
        if schema is False:
            return FALSE
        if token != "":
            place = self.places.add(place, token)
        self.fail_at(place, f"expected a schema (an object or a boolean), found {kind_of(schema)}")

    def _translate(self, schema: dict, context: Context, place: int) -> int:
        frame = Frame(schema, context, place)
        if context.mode == CLOSE:
            frame.close, frame.branches = closing.plan(self, schema, context, place)
        else:
            frame.branches = context
        handlers = context.handlers
        for keyword, value in schema.items():
            try:
                handler = handlers[keyword]
            except KeyError:
                self.entries.append((place, keyword, "unknown", ""))
            else:
                if handler is not None:
                    handler(self, frame, value)
        out = frame.out
        if frame.has_object or frame.close:
            out.append(objects.build(self, frame))
        if frame.has_array:
            out.append(arrays.build(self, frame))
        if len(out) == 1:
            return out[0]
        return self.builder.all(out)

    # -- references ------------------------------------------------------------------------

    def _is_plain_ref(self, schema: dict, context: Context, place: int) -> bool:
        """Whether `schema` means nothing but its `$ref`."""
        if type(schema["$ref"]) is not str:
            self.fail_at(
                self.places.add(place, "$ref"),
                f"expected a URI reference, found {kind_of(schema['$ref'])}",
            )
        if len(schema) == 1:
            return True
        if context.draft <= 7:
            for keyword in schema:
                if keyword not in _BESIDE_REF and context.handlers.get(keyword) is not None:
                    detail = f"ignored beside $ref, as draft {context.draft} says"
                    self.entries.append((place, keyword, "surprise", detail))
            return True
        return len(schema) <= 4 and all(k == "$ref" or k in _ANNOTATIONS for k in schema)

    def follow(self, schema: dict, context: Context, place: int) -> tuple[object, Context, int]:
        """The end of a chain of plain references, without recursion."""
        seen: set[tuple[int, Context]] = set()
        while True:
            key = (id(schema), context)
            if key in seen:
                raise self._cycle(place)
            seen.add(key)
            where, _ = self.registry.resolve(schema["$ref"], context.resource, place)
            context = self.context_of(where, context)
            target, place = where.schema, where.place
            if type(target) is not dict:
                return target, context, place
            schema = target
            if "$ref" not in schema or not self._is_plain_ref(schema, context, place):
                return schema, context, place

    def target(self, keyword: str, ref: str, context: Context, place: int) -> Location:
        """What `$ref`, `$dynamicRef` or `$recursiveRef` leads to in `context`."""
        where, anchor = self.registry.resolve(ref, context.resource, place)
        if keyword == "$recursiveRef":
            anchor = RECURSIVE if RECURSIVE in where.resource.dynamic else None
        if keyword != "$ref" and anchor is not None:
            return dict(context.scope).get(anchor, where)
        return where

    def _refuse_cycles(self) -> None:
        """Find in-place cycles that lead through the REF nodes of deep nesting."""
        builder, done = self.builder, set()
        for start in dict.fromkeys(self._cuts):
            path: list[tuple[int, list[int]]] = []
            on_path: set[int] = set()
            node: int | None = builder.node(_REF, start)
            while True:
                if node is not None and node not in done:
                    if node in on_path:
                        raise SchemaError(
                            "a schema applies to the same value as itself without end, through "
                            "a long chain of in-place keywords"
                        )
                    on_path.add(node)
                    path.append((node, builder.in_place_parts(node)))
                while path and not path[-1][1]:
                    node = path.pop()[0]
                    on_path.discard(node)
                    done.add(node)
                if not path:
                    break
                node = path[-1][1].pop()

    # -- errors and lookups for keywords ---------------------------------------------------

    def fail_at(self, place: int, message: str) -> NoReturn:
        """Raise SchemaError at a place."""
        raise SchemaError(message, pointer=self.places.pointer(place))

    def fail(self, frame: Frame, keyword: str, expected: str, value: object) -> NoReturn:
        """Raise SchemaError for a malformed keyword."""
        self.fail_at(
            self.places.add(frame.place, keyword),
            f"{keyword} must be {expected}, found {kind_of(value)}",
        )

    def note(self, frame: Frame, keyword: str, status: str, detail: str) -> None:
        """Add an entry to the report."""
        self.entries.append((frame.place, keyword, status, detail))

    def _cycle(self, place: int) -> SchemaError:
        return SchemaError(
            "the schema applies to the same value as itself without end",
            pointer=self.places.pointer(place),
        )

    def pattern(self, text: str, place: int, *tokens: str | int) -> int:
        """The formula of a `pattern` or a key of `patternProperties`."""
        try:
            return self.builder.regex(regexes.pattern(text))
        except (RegexError, UnsupportedError) as error:
            raise self._at(error, place, tokens) from None

    def grammar(self, kind: str, text: str, start: str, place: int) -> int:
        """The formula of an `x-grammar`."""
        try:
            return self.builder.regex(regexes.grammar(kind, text, start))
        except (RegexError, UnsupportedError) as error:
            raise self._at(error, place, ("x-grammar", kind)) from None
        except GrammarError as error:
            pointer = self.places.pointer(self.places.add(place, "x-grammar"))
            raise GrammarError(
                f"{error.message} (in the grammar at {pointer})",
                line=error.line,
                column=error.column,
                file=error.file,
            ) from None

    def format(self, name: str, draft: str, place: int) -> int | None:
        """The formula of a `format` as `draft` means it, or None where it is not enforced."""
        try:
            program = regexes.named_format(name, draft)
        except (RegexError, UnsupportedError) as error:
            raise self._at(error, place, ("format",)) from None
        return None if program is None else self.builder.regex(program)

    def _at(
        self, error: RegexError | UnsupportedError, place: int, tokens: tuple[str | int, ...]
    ) -> RegexError | UnsupportedError:
        for token in tokens:
            place = self.places.add(place, token)
        pointer = self.places.pointer(place)
        if isinstance(error, RegexError):
            return RegexError(
                error.message, pattern=error.pattern, position=error.position, pointer=pointer
            )
        return UnsupportedError(error.message, feature=error.feature, pointer=pointer)


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    return _JSON_NAMES.get(type(value), type(value).__name__)
