"""Where a schema is read: its resource, the dynamic scope, and whether objects are closed.

The meaning of a schema depends on three things besides its text: the resource it is in (dialect
and base URI), the dynamic anchors bound on the way to it, and the closing mode.  A context is one
such triple, interned, with its memo: translation is keyed by (context, identity of the schema).

Closing modes (`extra_properties="forbid"`)
    OPEN   nothing is closed, here or below; the only mode of `extra_properties="schema"`, and of
           every place where closing would admit more instead of less (`not`, `if`, `oneOf`)
    CLOSE  this schema and what applies in place with it is an object to be closed
    INNER  closing is done by the schema that this one is applied with; its children are CLOSE
"""

from __future__ import annotations

from collections.abc import Callable

from constrain.schema.dialects import Dialect
from constrain.schema.documents import Location, Resource

__all__ = ["CLOSE", "INNER", "OPEN", "Context", "Contexts", "Scope"]

OPEN, CLOSE, INNER = 0, 1, 2

Scope = tuple[tuple[str, Location], ...]
"""Dynamic anchors and what each is bound to, sorted by name."""


class Context:
    """One interned triple, its relatives, and its memos (by the id of a schema)."""

    __slots__ = (
        "children",
        "dependent_keywords",
        "draft",
        "embedded",
        "handlers",
        "inner",
        "mode",
        "nodes",
        "open",
        "reference_keywords",
        "refs",
        "resource",
        "scope",
        "types",
    )

    def __init__(self, resource: Resource, scope: Scope, mode: int, handlers: dict) -> None:
        self.resource = resource
        dialect = resource.dialect
        self.draft = dialect.draft
        self.reference_keywords = dialect.reference_keywords
        self.dependent_keywords = dialect.dependent_keywords
        self.embedded = resource.document.embedded
        self.handlers = handlers
        self.scope = scope
        self.mode = mode
        self.nodes: dict[int, int] = {}
        """The formula of each schema that has been translated here."""
        self.refs: dict[int, int] = {}
        """The formula that stands for each schema where a child must satisfy it."""
        self.types: dict[str, int] = {}
        """The formula of the schema that says nothing but this `type`."""
        self.open = self
        self.inner = self
        self.children = self


class Contexts:
    """The contexts of one translation."""

    def __init__(self, handlers_of: Callable[[Dialect], dict]) -> None:
        self._known: dict[tuple[Resource, Scope, int], Context] = {}
        self._handlers_of = handlers_of

    def get(self, resource: Resource, scope: Scope, mode: int) -> Context:
        """The context for schemas of `resource`, entered with `scope`."""
        if resource.dynamic:
            bound = dict(scope)
            for name, where in resource.dynamic.items():
                bound.setdefault(name, where)
            if len(bound) != len(scope):
                scope = tuple(sorted(bound.items(), key=lambda item: item[0]))
        return self._get(resource, scope, mode)

    def _get(self, resource: Resource, scope: Scope, mode: int) -> Context:
        key = (resource, scope, mode)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Context(
                resource, scope, mode, self._handlers_of(resource.dialect)
            )
            if mode != OPEN:
                found.open = self._get(resource, scope, OPEN)
                found.inner = self._get(resource, scope, INNER)
                found.children = self._get(resource, scope, CLOSE)
        return found
