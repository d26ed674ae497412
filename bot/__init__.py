"""tapebot: an assistant whose memory is a fold over append-only tapes."""
