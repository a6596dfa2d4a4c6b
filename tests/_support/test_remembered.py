"""What is found once for each object."""

from copy import copy

import sordino as so
from sordino._support.remembered import remembered
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.workloads import RunningSum


class Thing:
    def __init__(self, value):
        self.value = value


def test_each_thing_is_looked_at_once():
    looked_at = []

    @remembered
    def double(thing):
        """Return twice the value."""
        looked_at.append(thing)
        return 2 * thing.value

    @remembered
    def half(thing):
        return None

    three, four = Thing(3), Thing(4)
    assert [double(three), double(four), double(three), half(three), half(three)] == [6, 8, 6, None, None]
    assert looked_at == [three, four] and double(copy(four)) == 8 and len(looked_at) == 2
    assert double.__doc__ == "Return twice the value."


def test_what_is_known_of_a_workload_is_no_part_of_it():
    known, other = RunningSum(900), RunningSum(900)
    spec, text = known.spec(), repr(known)
    singular_mean(known)
    assert (known.spec(), repr(known)) == (spec, text) and known == other and hash(known) == hash(other)
    plan = so.plan(known, so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert plan.fit.record() == so.plan(other, so.ApproxDP(epsilon=1.0, delta=1e-6)).fit.record()
