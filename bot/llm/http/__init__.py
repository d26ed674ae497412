"""Model servers, called over HTTP without a library for each provider."""

__all__ = ["model", "providers"]
