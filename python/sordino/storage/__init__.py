"""Where ledgers and steps are kept."""
