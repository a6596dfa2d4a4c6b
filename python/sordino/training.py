"""Training of models: noise that is correlated between steps, on sums of clipped gradients."""

from sordino.streams.gradients import clipped_sum, noisy_sum

__all__ = ["clipped_sum", "noisy_sum"]
