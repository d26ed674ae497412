"""Shipped for tests: fakes that speak the real protocols at the edge of the world."""
