"""The embedding port: what recall by meaning requires of an embedding model.

Adapters are named after what they wrap. They map provider errors to ``bot.core.errors`` and never
retry: ``bot.memory.session.vector_index`` does, and recall goes by words in the meantime. numpy is loaded
with the adapters.
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
    """An embedding model."""

    @property
    def name(self) -> str:
        """The name under which vectors are stored: ``local``, or litellm's name."""
        ...

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None before the first one."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector of length 1 for each text, in their order.

        Raises:
            TransientModelError: A retry may succeed.
            ModelAuthError: The API key is missing or refused.
            ModelRejected: The provider does not take this request or this model.
            ModelUnavailable: A package or file is missing.
            ModelError: The provider sent no valid vectors.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and memory."""
        ...
