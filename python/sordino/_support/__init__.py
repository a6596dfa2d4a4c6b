"""What every layer uses: checked arguments, rounding, files, processes, protocols."""
