"""Language models: the port, clients over HTTP, litellm and GGUF files, retries, embeddings."""

__all__ = [
    "base",
    "call_slots",
    "embeddings",
    "gguf",
    "http",
    "instrumented",
    "litellm",
    "model_checks",
    "openai_format",
    "plugin",
    "presets",
    "prices",
    "profiles",
    "retry",
    "spender",
    "transcription",
]
