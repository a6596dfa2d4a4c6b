"""What is published while it arrives."""
