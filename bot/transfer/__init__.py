"""Export, import, back up, restore, verify and move tapes and homes, and write memory to files."""

__all__ = [
    "backup",
    "backup_key",
    "database_home",
    "erased_list",
    "exported_tape",
    "file_home",
    "home_data",
    "home_snapshot",
    "import_writer",
    "imported",
    "memory_export",
    "memory_files",
    "migration",
    "tape_verification",
    "whole_files",
]
