"""Language models: the port, adapters for litellm and GGUF files, retries, and embeddings."""

__all__ = [
    "base",
    "call_slots",
    "embeddings",
    "gguf",
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
