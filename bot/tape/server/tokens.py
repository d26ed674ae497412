"""Keep the tape server's access tokens, with their scopes and the tapes that they may access, existing or not."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from bot.core.errors import HttpError, SettingsError
from bot.core.files import private_directory, replace_file
from bot.core.http.tokens import find_by_digest, new_token, token_digest
from bot.core.i18n import _
from bot.tape.http_protocol import TokenScope

logger = logging.getLogger(__name__)

TOKEN_FILE = "tape-tokens.json"  # noqa: S105 (a file name)
"""Name of the file in the home folder."""

SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
"""Each scope includes those before it."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """A token as it is in the file: the operator's name for it, its highest scope, and its SHA-256.

    ``tapes`` are patterns of session keys, with ``*``, ``?`` and ``[...]`` as in file names.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    scope: TokenScope
    tapes: Annotated[tuple[str, ...], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    def can_see(self, tape: str) -> bool:
        """Return whether the token may access a tape."""
        return any(fnmatchcase(tape, pattern) for pattern in self.tapes)

    def require(self, scope: TokenScope) -> None:
        """Raise ``HttpError`` unless the token has a scope."""
        if SCOPES.index(scope) > SCOPES.index(self.scope):
            raise HttpError(
                403, "scope", f"this needs a token of scope {scope}; {self.name} has {self.scope}"
            )

    def require_tape(self, tape: str) -> None:
        """Raise ``HttpError`` unless the token may access a tape."""
        if not self.can_see(tape):
            raise HttpError(
                403, "tape", f"the token {self.name} does not allow tape {tape}, if there is one"
            )


_GRANTS = TypeAdapter(tuple[TokenGrant, ...])


class TokenStore:
    """The file of access tokens; a change takes effect with the next request."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told = ""

    def find(self, token: str) -> TokenGrant | None:
        """Return the grant of a token; None if it is unknown. A damaged or missing file grants nothing."""
        return find_by_digest(((one.sha256, one) for one in self._valid()), token_digest(token))

    def is_current(self, grant: TokenGrant) -> bool:
        """Return whether a grant is still in the file, unchanged."""
        return grant in self._valid()

    def _valid(self) -> tuple[TokenGrant, ...]:
        """Return all grants; a file that cannot be read is told once, not for each request."""
        try:
            grants, told = self.list(), ""
        except SettingsError as error:
            grants, told = (), str(error)
        if told and told != self._told:
            logger.error("no token is valid any more: %s", told)
        self._told = told
        return grants

    def list(self) -> tuple[TokenGrant, ...]:
        """Return all grants; raise ``SettingsError`` if the file cannot be read."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise SettingsError(
                _("{path} cannot be read: {strerror}", path=self._path, strerror=error.strerror)
            ) from error
        try:
            return _GRANTS.validate_json(raw)
        except ValidationError as error:
            where = error.errors(include_input=False, include_url=False)[0]
            raise SettingsError(
                _(
                    "{path} is not a valid token file ({where} at {list}); repair it, or remove it and "
                    "create new tokens",
                    path=self._path,
                    where=where["msg"],
                    list=list(where["loc"]),
                )
            ) from None

    def add(self, name: str, scope: TokenScope, tapes: Sequence[str]) -> str:
        """Create a token and return it; it is stored nowhere. Raises ``SettingsError``."""
        grants = self.list()
        if any(grant.name == name for grant in grants):
            raise SettingsError(
                _("there is already a token {name}; remove it, or choose another name", name=name)
            )
        token = new_token("tape_")
        self._write([*grants, TokenGrant(name, scope, tuple(tapes), token_digest(token))])
        return token

    def remove(self, name: str) -> bool:
        """Revoke a token; return whether it existed. Raises ``SettingsError``."""
        grants = self.list()
        kept = [grant for grant in grants if grant.name != name]
        if len(kept) < len(grants):
            self._write(kept)
        return len(kept) < len(grants)

    def _write(self, grants: Sequence[TokenGrant]) -> None:
        text = json.dumps([asdict(grant) for grant in grants], ensure_ascii=False, indent=1)
        try:
            private_directory(self._path.parent)
            replace_file(self._path, text.encode() + b"\n")
        except (OSError, UnicodeEncodeError) as error:
            raise SettingsError(
                _("{path} cannot be written: {error}", path=self._path, error=error)
            ) from error
