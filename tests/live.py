"""Options of live answers, told apart: which belong to the workload, which to the plan."""

import sordino as so

_OF_THE_WORKLOAD = {"horizon", "dim", "cells_per_record", "one_signed", "common_noise", "reads", "pan_private"}


def _split(workload, options):
    own = {name: options.pop(name) for name in _OF_THE_WORKLOAD & options.keys()}
    return so.Continual(workload, **own)


def plan_live(workload, privacy, **options):
    """Return the plan of live answers."""
    return so.plan(_split(workload, options), privacy, **options)


def compare_live(workload, privacy, **options):
    """Return the comparison of live answers."""
    return so.compare(_split(workload, options), privacy, **options)
