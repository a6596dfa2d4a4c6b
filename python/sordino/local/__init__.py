"""The local model: every client adds noise to what it sends, and nobody need be trusted. See `sordino.plan_local`."""

from sordino.local.estimate import LocalEstimate
from sordino.local.loss import LocalLoss
from sordino.local.plan import LocalPlan
from sordino.local.planning import plan_local
from sordino.local.server import LocalServer
from sordino.local.survey import LocalSurvey

__all__ = ["LocalEstimate", "LocalLoss", "LocalPlan", "LocalServer", "LocalSurvey", "plan_local"]
