"""Budgets: count what models cost, and stop at limits."""

__all__ = ["decision", "metered_model", "metered_services", "report", "spending", "texts"]
