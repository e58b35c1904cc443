"""Call a Python function with arguments that a model writes.

    python examples/tool_call.py "Book a table for four at Trattoria Verde tomorrow evening"

The arguments' schema comes from the function's signature, the model's text is constrained to it,
and pydantic turns the text into Python values, so the call cannot fail on its arguments' types.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_type_hints

import pydantic

import constrain


def book_table(
    restaurant: Annotated[str, pydantic.Field(min_length=2, max_length=40)],
    guests: Annotated[int, pydantic.Field(ge=1, le=20)],
    day: Literal["today", "tomorrow", "friday", "saturday", "sunday"],
    time: Annotated[str, pydantic.Field(pattern=r"^(1[1-9]|2[0-2]):(00|30)$")],
    outdoors: bool = False,
) -> str:
    """Book a table at a restaurant."""
    place = "outdoors" if outdoors else "indoors"
    return f"{restaurant}: a table for {guests} {place}, {day} at {time}"


def arguments_model(function: Callable[..., Any]) -> type[pydantic.BaseModel]:
    """A pydantic model with a field for each parameter of `function`."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    return pydantic.create_model(function.__name__, **fields)


def call(function: Callable[..., Any], arguments: str) -> Any:
    """Call `function` with the arguments in a JSON text, validated against its signature."""
    values = arguments_model(function).model_validate_json(arguments)
    return function(**{name: getattr(values, name) for name in type(values).model_fields})


def ask(request: str, function: Callable[..., Any], max_tokens: int = 120) -> str:
    """The arguments for `function` that the model finds in `request`, as a JSON text."""
    from constrain.decoding import generate
    from constrain.models import load_model

    model, tokenizer = load_model()
    compiled = constrain.compile(
        constrain.JsonSchema(arguments_model(function)),
        constrain.Vocabulary.from_tokenizer(tokenizer),
    )
    names = ", ".join(inspect.signature(function).parameters)
    messages = [
        {
            "role": "system",
            "content": f"{function.__doc__} Answer with a JSON object with the fields {names}.",
        },
        {"role": "user", "content": request},
    ]
    result = generate(model, tokenizer, messages, compiled, max_tokens=max_tokens, temperature=0.0)
    if result.finish_reason != "stop":
        raise RuntimeError(f"the arguments were cut off after {max_tokens} tokens")
    return result.text


def main() -> None:
    default = "Book a table for four at Trattoria Verde tomorrow evening, outdoors please."
    request = " ".join(sys.argv[1:]) or default
    arguments = ask(request, book_table)
    print(f"book_table({arguments})")
    print(call(book_table, arguments))


if __name__ == "__main__":
    main()
