"""An endless HTTP response, as a broken or hostile server sends it."""

from __future__ import annotations

import zlib
from contextlib import suppress

from aiohttp import web

_BLOCK = b" " * 1_000_000
_MOST = 1_000
_GZIP = 31


async def endless(request: web.Request, *, packed: bool) -> web.StreamResponse:
    """Send spaces until the client disconnects, at most a gigabyte."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    packer = zlib.compressobj(wbits=_GZIP)
    with suppress(ConnectionError):
        await response.prepare(request)
        for _ in range(_MOST):
            data = packer.compress(_BLOCK) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else _BLOCK
            await response.write(data)
    return response
