"""What a server makes of the reports of clients."""
