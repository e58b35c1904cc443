"""An agent that uses the tools of an MCP server over standard input and output.

    python examples/agent_mcp.py "Remember to buy bread, then read me my groceries."
    python examples/agent_mcp.py "..." -- npx some-mcp-server       (any other server)

The server's tool list becomes the constraint: whatever the model writes is a call that the server's
own schemas allow.  With the notes server of this folder the order of the calls is given, since the
default model is too small to plan; with another server the model chooses.  Needs the package ``mcp``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrain.tools.agent import AgentResult, ChatModel, Execution, bind_tools, run_agent

NOTES_SERVER = [sys.executable, str(Path(__file__).with_name("mcp_notes.py"))]


def choose(turn: int) -> str:
    """The order of the calls of the notes server."""
    return ["add_note", "read_notes"][turn] if turn < 2 else "none"


def show(execution: Execution) -> None:
    """A line for each call."""
    call = execution.call
    print(f"{call.name}({call.arguments_text}) -> {execution.content}", flush=True)


async def run(model: ChatModel, question: str, command: Sequence[str] = ()) -> AgentResult:
    """The whole conversation about one question."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    program, *arguments = command or NOTES_SERVER
    parameters = StdioServerParameters(command=program, args=arguments)
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        loop = asyncio.get_running_loop()

        def call(name: str, values: dict[str, Any]) -> Any:
            """From the agent's thread into the session's."""
            asked = asyncio.run_coroutine_threadsafe(session.call_tool(name, values), loop)
            return asked.result(timeout=60)

        tools = bind_tools(await session.list_tools(), call)
        return await asyncio.to_thread(
            run_agent,
            model,
            tools,
            question,
            tool_choice="auto" if command else choose,
            max_turns=8 if command else 3,
            parallel=False,
            on_execution=show,
        )


def main() -> None:
    from constrain.models import load_model
    from constrain.tools.chat import TransformersChat

    given, _, command = " ".join(sys.argv[1:]).partition(" -- ")
    question = given or "Remember to buy bread, then read me my groceries."
    model = TransformersChat(*load_model(), format="hermes", max_tokens=96, temperature=0.0)
    print(asyncio.run(run(model, question, command.split())).answer)


if __name__ == "__main__":
    main()
