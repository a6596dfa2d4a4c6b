"""Where public names are, for tests that look at all of them."""

import sordino as so

SPACES = (
    so,
    so.adaptive,
    so.events,
    so.local,
    so.optimal,
    so.privacy,
    so.sketches,
    so.smooth,
    so.streams,
    so.tables,
    so.workloads,
)
