"""The memory bus: four compartments behind one write gate, each a fold over tapes."""
