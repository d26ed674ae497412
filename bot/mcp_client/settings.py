"""Settings of an MCP server."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, StringConstraints
from pydantic.dataclasses import dataclass

from bot.core.addresses import web_address

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_HEADER = StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")
_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)
_RESERVED = frozenset({"allow", "page"})


@dataclass(frozen=True, slots=True, config=_CONFIG)
class McpOAuth:
    """A login of a program (OAuth 2.1 client credentials) at a server.

    Attributes:
        issuer: Address of the authorization server; the secret goes nowhere else.
        client_id: Id of the client.
        client_secret: Its secret.
        scope: Scopes to ask for, separated by spaces.
    """

    issuer: Annotated[str, AfterValidator(web_address)]
    client_id: str
    client_secret: SecretStr
    scope: str | None = None


@dataclass(frozen=True, slots=True, config=_CONFIG)
class McpServer:
    """An MCP server: a program that is started, or an address.

    Attributes:
        command: The program, for a server that speaks over its standard input and output.
        args: Its arguments.
        env: Its environment, besides ``HOME``, ``PATH`` and the like; values are secrets.
        url: Address of a server that speaks streamable HTTP.
        headers: Headers of each request to it; values are secrets.
        oauth: Its login; None if headers are enough.
        timeout: Seconds that a call may take.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, SecretStr] = field(default_factory=dict)
    url: Annotated[str, AfterValidator(web_address)] | None = None
    headers: dict[Annotated[str, _HEADER], SecretStr] = field(default_factory=dict)
    oauth: McpOAuth | None = None
    timeout: Annotated[float, Field(gt=0, le=600)] = 60.0

    def __post_init__(self) -> None:
        """Check that it is one kind of server."""
        if (self.command is None) == (self.url is None):
            raise ValueError("either command or url")
        if self.url is None and (self.headers or self.oauth):
            raise ValueError("headers and oauth only with url")
        if self.command is None and (self.args or self.env):
            raise ValueError("args and env only with command")


def server_name(name: str) -> str:
    """Return the name of a server.

    Raises:
        ValueError: It has another form. It has no ``_``, so that names of tools are unambiguous.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise ValueError(
            "names of servers with at most 20 lower-case letters, digits and hyphens, and not "
            f"{' or '.join(sorted(_RESERVED))}"
        )
    return name
