"""What tests of surveys have in common."""

import sordino as so

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)
# A mechanism of every kind of report that is pure.
PURES = ("waves", "subset-selection", "identity")


def estimated(plan, values):
    """Return what a server says of the reports of clients with these values."""
    server = plan.server()
    server.add_many(plan.encode_clients(values))
    return server.estimate()
