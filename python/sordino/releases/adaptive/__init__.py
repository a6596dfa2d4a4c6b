"""What mechanisms that look have published."""
