"""The four guarantees: accepted and refused parameters, immutability, JSON."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, SordinoError
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP, privacy_from_json

SAMPLES: list[Privacy] = [
    PureDP(epsilon=0.1),
    ApproxDP(epsilon=1.0, delta=1e-6),
    ZeroConcentratedDP(rho=0.3),
    GaussianDP(mu=1e-12),
]
ONE_PARAMETER: list[tuple[type[Privacy], str]] = [
    (PureDP, "epsilon"),
    (ZeroConcentratedDP, "rho"),
    (GaussianDP, "mu"),
]


@pytest.mark.parametrize("value", [1, np.float32(0.5), np.float64(0.1), np.int64(3), Fraction(1, 3)])
def test_any_real_number_becomes_a_float(value: float) -> None:
    epsilon = PureDP(epsilon=value).epsilon
    assert type(epsilon) is float
    assert epsilon == float(value)


@pytest.mark.parametrize(("kind", "name"), ONE_PARAMETER)
@pytest.mark.parametrize(
    "value", [0, -1.0, float("nan"), float("inf"), 5e-324, 0.99e-12, 1.01e6, 10**400, -0.0, np.float64("nan")]
)
def test_out_of_range_is_refused(kind: type[PureDP], name: str, value: float) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        kind(**{name: value})


@pytest.mark.parametrize(("kind", "name"), ONE_PARAMETER)
@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, [1.0]])
def test_wrong_types_are_refused(kind: type[PureDP], name: str, value: object) -> None:
    with pytest.raises(DataTypeError, match=name):
        kind(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5, -1e-9, 1e-310, float("nan")])
def test_delta_is_strictly_between_zero_and_one(delta: float) -> None:
    with pytest.raises(InvalidParameterError, match="delta"):
        ApproxDP(epsilon=1.0, delta=delta)


def test_there_are_no_defaults() -> None:
    with pytest.raises(TypeError):
        PureDP()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ApproxDP(epsilon=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("privacy", SAMPLES)
def test_frozen_hashable_and_equal_by_value(privacy: Privacy) -> None:
    assert dataclasses.replace(privacy) == privacy
    assert hash(dataclasses.replace(privacy)) == hash(privacy)
    with pytest.raises(dataclasses.FrozenInstanceError):
        privacy.epsilon = 2.0  # type: ignore[misc,union-attr]


@pytest.mark.parametrize("privacy", SAMPLES)
def test_json_round_trip_is_exact(privacy: Privacy) -> None:
    assert privacy_from_json(json.loads(json.dumps(privacy.to_json()))) == privacy


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"kind": "unknown"},
        {"kind": 3},
        {"kind": "pure"},
        {"kind": "pure", "epsilon": 1.0, "delta": 0.1},
        {"kind": "pure", "epsilon": -1.0},
        {"kind": "pure", "epsilon": "1.0"},
    ],
)
def test_malformed_json_is_refused(data: object) -> None:
    with pytest.raises(PlanFileError):
        privacy_from_json(data)


def test_repr_and_error_family() -> None:
    assert repr(ApproxDP(epsilon=1, delta=1e-6)) == "ApproxDP(epsilon=1.0, delta=1e-06)"
    with pytest.raises(ValueError, match="positive") as caught:
        PureDP(epsilon=-1.0)
    assert isinstance(caught.value, SordinoError)
