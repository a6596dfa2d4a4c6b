"""What clients are asked who trust nobody."""
