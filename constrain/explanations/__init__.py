"""Explanations: where a sequence stands, what may come next, and why a token may not.

`Matcher.explain` asks for one.  What is allowed is asked of the machine, byte by byte (`probe`); the
rest only says where that comes from:

* of JSON, the place in the value, and the schemas that speak of it (`schema_place`); a refused byte
  is put down to the few keywords that are enough to refuse it, or to a policy;
* of grammars and what is made of parts, the rules that are being read (`grammar_place`), and inside
  of embedded JSON (arguments of tools, for instance) the same as of JSON.

An explanation costs milliseconds, for large schemas up to seconds: it is for people and for logs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constrain._programs import byte_matcher
from constrain.errors import ConstrainError
from constrain.explanations.types import Explanation, Place, Reason, Refusal
from constrain.parts import GrammarSpec
from constrain.program import Program
from constrain.vocabulary import spelled

if TYPE_CHECKING:
    from constrain.compile import CompiledConstraint
    from constrain.explanations.grammar_place import Active
    from constrain.matcher import Matcher
    from constrain.schema.spec import JsonSchema

__all__ = ["Explanation", "Place", "Reason", "Refusal", "explain_text", "explain_token"]

_LIMIT = 2_000  # bytes of a completion
_MAX_PLACES = 12
_MAX_TERMINALS = 8
_MAX_LITERALS = 24
_NAME = 60  # characters of the name of a terminal


def explain_token(
    matcher: Matcher, token_id: int | None = None, *, remaining: int | None = None
) -> Explanation:
    """See `constrain.matcher.Matcher.explain`."""
    compiled = matcher.compiled
    vocabulary = compiled.vocabulary
    if token_id is not None and (isinstance(token_id, bool) or not isinstance(token_id, int)):
        raise ConstrainError(f"token_id is an int, found {type(token_id).__name__}")
    if token_id is not None and not 0 <= token_id < vocabulary.size:
        raise ConstrainError(
            f"token_id is {token_id}, the vocabulary has the ids 0 to {vocabulary.size - 1}"
        )

    def spelling(number: int) -> bytes:
        text = vocabulary.tokens[number] if number < len(vocabulary.tokens) else None
        return spelled(number) if text is None else text

    tokens = matcher.tokens
    text = b"".join(map(spelling, tokens))
    explainer = _Explainer(compiled)
    while tokens and explainer.readable(text) < len(text):
        text = text[: -len(spelling(tokens.pop()))]  # the end of a finished sequence
    found = explainer.at(text)
    if token_id is None:
        return found
    written = vocabulary.tokens[token_id] if token_id < len(vocabulary.tokens) else None
    is_end = token_id in vocabulary.eos_token_ids
    if matcher.is_finished:
        if is_end:
            return found
        reason = Reason("end", "the sequence is finished")
        refusal = Refusal(token_id, written, b"", None, "an end of sequence", (reason,))
    elif matcher.validate([token_id]):
        if remaining is None or matcher.validate([token_id], remaining=remaining):
            return found
        ahead = matcher.fork()
        ahead.advance(token_id)
        message = (
            f"behind it the text needs {ahead.tokens_needed} more tokens, and"
            f" {max(remaining - 1, 0)} are left"
        )
        reason = Reason("budget", message)
        refusal = Refusal(token_id, written, written or b"", None, found.expected, (reason,))
    elif is_end:
        reason = Reason("end", "the text is not valid yet")
        refusal = Refusal(token_id, written, b"", None, found.expected, (reason,))
    elif written is None:
        reason = Reason("special", "this special token is not asked for here")
        refusal = Refusal(token_id, None, b"", None, found.expected, (reason,))
    else:
        refusal = explainer.refusal(text, written, token_id)
    return replace(found, refusal=refusal)


def explain_text(
    compiled: CompiledConstraint, text: bytes, *, complete: bool = False
) -> Explanation:
    """Where a text stands; where it becomes wrong, the explanation of that place.

    Args:
        compiled: the constraint; of its vocabulary only special tokens matter.
        text: what was written so far, special tokens by their spelling.
        complete: the text is meant to be a whole one, so that an end that is not allowed is refused
            as well.
    """
    explainer = _Explainer(compiled)
    read = explainer.readable(text)
    found = explainer.at(text[:read])
    if read < len(text):
        refusal = explainer.refusal(text[:read], text[read:], None)
        return replace(found, refusal=refusal)
    if complete and not found.is_accepting:
        reason = Reason("end", "the text is not valid yet")
        refusal = Refusal(None, b"", b"", None, found.expected, (reason,))
        return replace(found, refusal=refusal)
    return found


class _Explainer:
    def __init__(self, compiled: CompiledConstraint) -> None:
        self.spec, self.program = compiled.spec, compiled.program
        self.vocabulary = compiled.vocabulary
        self.matcher = compiled.matcher()
        self._grammar: Any = None

    def readable(self, text: bytes) -> int:
        """How many bytes of a text can be read from the start."""
        return self.matcher.probe(text, 0)[0]

    def at(self, text: bytes) -> Explanation:
        """The explanation of the state behind a text."""
        _, expected, following, accepts, forced, completion = self.matcher.probe(text, _LIMIT)
        ranges: list[tuple[int, int]] = []
        for byte in following:
            if ranges and ranges[-1][1] == byte - 1:
                ranges[-1] = (ranges[-1][0], byte)
            else:
                ranges.append((byte, byte))
        places, literals = self._places(text)
        return Explanation(
            text=text,
            expected=expected,
            next_bytes=tuple(ranges),
            forced=forced,
            completion=completion,
            is_accepting=accepts,
            places=tuple(places),
            literals=tuple(literals),
        )

    def refusal(self, text: bytes, more: bytes, token_id: int | None) -> Refusal:
        """Why a text cannot go on with `more`."""
        read, expected, *_ = self.matcher.probe(text + more, 0)
        at = read - len(text)
        reasons = self._reasons(text + more[:at], more[at])
        return Refusal(token_id, more, more[:at], more[at], expected, reasons)

    # -- where ---------------------------------------------------------------------------------

    def _places(self, text: bytes) -> tuple[list[Place], list[bytes]]:
        """Where the constraint stands behind a text, and words that it lists there."""
        spec, program = self.spec, self.program
        if program.kind == "json":
            return _schema_places(program, text)
        if program.kind == "text":
            pattern = getattr(spec, "pattern", None)
            if pattern is not None:
                return [Place("pattern", name=repr(pattern))], []
            options = [option.encode() for option in getattr(spec, "options", ())]
            possible = [option for option in options if option.startswith(text)]
            name = f"of {len(options)} texts, {len(possible)} of which begin like this"
            return [Place("choice", name=name)], possible[:_MAX_LITERALS]
        found: list[Place] = []
        words: list[bytes] = []
        places = self._rule_places()
        rules: dict[str, list[Active]] = {}
        for active in self._active(text):
            rules.setdefault(active.rule, []).append(active)
        for rule, actives in rules.items():
            if len(found) >= _MAX_PLACES:
                break
            line, column = places.get(rule, (None, None))
            inside = " in ".join(actives[0].around)
            role = _terminals(actives, len(text))
            found.append(
                Place("rule", name=rule, role=role, line=line, column=column, inside=inside)
            )
            for active in actives:
                if active.program is not None and active.start < len(text):
                    inner, listed = _schema_places(
                        active.program, text[active.start :], active.terminal
                    )
                    found += inner
                    words += listed
                elif active.literal is not None:
                    words.append(active.literal)
        unique = list(dict.fromkeys(found))[: 2 * _MAX_PLACES]
        return unique, list(dict.fromkeys(words))[:_MAX_LITERALS]

    def _active(self, text: bytes) -> list[Active]:
        from constrain.explanations.grammar_place import active_terminals

        return active_terminals(self._built()[0], text) if self._built() else []

    def _rule_places(self) -> dict[str, tuple[int, int]]:
        return self._built()[1] if self._built() else {}

    def _built(self) -> Any:
        """The grammar as its front ends built it, and the places of its rules."""
        if self._grammar is None:
            from constrain.grammar import GrammarBuilder

            self._grammar = ()
            if isinstance(self.spec, GrammarSpec):
                builder = GrammarBuilder(self.vocabulary)
                grammar = builder.grammar(builder.part(self.spec))
                self._grammar = (grammar, builder.places)
        return self._grammar

    # -- why -----------------------------------------------------------------------------------

    def _reasons(self, text: bytes, byte: int) -> tuple[Reason, ...]:
        refused = text + bytes((byte,))
        if self.program.kind == "json":
            return _schema_reasons(self.program, refused)
        if self.program.kind == "text":
            pattern = getattr(self.spec, "pattern", None)
            if pattern is not None:
                return (Reason("pattern", f"no match of {pattern!r} begins like this"),)
            count = len(getattr(self.spec, "options", ()))
            return (Reason("choice", f"none of the {count} texts begins like this"),)
        found: list[Reason] = []
        names: dict[str, None] = {}
        for active in self._active(text):
            if active.program is not None and active.start < len(text):
                found += _schema_reasons(active.program, refused[active.start :])
                continue
            names[f"{active.rule} ({active.terminal[:_NAME]})"] = None
        if names:
            told = list(names)
            more = f" and {len(told) - _MAX_TERMINALS} more" if len(told) > _MAX_TERMINALS else ""
            message = "no rule reads it here: " + ", ".join(told[:_MAX_TERMINALS]) + more
            found.append(Reason("grammar", message))
        unique = {(reason.kind, reason.pointer, reason.message): reason for reason in found}
        return tuple(unique.values()) or (Reason("grammar", "no rule reads it here"),)


def _terminals(actives: list[Active], end: int) -> str:
    """What a rule reads or expects: "reads NUMBER; expects '(' or ')'"."""
    parts = []
    for said, begun in (("reads", True), ("expects", False)):
        names = dict.fromkeys(a.terminal[:_NAME] for a in actives if (a.start < end) == begun)
        told = list(names)[:_MAX_TERMINALS]
        if told:
            more = ", ..." if len(names) > _MAX_TERMINALS else ""
            parts.append(f"{said} {', '.join(told)}{more}")
    return "; ".join(parts)


def _spec_of(program: Program) -> JsonSchema | None:
    found: Any = program.notes.get("spec")
    return found


def _plain_json(program: Program) -> bool:
    """Whether texts are JSON, and not the same values spelled otherwise."""
    return getattr(program, "surface", None) is None


def _schema_places(
    program: Program, text: bytes, inside: str = ""
) -> tuple[list[Place], list[bytes]]:
    from constrain.explanations.json_place import json_place
    from constrain.explanations.schema_place import governing, literals
    from constrain.schema.loading import pointer_of

    inside = inside if len(inside) <= _NAME else f"{inside[:_NAME]}..."
    spec = _spec_of(program)
    if spec is None or not _plain_json(program):
        return [Place("schema", pointer="", inside=inside)], []
    place = json_place(text)
    instance = pointer_of(place.path)
    schemas = governing(spec, text, place)
    begun = text[place.begun :]
    matcher = byte_matcher(program)
    for byte in text:
        matcher.advance(byte)
    words: list[bytes] = []
    for word in literals(schemas, place):
        rest = list(word[len(begun) :])
        if word.startswith(begun) and rest and matcher.validate(rest) == len(rest):
            words.append(word)
            if len(words) == _MAX_LITERALS:
                break
    places = [
        Place("schema", pointer=pointer, instance=instance, role=place.role, inside=inside)
        for pointer in list(schemas)[:_MAX_PLACES]
    ]
    return places, words


def _schema_reasons(program: Program, refused: bytes) -> tuple[Reason, ...]:
    from constrain.explanations.schema_place import reasons

    spec = _spec_of(program)
    if spec is None or not _plain_json(program):
        return (Reason("syntax", "the schema, or how its values are written, refuses it"),)
    return reasons(spec, refused)
