"""What was published at once, and what follows from it."""
