"""Control access to the site: logins, API tokens, CSRF and origin checks, and limits."""

__all__ = [
    "control_handlers",
    "login_store",
    "logins",
]
