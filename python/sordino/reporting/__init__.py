"""What operators and readers look at: metrics, one page about what was published."""

from sordino.reporting.metrics import metrics
from sordino.reporting.page import report

__all__ = ["metrics", "report"]
