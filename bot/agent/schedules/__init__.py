"""Schedules: setting and changing them, what is due next, and what an occurrence does."""

__all__ = ["due_tape", "firing", "history", "session_schedules", "task_turn", "wording"]
