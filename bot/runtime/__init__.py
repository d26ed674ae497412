"""The running program: session workers, settings, the composition root and the control socket."""

__all__ = [
    "app",
    "control_socket",
    "models",
    "sessions",
    "settings",
    "setup",
]
