"""The embedding port: what recall by meaning asks of an embedding model.

Adapters are named after what they wrap. They map foreign errors to ``bot.core.errors`` and never retry:
``vectors.py`` does, and recall goes without them in the meantime. numpy is loaded with the adapters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    """A direction: float32, of length 1, as many numbers as the model has dimensions."""
else:
    Vector = Any


class Embedder(Protocol):
    """Any embedding model."""

    @property
    def name(self) -> str:
        """The name that vectors of one model are known by: ``local``, or litellm's."""
        ...

    @property
    def dimensions(self) -> int | None:
        """Numbers in a vector; None before the first."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector of length 1 for each text, in their order.

        Raises:
            TransientModelError: Another try may succeed.
            ModelAuthError: The key is missing or refused.
            ModelRejected: The provider does not take this request or this model.
            ModelUnavailable: A package or file is missing.
            ModelError: The provider sent something else than vectors.
        """
        ...

    async def aclose(self) -> None:
        """Free what it holds."""
        ...
