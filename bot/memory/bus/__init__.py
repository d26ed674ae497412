"""The memory bus: four compartments behind one gate, each a fold over tapes."""
