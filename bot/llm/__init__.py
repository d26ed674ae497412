"""Language models: the port, adapters for litellm and GGUF files, retries, and embeddings."""

__all__ = [
    "base",
    "embeddings",
    "gguf",
    "instrumented",
    "litellm",
    "openai_format",
    "profiles",
    "retry",
    "spender",
    "transcription",
]
