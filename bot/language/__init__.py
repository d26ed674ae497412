"""What erasure still reads of orders to forget. Pure."""

__all__ = ["forget_requests", "sentences"]
