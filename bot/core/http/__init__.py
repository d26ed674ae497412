"""What all HTTP servers of the program share: serving, errors as JSON, limits, tokens."""

__all__ = [
    "errors",
    "limits",
    "server",
    "sockets",
    "tokens",
]
