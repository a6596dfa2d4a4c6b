"""What operators and readers look at: metrics, one page about what was published."""

from sordino.report.metrics import metrics
from sordino.report.page import report

__all__ = ["metrics", "report"]
