"""The agent loop: run a turn from message to answer, with commands, tools and consolidation."""

__all__ = [
    "agent",
    "approvals",
    "builtin_tools",
    "commands",
    "consolidation",
    "context",
    "request_builder",
    "request_reconstruction",
    "schedules",
    "spending",
    "subtask",
    "tools",
    "turn",
    "turn_history",
    "views",
    "vision",
    "web",
    "workspace_files",
]
