"""Published tables are of Laplace noise on the real line; what is released is discrete."""


def of_laplace_noise(planned):
    """Return the rmse with Laplace noise of the same privacy, for strategies whose rows all have the same step."""
    fit = getattr(planned, "fit", planned)
    return fit.rmse * fit.door.scale / fit.door.noise
