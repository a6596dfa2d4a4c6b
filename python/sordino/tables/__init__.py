"""From tables of records to counts with a bound on what one person contributes."""
