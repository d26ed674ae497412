"""The commands of ``tapebot``, a file each."""
