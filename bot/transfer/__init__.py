"""Export, import, restore, verify and migrate tapes, and write memory to files."""

__all__ = [
    "assistant_import",
    "backup",
    "backup_encryption",
    "database_storage",
    "erased_list",
    "export",
    "file_storage",
    "home_snapshot",
    "import_writer",
    "imported",
    "memory_archive",
    "migration",
    "nanobot",
    "restore",
    "session_memory",
    "storage",
    "tape_verification",
]
