"""From a request to a fit: strategy, lattice and noise. A family a folder."""
