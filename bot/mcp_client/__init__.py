"""A client of MCP servers: their connections, the owner's rights to their tools, and ``/mcp``.

Rule 1: a task owns a server's connection. A server that dies, hangs or sends nonsense is "not there
    now"; its calls end with an error, and nothing else does.
Rule 2: a tool is offered only where the owner allowed it, with the words that the owner allowed.
Rule 3: what a server says is text from outside: bounded, and nobody's instructions.
Rule 4: the library ``mcp`` is imported by ``client_session``, ``transports``, ``oauth`` and
    ``bounded_http`` alone, and only if a server is configured.
"""

__all__ = [
    "McpOAuth",
    "McpServer",
    "client",
    "command",
    "connection",
    "definitions",
    "login_command",
    "login_store",
    "logins",
    "postgres_login_store",
    "rights",
    "settings",
    "wording",
]

from bot.mcp_client.settings import McpOAuth, McpServer
