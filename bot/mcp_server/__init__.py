"""An MCP server: a person's memory for other programs.

A program searches and reads what its token allows, and proposes facts, which wait for the person.
"""

__all__ = [
    "client",
    "endpoint",
    "memory",
    "proposals",
    "stdio",
    "tools",
]
