"""An MCP server behind the SDK's own authorization server; a script: ``mcp_login_server.py FOLDER``.

Both are on one port, unless ``FOLDER/rules.json`` says otherwise. It has the rules, read at each request:
``refuse`` (no login, and no renewal), ``issuer`` (the authorization server
that is named instead), ``authorize`` (where people are sent instead),
``iss`` (what the browser is told to come from).
``FOLDER/asked.txt`` gets a line for each request of an authorization server.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    ProviderTokenVerifier,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_server import FOLDER, SERVER
from starlette.responses import JSONResponse

RULES = FOLDER / "rules.json"


def rule(name: str, otherwise: Any = None) -> Any:
    return json.loads(RULES.read_text()).get(name, otherwise) if RULES.exists() else otherwise


class Provider:
    """Clients, codes and tokens in memory; whoever is led to it is logged in at once."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._refreshes: dict[str, RefreshToken] = {}
        self._tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        if rule("refuse"):
            raise AuthorizeError("access_denied", "not you")
        code = AuthorizationCode(
            code=f"code-{secrets.token_hex(20)}",
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self._codes[code.code] = code
        told = {"code": code.code, "state": params.state, "iss": rule("iss", self._base)}
        return construct_redirect_uri(str(params.redirect_uri), **told)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._give(client.client_id, authorization_code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self._refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if rule("refuse"):
            raise TokenError("invalid_grant")
        # As strict servers do: a refresh token is used once.
        del self._refreshes[refresh_token.token]
        return self._give(client.client_id, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self._tokens.get(token)
        if found is None or (found.expires_at or 0) < time.time():
            return None
        return found

    async def revoke_token(self, token: Any) -> None:
        self._tokens.pop(token.token, None)

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    def _give(self, client: str, scopes: list[str]) -> OAuthToken:
        access, refresh = f"acc-{secrets.token_hex(20)}", f"ref-{secrets.token_hex(20)}"
        self._tokens[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=int(time.time()) + 3600
        )
        self._refreshes[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes)
        with (FOLDER / "tokens.txt").open("a") as file:
            file.write(f"{access}\n{refresh}\n")
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)


def noting(app: Any) -> Any:
    """Note the requests, and name another authorization server if the rules say so."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] != "/mcp":
            with (FOLDER / "asked.txt").open("a") as file:
                file.write(f"{scope['method']} {scope['path']}\n")
        other = rule("issuer")
        if other and scope["type"] == "http" and "oauth-protected-resource" in scope["path"]:
            host = dict(scope["headers"])[b"host"].decode()
            told = {"resource": f"http://{host}/mcp", "authorization_servers": [other]}
            await JSONResponse(told)(scope, receive, send)
            return
        elsewhere = rule("authorize")
        if elsewhere and scope["type"] == "http" and "oauth-authorization-server" in scope["path"]:
            base = f"http://{dict(scope['headers'])[b'host'].decode()}"
            addresses = {f"{one}_endpoint": f"{base}/{one}" for one in ("token", "registration")}
            addresses["registration_endpoint"] = f"{base}/register"
            told = {"issuer": base, **addresses, "authorization_endpoint": elsewhere}
            await JSONResponse({**told, "response_types_supported": ["code"]})(scope, receive, send)
            return
        await app(scope, receive, send)

    return wrapped


async def main() -> None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    listener.listen()
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider = Provider(base)
    app = SERVER.streamable_http_app(
        token_verifier=ProviderTokenVerifier(provider),
        auth=AuthSettings(
            issuer_url=base,
            resource_server_url=f"{base}/mcp",
            validate_token_resource=False,
            client_registration_options=ClientRegistrationOptions(enabled=True),
        ),
        auth_server_provider=provider,
    )
    (FOLDER / "port").write_text(str(listener.getsockname()[1]))
    config = uvicorn.Config(noting(app), log_level="critical")
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    Path(FOLDER).mkdir(exist_ok=True)
    anyio.run(main)
