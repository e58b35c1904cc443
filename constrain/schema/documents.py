"""Documents, resources and references: what `$ref` means.

A document is one schema as handed over; a resource is a schema with a URI of its own (the root of
a document, or a subschema with `$id`).  Documents are indexed once, when they are first needed,
and only if an identifier or an anchor occurs in them at all.  Nothing is fetched: references
lead into the document, into the `resources` of the caller, or to the official meta-schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urldefrag, urljoin

from constrain import limits
from constrain.errors import LimitExceededError, SchemaError, UnsupportedError
from constrain.schema.dialects import (
    IN_LIST,
    IN_MAP,
    SINGLE,
    UNSUPPORTED_URIS,
    Dialect,
    dialect_uri,
)
from constrain.schema.loading import copy_schema, pointer_of

__all__ = ["RECURSIVE", "Document", "Location", "Places", "Registry", "Resource"]

RECURSIVE = "$recursiveAnchor"
"""The name under which `$recursiveAnchor: true` stands among dynamic anchors."""
_MARKS = frozenset(("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))


class Places:
    """Places in documents, as a forest: a place is a number, and costs two appends to make."""

    __slots__ = ("_depths", "parents", "tokens")

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.tokens: list[str | int] = []
        self._depths: list[int] = []  # of the places that check_nesting has seen

    def add(self, parent: int, token: str | int) -> int:
        """The place `token` below `parent`; a root has parent -1 and its URI as token."""
        self.parents.append(parent)
        self.tokens.append(token)
        return len(self.tokens) - 1

    def check_nesting(self) -> None:
        """Raise LimitExceededError at the first place that is nested too deeply.

        A place is as deep as its pointer is long.  Call it as often as places may pile up.
        """
        most = limits.max_nesting()
        if len(self.parents) <= most:
            return
        depths = self._depths
        for place in range(len(depths), len(self.parents)):
            parent = self.parents[place]
            depth = 0 if parent < 0 else depths[parent] + 1
            depths.append(depth)
            if depth > most:
                raise LimitExceededError(
                    f"the schema is nested more than {most} deep",
                    limit="max_nesting",
                    pointer=self.pointer(place),
                )

    def pointer(self, place: int) -> str:
        """The JSON pointer of a place, after the URI and # where the document is not the root."""
        tokens: list[str | int] = []
        while self.parents[place] >= 0:
            tokens.append(self.tokens[place])
            place = self.parents[place]
        uri = str(self.tokens[place])
        return (uri + "#" if uri else "") + pointer_of(reversed(tokens))


class Resource:
    """A schema with a URI: the base of references in it and the home of anchors."""

    __slots__ = ("anchors", "cache", "dialect", "document", "dynamic", "place", "root", "uri")

    def __init__(
        self, document: Document, root: object, uri: str, dialect: Dialect, place: int
    ) -> None:
        self.document = document
        self.root = root
        self.uri = uri
        self.dialect = dialect
        self.place = place
        self.anchors: dict[str, Location] = {}
        self.dynamic: dict[str, Location] = {}
        self.cache: dict[str, tuple[Location, str | None]] = {}


class Location:
    """A schema, the resource it belongs to, and its place.  Compared by identity."""

    __slots__ = ("place", "resource", "schema")

    def __init__(self, schema: object, resource: Resource, place: int) -> None:
        self.schema = schema
        self.resource = resource
        self.place = place


class Document:
    """One schema as handed over, with the resources embedded in it by the id of their dict."""

    __slots__ = ("embedded", "root")

    def __init__(self) -> None:
        self.embedded: dict[int, Resource] = {}
        self.root: Resource | None = None


class Registry:
    """All documents that a schema can refer to.

    `resources` maps URIs to schemas that are private already (dict or bool).
    """

    def __init__(self, schema: object, resources: Mapping[str, object], default: Dialect) -> None:
        self.places = Places()
        self.surprises: list[tuple[int, str, str]] = []
        self._given = {str(uri).removesuffix("#"): value for uri, value in resources.items()}
        self._resources: dict[str, Resource] = {}
        self._dialects: dict[str, Dialect] = {}
        self.root = self._add(schema, "", "", default)

    # -- documents and dialects ------------------------------------------------------------

    def _add(self, schema: object, uri: str, label: str, current: Dialect) -> Resource:
        place = self.places.add(-1, label)
        document = Document()
        dialect = self._dialect(schema, current, place)
        resource = document.root = Resource(document, schema, uri, dialect, place)
        self._resources.setdefault(uri, resource)
        if isinstance(schema, dict):
            own = schema.get(dialect.id_keyword)
            if isinstance(own, str) and not (dialect.draft <= 7 and "$ref" in schema):
                base = urldefrag(urljoin(uri, own))[0]
                if base:
                    resource.uri = base
                    self._resources.setdefault(base, resource)
            if _is_marked(schema):
                self._index(resource)
        return resource

    def _dialect(self, schema: object, current: Dialect, place: int) -> Dialect:
        uri = schema.get("$schema") if isinstance(schema, dict) else None
        if uri is None:
            return current
        if not isinstance(uri, str):
            raise SchemaError("$schema must be a string", pointer=self.places.pointer(place))
        known = self._dialects.get(uri)
        if known is None:
            known = self._dialects[uri] = self._find_dialect(uri, current, place)
        return known

    def _find_dialect(self, uri: str, current: Dialect, place: int) -> Dialect:
        bare, draft = dialect_uri(uri)
        if draft is not None:
            return Dialect(draft)
        if bare in UNSUPPORTED_URIS:
            raise UnsupportedError(
                f"drafts before 4 are not supported, $schema is {uri!r}",
                feature="$schema",
                pointer=self.places.pointer(place) + "/$schema",
            )
        document = self._given.get(uri.removesuffix("#"))
        if isinstance(document, Mapping):
            self._dialects[uri] = current  # a meta-schema may name itself
            base = self._dialect(document, current, place)
            vocabulary = document.get("$vocabulary")
            if isinstance(vocabulary, Mapping) and base.draft >= 2019:
                return Dialect(
                    base.draft,
                    validation=any("/vocab/validation" in str(uri) for uri in vocabulary),
                    format_assertion=any("/vocab/format-assertion" in str(v) for v in vocabulary),
                )
            return Dialect(base.draft)
        self.surprises.append(
            (place, "$schema", f"unknown dialect {uri!r}, read as draft {current.name}")
        )
        return current

    def _index(self, top: Resource) -> None:
        """Find the identifiers and anchors of a document, at the places where schemas can be."""
        places, embedded = self.places, top.document.embedded
        todo: list[tuple[object, Resource, int]] = [(top.root, top, top.place)]
        seen: set[int] = set()
        while todo:
            schema, resource, place = todo.pop()
            if type(schema) is not dict or id(schema) in seen:
                continue
            seen.add(id(schema))
            resource = self._identify(schema, resource, place, embedded, schema is top.root)
            for keyword in SINGLE:
                child = schema.get(keyword)
                if type(child) is dict:
                    todo.append((child, resource, places.add(place, keyword)))
            for keyword in IN_LIST:
                children = schema.get(keyword)
                if type(children) is list:
                    where = places.add(place, keyword)
                    for index, child in enumerate(children):
                        todo.append((child, resource, places.add(where, index)))
            for keyword in IN_MAP:
                members = schema.get(keyword)
                if type(members) is dict:
                    where = places.add(place, keyword)
                    for key, child in members.items():
                        todo.append((child, resource, places.add(where, key)))

    def _identify(
        self,
        schema: dict,
        resource: Resource,
        place: int,
        embedded: dict[int, Resource],
        is_root: bool,
    ) -> Resource:
        """The resource that `schema` belongs to, with its anchors entered."""
        dialect = self._dialect(schema, resource.dialect, place)
        own = schema.get(dialect.id_keyword)
        legacy = dialect.draft <= 7
        if isinstance(own, str) and not (legacy and "$ref" in schema):
            if legacy and own.startswith("#"):
                if len(own) > 1:
                    resource.anchors.setdefault(own[1:], Location(schema, resource, place))
            else:
                uri, fragment = urldefrag(urljoin(resource.uri, own))
                if not is_root:
                    resource = Resource(resource.document, schema, uri, dialect, place)
                    embedded[id(schema)] = resource
                    self._resources.setdefault(uri, resource)
                if legacy and fragment:
                    resource.anchors.setdefault(fragment, Location(schema, resource, place))
        draft = resource.dialect.draft
        if draft >= 2019:
            anchor = schema.get("$anchor")
            if isinstance(anchor, str):
                resource.anchors[anchor] = Location(schema, resource, place)
            anchor = schema.get("$dynamicAnchor")
            if isinstance(anchor, str) and draft >= 2020:
                where = Location(schema, resource, place)
                resource.anchors[anchor] = resource.dynamic[anchor] = where
            if draft == 2019 and schema is resource.root and schema.get("$recursiveAnchor") is True:
                resource.dynamic[RECURSIVE] = Location(schema, resource, place)
        return resource

    # -- references ------------------------------------------------------------------------

    def resolve(self, ref: str, resource: Resource, place: int) -> tuple[Location, str | None]:
        """What `ref`, written in `resource`, leads to; and the dynamic anchor's name, if one."""
        found = resource.cache.get(ref)
        if found is None:
            found = resource.cache[ref] = self._resolve(ref, resource, place)
        return found

    def _resolve(self, ref: str, resource: Resource, place: int) -> tuple[Location, str | None]:
        if ref.startswith("#"):
            target, fragment = resource, ref[1:]
        else:
            try:
                uri, fragment = urldefrag(urljoin(resource.uri, ref))
            except ValueError as error:
                raise self._unresolved(ref, f"it is not a URI reference ({error})", place) from None
            target = self._load(uri, ref, resource.dialect, place)
        fragment = unquote(fragment)
        if not fragment:
            return Location(target.root, target, target.place), None
        if not fragment.startswith("/"):
            where = target.anchors.get(fragment)
            if where is None:
                raise self._unresolved(ref, f"there is no anchor {fragment!r}", place)
            is_dynamic = target.dynamic.get(fragment) is where
            return where, fragment if is_dynamic else None
        return self._walk(ref, fragment, target, place), None

    def _walk(self, ref: str, pointer: str, resource: Resource, place: int) -> Location:
        current, where = resource.root, resource.place
        embedded = resource.document.embedded
        for token in pointer[1:].split("/"):
            token = token.replace("~1", "/").replace("~0", "~")
            if isinstance(current, dict) and token in current:
                current = current[token]
            elif isinstance(current, list) and token.isascii() and token.isdigit():
                index = int(token) if len(token) < 10 else len(current)
                if index >= len(current):
                    raise self._unresolved(ref, f"there is no item {token}", place)
                current = current[index]
            else:
                raise self._unresolved(ref, f"there is nothing at {token!r}", place)
            where = self.places.add(where, token)
            if embedded:
                resource = embedded.get(id(current), resource)
        if not isinstance(current, (dict, bool)):
            raise self._unresolved(
                ref, f"it leads to {type(current).__name__}, not to a schema", place
            )
        return Location(current, resource, where)

    def _load(self, uri: str, ref: str, current: Dialect, place: int) -> Resource:
        found = self._resources.get(uri)
        if found is not None:
            return found
        if uri in self._given:
            return self._take(uri, current)
        # a resource may be known by its own $id rather than by the key it was given under
        for key in list(self._given):
            if key not in self._resources:
                self._take(key, current)
        found = self._resources.get(uri)
        if found is not None:
            return found
        root = self.root
        if isinstance(root.root, dict) and uri:
            # an identifier in the spelling of another draft
            for keyword in ("$id", "id"):
                own = root.root.get(keyword)
                if isinstance(own, str) and own.removesuffix("#") == uri:
                    detail = f"taken as the base URI, which draft {root.dialect.name} does not"
                    self.surprises.append((root.place, keyword, detail))
                    self._resources[uri] = root
                    return root
        document = _meta_schema(uri)
        if document is not None:
            return self._add(document, uri, uri, current)
        if dialect_uri(uri)[1] is not None:
            raise self._unresolved(
                ref,
                "the official meta-schemas come with the package jsonschema-specifications, "
                "which is not installed",
                place,
            )
        raise self._unresolved(
            ref,
            f"nothing is known under {uri!r}; give it in `resources`, nothing is fetched",
            place,
        )

    def _take(self, uri: str, current: Dialect) -> Resource:
        return self._add(self._given[uri], uri, uri, current)

    def _unresolved(self, ref: str, reason: str, place: int) -> SchemaError:
        return SchemaError(
            f"the reference {ref!r} cannot be resolved: {reason}",
            pointer=self.places.pointer(place),
        )


def _is_marked(schema: dict) -> bool:
    """Whether an identifier or anchor may occur below (or an anchor at) the root of a document."""
    todo: list[object] = [schema]
    seen: set[int] = set()
    root = schema
    while todo:
        item = todo.pop()
        if type(item) is dict:
            if not _MARKS.isdisjoint(item):
                for mark in _MARKS:
                    value = item.get(mark)
                    if value is True or (
                        type(value) is str
                        and (item is not root or mark[-2:] != "id" or "#" in value)
                    ):
                        return True
            children: object = item.values()
        else:
            children = item
        for child in children:  # type: ignore[attr-defined]
            kind = type(child)
            if (kind is dict or kind is list) and id(child) not in seen:
                seen.add(id(child))
                todo.append(child)
    return False


def _meta_schema(uri: str) -> object | None:
    """An official meta-schema or vocabulary from the package that holds them, if installed."""
    if not uri.startswith(("http://json-schema.org/", "https://json-schema.org/")):
        return None
    try:
        from jsonschema_specifications import REGISTRY
    except ImportError:
        return None
    for key in (uri, uri + "#"):
        resource = REGISTRY.get(key)
        if resource is not None:
            return copy_schema(resource.contents)
    return None
