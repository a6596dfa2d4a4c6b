"""Surveys of clients who trust nobody: each adds the noise to its own report."""

from sordino.mechanisms.local.family import SurveyFit
from sordino.releases.local.estimate import LocalEstimate
from sordino.releases.local.server import LocalServer
from sordino.workloads.local.loss import LocalLoss
from sordino.workloads.local.survey import LocalSurvey

__all__ = ["LocalEstimate", "LocalLoss", "LocalServer", "LocalSurvey", "SurveyFit"]
