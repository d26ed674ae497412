"""Link and unlink identities, and move a person's facts and compartments between scopes."""

__all__ = [
    "identity_linker",
    "scope_registry",
]
