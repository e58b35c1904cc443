"""A small MCP server for examples/agent_mcp.py: notes that live as long as the server.

It speaks MCP over standard input and output; needs the package ``mcp``.
"""

from __future__ import annotations

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

server = MCPServer("notes")
NOTES: dict[str, list[str]] = {"groceries": ["milk"]}


@server.tool()
def add_note(
    topic: Annotated[str, Field(pattern="^[a-z]{3,12}$", description="One word.")],
    text: Annotated[str, Field(min_length=1, max_length=60, description="What to remember.")],
) -> str:
    """Add a note under a topic."""
    NOTES.setdefault(topic, []).append(text)
    return f"{topic} has {len(NOTES[topic])} notes"


@server.tool()
def read_notes(topic: Annotated[str, Field(pattern="^[a-z]{3,12}$")]) -> str:
    """Read the notes under a topic."""
    if topic not in NOTES:
        raise ToolError(f"there is no topic {topic}; there are: {', '.join(sorted(NOTES))}")
    return "; ".join(NOTES[topic])


if __name__ == "__main__":
    server.run("stdio")
