"""A file that was fetched from the internet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file from the internet.

    Attributes:
        address: Where it was found, after redirects.
        content_type: The ``Content-Type`` header as sent; may be empty.
        data: The body, unpacked.
    """

    address: str
    content_type: str
    data: bytes
