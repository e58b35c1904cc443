"""The incremental parser of tool calls: text of a model in, events out.

The parser follows a `ToolFormat`.  Prose is passed on as soon as it cannot be the beginning of
anything else, the rest is held back; at the end of the stream everything held back is released as
what it is.  A call begins when its opening text and the name of a known tool were read completely,
so that prose that mentions a delimiter stays prose.  A call that began but cannot be read on is
reported as failed, with its text; nothing disappears.

Whatever the chunks (bytes inside characters included), the events are the same up to where deltas
are cut (`events.merge`).  Cost: linear in the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable

from constrain.errors import ConstrainError
from constrain.tools.definitions import Tool, make_tools
from constrain.tools.events import (
    ArgumentsDelta,
    CallFailed,
    CallFinished,
    CallStarted,
    Event,
    Message,
    ReasoningDelta,
    TextDelta,
    collect,
)
from constrain.tools.formats import ToolFormat
from constrain.tools.matching import Match, Names, Status, match, partial_end, skip_space
from constrain.tools.named_formats import get_format
from constrain.tools.readers import ArgumentReader, ArgumentReadError, make_reader
from constrain.tools.scanning import Openings
from constrain.tools.templates import Atom, Hole, Literal, strip_spaces

__all__ = ["ToolCallParser", "parse_message"]


class ToolCallParser:
    """Parses one message.

    Args:
        format: a `ToolFormat` or the name of one.
        tools: the tools, in any form that `make_tools` takes.
        prompt: the end of the prompt, from which the parser sees whether the model begins inside
            a thinking section.
        validate: check arguments against the schema of their tool when a call is finished.
        answer: the message is calls or an answer (a JSON text, say): calls follow no text.

    Feed with `feed` (text or bytes of any cut), end with `finish`; `message` is then the whole.
    Raises what `make_tools` and `get_format` raise, and ToolFormatError where a tool's name cannot
    be written in the format.
    """

    def __init__(
        self,
        format: ToolFormat | str,
        tools: object,
        *,
        prompt: str = "",
        validate: bool = True,
        answer: bool = False,
    ) -> None:
        self.format = get_format(format) if isinstance(format, str) else format
        self.tools: tuple[Tool, ...] = make_tools(tools)
        self._by_name = {tool.name: tool for tool in self.tools}
        self._names = Names.of(list(self._by_name))
        self._prose = self.format.prose and not answer
        self._openings = Openings(self.format, self._names, self._prose)
        self._validate = validate
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer = self.format.prompted
        self._events: list[Event] = []
        self._out: list[Event] = []
        self._finished = False
        self._state: Callable[[bool], bool] = self._in_text
        self._wrote = (
            False  # prose other than whitespace since the start, or since the last section
        )
        self._drop_space = False  # whitespace that comes next belongs to a delimiter
        self._count = 0
        self._reader: ArgumentReader | None = None
        self._started = CallStarted(0, "", "")
        self._raw: list[str] = []
        self._arguments: list[str] = []
        self._closings: list[tuple[Atom, ...]] = []
        reasoning = self.format.reasoning
        begin = reasoning.begin.strip() if reasoning else ""
        if reasoning and prompt.rstrip().endswith(reasoning.end.strip()):
            self._drop_space = True
        elif begin and prompt.rstrip().endswith(begin):
            self._state = self._in_reasoning
            self._drop_space = True

    # -- the interface -------------------------------------------------------------------------

    def feed(self, chunk: str | bytes) -> list[Event]:
        """The events of more text.  Bytes may be cut anywhere; bytes that are no UTF-8 become
        U+FFFD.  Raises ConstrainError after `finish`.
        """
        if self._finished:
            raise ConstrainError("the message is finished already")
        if isinstance(chunk, str):
            text = self._decoder.decode(b"", True) + chunk
            self._decoder.reset()
        else:
            text = self._decoder.decode(chunk)
        self._buffer += text
        return self._run(False)

    def finish(self) -> list[Event]:
        """The events at the end of the stream: what was held back is released."""
        if self._finished:
            return []
        self._buffer += self._decoder.decode(b"", True)
        events = self._run(True)
        self._finished = True
        return events

    @property
    def message(self) -> Message:
        """The message so far."""
        return collect(self._events)

    @property
    def is_stopped(self) -> bool:
        """Whether a text that ends messages was read; what follows it is ignored."""
        return self._state == self._stopped

    def _run(self, final: bool) -> list[Event]:
        self._out = []
        while self._state(final):
            pass
        self._events.extend(self._out)
        return self._out

    def _consume(self, end: int) -> str:
        """Take the buffer up to `end`."""
        taken, self._buffer = self._buffer[:end], self._buffer[end:]
        return taken

    # -- prose ---------------------------------------------------------------------------------

    def _in_text(self, final: bool) -> bool:
        text = self._buffer
        if not text:
            return False
        if self._drop_space:
            end = skip_space(text, 0)
            self._consume(end)
            if not self._buffer:
                return False
            self._drop_space = False
            return True
        fresh = not self._wrote
        at, found = self._openings.find(text, final, fresh, self._may_call(text))
        # whitespace before a delimiter belongs to it, so it waits for what follows
        prose = text[:at].rstrip()
        if found is not None and found.status is Status.YES:
            self._emit_text(text[:at] if found.kind == "stop" else prose)
            return self._open(found.kind, found.match, found.template, at)
        if final and found is None:
            prose = text[:at]
        if prose:
            self._emit_text(prose)
            self._consume(len(prose))
        return False

    def _may_call(self, text: str) -> bool:
        return self._prose or not self._wrote

    def _emit_text(self, text: str) -> None:
        if text:
            self._out.append(TextDelta(text))
            if text.strip():
                self._wrote = True

    def _open(self, kind: str, found: Match, template: str, at: int) -> bool:
        raw = self._consume(found.end)[at:]
        if kind == "stop":
            self._state = self._stopped
        elif kind == "reasoning":
            self._state, self._drop_space = self._in_reasoning, True
        elif kind == "mark":
            self._drop_space = True
        else:
            self._begin_call(found, template, raw)
        return True

    def _stopped(self, final: bool) -> bool:
        self._buffer = ""
        return False

    # -- reasoning -----------------------------------------------------------------------------

    def _in_reasoning(self, final: bool) -> bool:
        text = self._buffer
        section = self.format.reasoning
        if section is None or not text:
            return False
        if self._drop_space:
            start = skip_space(text, 0)
            self._consume(start)
            if not self._buffer:
                return False
            self._drop_space = False
            return True
        end_text = section.end.strip()
        at = text.find(end_text)
        if at >= 0:
            thought = text[:at].rstrip()
            if thought:
                self._out.append(ReasoningDelta(thought))
            self._consume(at + len(end_text))
            self._state, self._drop_space, self._wrote = self._in_text, True, False
            return True
        safe = len(text) if final else partial_end(text, 0, end_text)
        thought = text[:safe] if final else text[:safe].rstrip()
        if thought:
            self._out.append(ReasoningDelta(thought))
            self._consume(len(thought))
        return False

    # -- calls ---------------------------------------------------------------------------------

    def _begin_call(self, found: Match, template: str, raw: str) -> None:
        name = found.holes["name"]
        identity = found.holes.get("id") or f"call_{self._count}"
        self._started = CallStarted(self._count, identity, name)
        self._count += 1
        self._out.append(self._started)
        closing = self.format.closing(template)
        self._reader = make_reader(self.format, self._by_name[name], closing)
        # other spellings may begin as this one does, and end otherwise
        closings = [closing, *self._openings.other_closings(template)]
        self._closings = [strip_spaces(_filled_closing(one, found.holes)) for one in closings]
        self._raw, self._arguments = [raw], []
        self._state = self._in_arguments

    def _in_arguments(self, final: bool) -> bool:
        reader = self._reader
        if reader is None:
            return False
        wrong: ArgumentReadError | None = None
        try:
            end, delta = reader.feed(self._buffer, 0, final)
        except ArgumentReadError as error:
            wrong, end, delta = error, error.end, error.delta
        self._raw.append(self._consume(end))
        if delta:
            self._arguments.append(delta)
            self._out.append(ArgumentsDelta(self._started.index, delta))
        if wrong is not None:
            return self._fail(str(wrong))
        if reader.done:
            self._state = self._after_arguments
            return True
        if final:
            return self._fail("the text ends inside the arguments")
        return False

    def _after_arguments(self, final: bool) -> bool:
        waits = False
        for closing in self._closings:
            start = skip_space(self._buffer, 0) if closing else 0
            found = match(closing, self._buffer, start, self._names, final)
            waits = waits or found.status is Status.MORE
            if found.status is Status.YES and not waits:
                self._consume(found.end)
                self._finish_call()
                self._state = self._between_calls
                return True
        return False if waits else self._fail("expected the end of the call")

    def _finish_call(self) -> None:
        started, reader = self._started, self._reader
        if reader is None:
            return
        error: ConstrainError | None = None
        text = "".join(self._arguments)
        if self._validate:
            try:
                self._by_name[started.name].validate(text)
            except ConstrainError as refused:
                error = refused
        self._out.append(
            CallFinished(started.index, started.id, started.name, reader.arguments, text, error)
        )
        self._wrote = False

    def _fail(self, reason: str) -> bool:
        """The call is none: report it with its text, and go on with what follows as prose."""
        started = self._started
        self._out.append(CallFailed(started.index, started.name, reason, "".join(self._raw)))
        self._state = self._in_text
        self._wrote = True
        return bool(self._buffer)

    def _between_calls(self, final: bool) -> bool:
        """After a call: another one, the end of the section, or prose again."""
        start = skip_space(self._buffer, 0)
        if self.format.parallel:
            found, template = self._openings.next_call(self._buffer, start, final)
            if found.status is Status.YES:
                raw = self._consume(found.end)
                self._begin_call(found, template, raw[start:])
                return True
            if found.status is Status.MORE and (self._buffer[start:] or not final):
                return False
        ending = strip_spaces(self.format.ending())
        found = match(ending, self._buffer, start, self._names, final)
        if found.status is Status.MORE:
            return False
        if found.status is Status.YES:
            self._consume(found.end)
        self._drop_space = found.status is Status.YES
        self._state = self._in_text
        return True


def _filled_closing(atoms: tuple[Atom, ...], holes: dict[str, str]) -> tuple[Atom, ...]:
    """The closing atoms, what the opening said already as text."""
    return tuple(
        Literal(holes[atom.kind]) if isinstance(atom, Hole) and atom.kind in holes else atom
        for atom in atoms
    )


def parse_message(
    format: ToolFormat | str,
    tools: object,
    text: str | bytes | Iterable[str | bytes],
    *,
    prompt: str = "",
    validate: bool = True,
    answer: bool = False,
) -> Message:
    """The message that a text, or chunks of one, say.  See `ToolCallParser`."""
    parser = ToolCallParser(format, tools, prompt=prompt, validate=validate, answer=answer)
    for chunk in [text] if isinstance(text, (str, bytes)) else text:
        parser.feed(chunk)
    parser.finish()
    return parser.message
