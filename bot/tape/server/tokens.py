"""Manage the tape server's access tokens, their scopes and the tapes that they may access.

Rule 1: a token may access the tapes whose names match one of its patterns, existing or not.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from bot.core.errors import SettingsError
from bot.core.files import private_directory, replace_file
from bot.core.http.tokens import find_by_digest, new_token, token_digest
from bot.core.i18n import _

logger = logging.getLogger(__name__)

TOKEN_FILE = "tape-tokens.json"  # noqa: S105 (a file name)
"""Name of the file in the home folder."""

TokenScope = Literal["read", "append", "admin"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
"""Each scope includes those before it."""

_PREFIX = "tape_"


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The permissions of a token, as they are in the file.

    Attributes:
        name: The operator's name for the token.
        scope: The highest scope that it allows.
        tapes: Patterns of session keys, with ``*``, ``?`` and ``[...]`` as in file names.
        sha256: SHA-256 of the token in hexadecimal.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    scope: TokenScope
    tapes: Annotated[tuple[str, ...], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    def allows(self, scope: TokenScope) -> bool:
        """Return whether the token has a scope."""
        return SCOPES.index(scope) <= SCOPES.index(self.scope)

    def can_see(self, tape: str) -> bool:
        """Return whether the token may access a tape."""
        return any(fnmatchcase(tape, pattern) for pattern in self.tapes)

    @property
    def sees_all(self) -> bool:
        """Whether the token may access every tape."""
        return "*" in self.tapes


_GRANTS = TypeAdapter(tuple[TokenGrant, ...])


class TokenStore:
    """The file of access tokens; a change takes effect with the next request.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._grants: tuple[TokenGrant, ...] = ()

    def find(self, token: str) -> TokenGrant | None:
        """Return the grant of a token; None if it is unknown.

        A damaged or missing file grants nothing.
        """
        self._look()
        return find_by_digest(
            ((token_grant.sha256, token_grant) for token_grant in self._grants), token_digest(token)
        )

    def is_current(self, grant: TokenGrant) -> bool:
        """Return whether a grant is still in the file, unchanged."""
        self._look()
        return grant in self._grants

    def list(self) -> tuple[TokenGrant, ...]:
        """Return all grants.

        Raises:
            SettingsError: The file cannot be read.
        """
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
        """Create a token and return it; it is stored nowhere.

        Raises:
            SettingsError: The name is taken, or the file cannot be read or written.
        """
        grants = self.list()
        if any(grant.name == name for grant in grants):
            raise SettingsError(
                _("there is already a token {name}; remove it, or choose another name", name=name)
            )
        token = new_token(_PREFIX)
        self._write([*grants, TokenGrant(name, scope, tuple(tapes), token_digest(token))])
        return token

    def remove(self, name: str) -> bool:
        """Revoke a token; return whether it existed.

        Raises:
            SettingsError: The file cannot be read or written.
        """
        grants = self.list()
        token_grants = [grant for grant in grants if grant.name != name]
        if len(token_grants) == len(grants):
            return False
        self._write(token_grants)
        return True

    def _write(self, grants: Sequence[TokenGrant]) -> None:
        text = json.dumps([asdict(grant) for grant in grants], ensure_ascii=False, indent=1)
        try:
            private_directory(self._path.parent)
            replace_file(self._path, text.encode() + b"\n")
        except (OSError, UnicodeEncodeError) as error:
            raise SettingsError(
                _("{path} cannot be written: {error}", path=self._path, error=error)
            ) from error

    def _look(self) -> None:
        """Read the file again if it has changed."""
        try:
            found = self._path.stat()
            now = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            now = (0, 0, 0)
        if now == self._seen:
            return
        self._seen = now
        try:
            self._grants = self.list()
        except SettingsError as error:
            self._grants = ()
            logger.error("no token is valid any more: %s", error)  # noqa: TRY400 (it says it all)
