"""What goes where a person wants something forgotten: found, told, and replaced by tombstones."""
