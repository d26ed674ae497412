"""What the program says about itself to those who run it."""
