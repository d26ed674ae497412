"""OAuth at MCP servers on the library ``mcp``; imported only if a server is reached over HTTP.

Rule 1: a login goes to the authorization server that the owner named, or else to one at the MCP
    server's own origin. No server leads requests elsewhere, and the issuer is checked at each step.
Rule 2: a connection renews its login, and never begins one: that is an owner's.
Rule 3: a login is kept with the server's address, and used for no other.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from bot.agent.foreign_text import one_line
from bot.core.addresses import is_loopback
from bot.core.errors import McpUnavailable
from bot.core.i18n import _
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason, reason_of
from bot.mcp_client.bounded_http import Origin, OriginTransport, origin
from bot.mcp_client.logins import PendingLogin, ServerLogin
from bot.mcp_client.settings import McpOAuth, McpServer

_LINK = LazyPattern(r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%\[\]-]{1,4000}")
_RENEW_NOW = 1.0
"""An expiry long past: the next request renews the login."""

_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class StoredLogin(BaseModel):
    """A login as it is kept.

    Attributes:
        url: Address of the MCP server.
        client: What the authorization server knows tapebot by.
        tokens: The tokens.
        expires_at: When the access token expires, in seconds since 1970; None if that is unknown.
        metadata: Addresses of the authorization server.
        resource: What the MCP server says about its authorization.
    """

    url: str
    client: OAuthClientInformationFull
    tokens: OAuthToken
    expires_at: float | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class BrowserLogin(OAuthClientProvider):
    """A login by authorization code with PKCE, kept in a store.

    Args:
        login: The server's login.
        show: Awaited with the link at which a person logs in.
        wait: Returns what the browser came back with.
        anew: Whether to forget the tokens that there are.
    """

    def __init__(
        self,
        login: ServerLogin,
        show: Callable[[str], Awaitable[None]],
        wait: Callable[[], Awaitable[AuthorizationCodeResult]],
        *,
        anew: bool,
    ) -> None:
        assert login.server.url is not None
        host = urlsplit(login.redirect).hostname
        super().__init__(
            login.server.url,
            OAuthClientMetadata(
                redirect_uris=[AnyUrl(login.redirect)],
                client_name="tapebot",
                application_type="native" if is_loopback(host) else "web",
            ),
            _LoginWriter(self, login),
            redirect_handler=self._show,
            callback_handler=wait,
        )
        self._login = login
        self._show_link = show
        self._anew = anew

    def origins(self) -> set[Origin]:
        """Return where requests may go now."""
        settings, found = self._login.server.oauth, {origin(self.context.server_url)}
        if settings is not None:
            found.add(origin(settings.issuer))
            # Whoever trusts an issuer trusts it to name its own addresses.
            for address in _endpoints(self.context.oauth_metadata):
                found.add(origin(address))
        return found

    async def _initialize(self) -> None:
        """Load the login with its expiry and the server's addresses, which the library forgets."""
        stored, context = await _read(self._login), self.context
        if stored is not None:
            context.client_info = stored.client
        if stored is not None and not self._anew:
            context.current_tokens = stored.tokens
            context.token_expiry_time = stored.expires_at
            context.oauth_metadata = stored.metadata
            context.protected_resource_metadata = stored.resource
            if stored.metadata is not None:
                context.auth_server_url = str(stored.metadata.issuer)
        context.client_info = self._configured_client() or context.client_info
        if self._anew and not _takes(context.client_info, self._login.redirect):
            context.client_info = None
        self._initialized = True

    def _configured_client(self) -> OAuthClientInformationFull | None:
        settings = self._login.server.oauth
        if settings is None or settings.client_id is None:
            return None
        secret = settings.client_secret
        return OAuthClientInformationFull(
            client_id=settings.client_id,
            client_secret=None if secret is None else secret.get_secret_value(),
            token_endpoint_auth_method="none" if secret is None else "client_secret_basic",
            redirect_uris=[AnyUrl(self._login.redirect)],
            issuer=settings.issuer,
        )

    async def _refresh_token(self) -> httpx2.Request:
        # Another process may have renewed the login: its refresh token counts now.
        await self._initialize()
        return await super()._refresh_token()

    def _select_authorization_server(self, advertised: list[str]) -> str:
        for one in advertised:
            if self._trusts(one):
                return one
        raise _elsewhere(advertised[0], advertised[0])

    def _trusts(self, issuer: str) -> bool:
        settings = self._login.server.oauth
        if settings is not None:
            return issuers_match(issuer, settings.issuer)
        return origin(issuer) == origin(self.context.server_url)

    async def _show(self, link: str) -> None:
        """Hand on a link, if it leads where the owner may be sent to."""
        metadata, settings = self.context.oauth_metadata, self._login.server.oauth
        if metadata is None and settings is not None:
            raise McpUnavailable(
                _("nothing is known of the authorization server {issuer}", issuer=settings.issuer)
            )
        if metadata is not None and not self._trusts(str(metadata.issuer)):
            raise McpUnavailable(_("another authorization server answers than the one expected"))
        if not _LINK.fullmatch(link):
            raise McpUnavailable(_("the address of its login is malformed"))
        if settings is None and origin(link) != origin(self.context.server_url):
            # Whoever did not name an issuer expects to be sent to the server that they configured.
            parts = urlsplit(self.context.server_url)
            raise _elsewhere(link.partition("?")[0], f"{parts.scheme}://{parts.netloc}")
        await self._show_link(link)


class _LoginWriter:
    """Keeps what a login got. Implements the library's ``TokenStorage``."""

    def __init__(self, provider: BrowserLogin, login: ServerLogin) -> None:
        self._provider = provider
        self._login = login

    async def get_tokens(self) -> OAuthToken | None:
        """Return nothing: the provider loads the whole login itself."""
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return nothing, as above."""
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: it is written with the tokens, so that a login is whole or the one before."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Write the login."""
        context = self._provider.context
        assert context.client_info is not None
        await _write(
            self._login,
            StoredLogin(
                url=context.server_url,
                client=context.client_info,
                tokens=tokens,
                expires_at=context.token_expiry_time,
                metadata=context.oauth_metadata,
                resource=context.protected_resource_metadata,
            ),
        )


async def server_auth(
    login: ServerLogin, ended: Callable[[str], None]
) -> tuple[httpx2.Auth, Callable[[], set[Origin]]]:
    """Return what authenticates a connection's requests, and where these may go."""
    if await _read(login) is None:
        here = origin(str(login.server.url))
        return _NoLogin(login.name, ended), lambda: {here}

    async def show(_: str) -> None:
        stored = await _read(login)
        # What could not be renewed is not in the context any more.
        renewable = provider.context.can_refresh_token()
        if stored is None or not renewable or stored.expires_at == _RENEW_NOW:
            raise _needs_login(login.name, ended)
        # The server refused a token that should still hold: the next connection renews it.
        await _write(login, stored.model_copy(update={"expires_at": _RENEW_NOW}))
        renewed = Reason("mcp_login_renewed")
        ended(renewed)
        raise McpUnavailable(renewed)

    async def wait() -> AuthorizationCodeResult:
        raise _needs_login(login.name, ended)

    provider = BrowserLogin(login, show, wait, anew=False)
    return provider, provider.origins


def program_auth(url: str, login: McpOAuth) -> httpx2.Auth:
    """Return what authenticates a program by client credentials."""
    assert login.client_id is not None
    assert login.client_secret is not None
    return ClientCredentialsOAuthProvider(
        server_url=url,
        storage=_TokensInMemory(),
        client_id=login.client_id,
        client_secret=login.client_secret.get_secret_value(),
        scope=login.scope,
        issuer=login.issuer,
    )


async def log_in(pending: PendingLogin) -> None:
    """Carry out a login, from the link for a person to the tokens in the store.

    Raises:
        McpUnavailable: It failed; the text says why.
        Exception: It failed; ``explained_login`` says how.
    """
    shown = False

    async def show(link: str) -> None:
        nonlocal shown
        shown = True
        pending.show(link)

    async def wait() -> AuthorizationCodeResult:
        answer = await pending.wait_for_answer()
        if "error" in answer:
            why = one_line(answer["error"], 60)
            raise McpUnavailable(_("the authorization server refused it ({why})", why=why))
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss")
        )

    provider = BrowserLogin(pending.login, show, wait, anew=True)
    async with _client(pending.login.server, provider) as client:
        headers = {"Accept": "application/json, text/event-stream"}  # for programs
        url = provider.context.server_url
        # Its answer does not matter: asked without a token, the server demands a login.
        async with client.stream("POST", url, json=_PROBE, headers=headers):
            pass
    if not shown:
        raise McpUnavailable(_("it demands no login"))


@asynccontextmanager
async def _client(server: McpServer, provider: BrowserLogin) -> AsyncGenerator[httpx2.AsyncClient]:
    given = {name: value.get_secret_value() for name, value in server.headers.items()}
    async with httpx2.AsyncClient(
        headers={**given, "Accept-Encoding": "identity"},
        auth=provider,
        timeout=httpx2.Timeout(30),
        transport=OriginTransport(provider.origins),
    ) as client:
        yield client


def explained_login(error: BaseException) -> str:
    """Return why a login failed, for people; never what an authorization server's answer holds."""
    if isinstance(error, McpUnavailable):
        return f"{reason_of(error)}"
    if isinstance(error, httpx2.HTTPError | httpx2.StreamError):
        why = one_line(str(error), 200) or type(error).__name__
        return _("it cannot be reached ({error})", error=why)
    if isinstance(error, OAuthTokenError):
        return _("the authorization server gives no token")
    if isinstance(error, OAuthFlowError):
        # Its texts may hold codes and states.
        what = str(error).partition(":")[0].partition("(")[0]
        return _("the login is not as it should be ({error})", error=one_line(what, 100))
    return _("it answers with nonsense ({error})", error=type(error).__name__)


def _elsewhere(address: str, issuer: str) -> McpUnavailable:
    return McpUnavailable(
        _(
            "it wants a login at {address}. If you trust that address, say so in tapebot.toml: {line}",
            address=one_line(address, 200),
            # for the parser
            line=f'oauth = {{browser = true, issuer = "{one_line(issuer, 200)}"}}',
        )
    )


def _needs_login(name: str, ended: Callable[[str], None]) -> McpUnavailable:
    why = Reason("mcp_login_needed", server=name)
    ended(why)
    return McpUnavailable(why)


class _NoLogin(httpx2.Auth):
    """Asks without a login, and says so if the server demands one."""

    def __init__(self, name: str, ended: Callable[[str], None]) -> None:
        self._name = name
        self._ended = ended

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        response = yield request
        if response.status_code == httpx2.codes.UNAUTHORIZED:
            raise _needs_login(self._name, self._ended)


class _TokensInMemory:
    """Keeps a program's tokens while the connection lasts."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        del client_info


async def _read(login: ServerLogin) -> StoredLogin | None:
    """Return a server's login; None if there is none, or if it is another address's."""
    text = await login.read()
    if text is None:
        return None
    try:
        stored = StoredLogin.model_validate_json(text)
    except ValidationError:
        # The cause holds the tokens.
        raise McpUnavailable(Reason("mcp_login_damaged")) from None
    return stored if stored.url == login.server.url else None


async def _write(login: ServerLogin, stored: StoredLogin) -> None:
    await login.write(json.dumps(stored.model_dump(mode="json", exclude_none=True)))


def _takes(client: OAuthClientInformationFull | None, redirect: str) -> bool:
    """Say whether a client was registered with an address to come back to."""
    return client is not None and AnyUrl(redirect) in (client.redirect_uris or ())


def _endpoints(metadata: OAuthMetadata | None) -> Iterator[str]:
    if metadata is not None:
        yield str(metadata.token_endpoint)
        if metadata.registration_endpoint is not None:
            yield str(metadata.registration_endpoint)
