"""An agent that calls Python functions until it can answer.

    python examples/agent.py "How warm is it in Oslo, in degrees Fahrenheit?"

The functions' signatures and docstrings are the tools; what the model writes is constrained to valid
calls of them, so that each call can be executed as it is.  The default model is far too small to
plan, so the order of the calls is given here (`choose`); a larger one needs no more than
``tool_choice="auto"``.
"""

from __future__ import annotations

import sys
from typing import Literal

from constrain.tools.agent import AgentResult, ChatModel, Execution, run_agent

City = Literal["Oslo", "Rome", "Lima", "Kyoto"]
CELSIUS: dict[str, float] = {"Oslo": -3.0, "Rome": 14.5, "Lima": 21.0, "Kyoto": 9.0}
READINGS: list[float] = []


def read_thermometer(city: City) -> float:
    """The temperature in a city.

    Args:
        city: the city.
    """
    READINGS.append(CELSIUS[city])
    return CELSIUS[city]


def convert_last_reading(unit: Literal["fahrenheit", "kelvin"]) -> str:
    """Convert the last temperature that was read into another unit.

    Args:
        unit: the unit.
    """
    if not READINGS:
        raise LookupError("no temperature was read yet: call read_thermometer first")
    value = READINGS[-1]
    return f"{value * 9 / 5 + 32:g} F" if unit == "fahrenheit" else f"{value + 273.15:g} K"


TOOLS = [read_thermometer, convert_last_reading]


def choose(turn: int) -> str:
    """What the model may do in each turn: one tool, then the other, then answer."""
    return ["read_thermometer", "convert_last_reading"][turn] if turn < 2 else "none"


def show(execution: Execution) -> None:
    """A line for each call."""
    call = execution.call
    print(f"{call.name}({call.arguments_text}) -> {execution.content}", flush=True)


def run(model: ChatModel, question: str) -> AgentResult:
    """The whole conversation about one question."""
    READINGS.clear()
    return run_agent(
        model,
        TOOLS,
        [
            {"role": "system", "content": "You answer with the help of tools."},
            {"role": "user", "content": question},
        ],
        tool_choice=choose,
        parallel=False,
        max_turns=3,
        on_execution=show,
    )


def main() -> None:
    from constrain.models import load_model
    from constrain.tools.chat import TransformersChat

    question = " ".join(sys.argv[1:]) or "How warm is it in Oslo, in degrees Fahrenheit?"
    model = TransformersChat(*load_model(), format="hermes", max_tokens=96, temperature=0.0)
    print(run(model, question).answer)


if __name__ == "__main__":
    main()
