"""Settings of an MCP server."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, StringConstraints
from pydantic.dataclasses import dataclass

from bot.core.addresses import web_address
from bot.core.i18n import _
from bot.core.patterns import LazyPattern

_NAME = LazyPattern(r"[a-z][a-z0-9-]{0,19}")
_HEADER = StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")
_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)
_RESERVED = frozenset({"allow", "login", "page"})


@dataclass(frozen=True, slots=True, config=_CONFIG)
class McpOAuth:
    """A login at a server: of a program (OAuth 2.1 client credentials), or of an owner in a browser.

    Attributes:
        issuer: Address of the authorization server; secrets go nowhere else.
        client_id: Id of the client. A login in a browser without one registers itself.
        client_secret: Its secret; in a browser not needed.
        scope: Scopes to ask for, separated by spaces; in a browser the server says which.
        browser: Whether an owner logs in, with `/mcp login`.
    """

    issuer: Annotated[str, AfterValidator(web_address)]
    client_id: str | None = None
    client_secret: SecretStr | None = None
    scope: str | None = None
    browser: bool = False

    def __post_init__(self) -> None:
        """Check that it is one kind of login."""
        if not self.browser and (self.client_id is None or self.client_secret is None):
            raise ValueError(_("client_id and client_secret, or browser = true"))
        if self.browser and self.scope is not None:
            raise ValueError(_("scope only without browser"))


@dataclass(frozen=True, slots=True, config=_CONFIG)
class McpServer:
    """An MCP server: a program that is started, or an address.

    Attributes:
        command: The program, for a server that speaks over its standard input and output.
        args: Its arguments.
        env: Its environment, besides ``HOME``, ``PATH`` and the like; values are secrets.
        url: Address of a server that speaks streamable HTTP.
        headers: Headers of each request to it; values are secrets.
        oauth: Its login. Without one and without headers, an owner logs in if it demands that, at an
            authorization server of its own origin.
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
            raise ValueError(_("either command or url"))
        if self.url is None and (self.headers or self.oauth):
            raise ValueError(_("headers and oauth only with url"))
        if self.command is None and (self.args or self.env):
            raise ValueError(_("args and env only with command"))

    @property
    def has_browser_login(self) -> bool:
        """Whether an owner can log in at it."""
        if self.url is None:
            return False
        return self.oauth.browser if self.oauth is not None else not self.headers


def server_name(name: str) -> str:
    """Return the name of a server.

    Raises:
        ValueError: It has another form. It has no ``_``, so that names of tools are unambiguous.
    """
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise ValueError(
            _(
                "names of servers with at most 20 lower-case letters, digits and hyphens, and not "
                "{sorted}",
                sorted=" or ".join(sorted(_RESERVED)),
            )
        )
    return name
