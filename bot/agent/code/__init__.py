"""Run Python code in a sandbox: WebAssembly, in a process of its own, without network."""

__all__ = [
    "sandbox",
]
