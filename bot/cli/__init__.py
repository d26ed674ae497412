"""The commands of ``tapebot``, one module each."""
