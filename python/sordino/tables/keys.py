"""Keys that nobody knows beforehand: which of them enough people have, at a cost."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer, positive, sequence, text
from sordino._support.normal_tails import log_normal_cdf, normal_quantile
from sordino._support.rounding import float_down
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.privacy.books import Charge
from sordino.privacy.calibration import gaussian_mu
from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, Cost
from sordino.privacy.guarantees import ApproxDP
from sordino.privacy.ledger import Ledger
from sordino.privacy.requests import Answering, NoiseKey, Prepared
from sordino.privacy.spending import released
from sordino.storage.chain import canonical
from sordino.tables.columns import Column
from sordino.tables.dimensions import Dimension, Levels
from sordino.tables.readers import frames_of
from sordino.tables.schema import Schema

__all__ = ["Keys", "select_keys"]

_WORD = 2**96
_PRIME = 2**31 - 1
_MOST_USERS = 2**22
# Of delta for keys that one user alone has.
_SHARE = 0.5
# Noise that the door draws, in quarters of 2**-20 of a user.
_MOST_NOISE = 2**46
_LEAST_SHARE, _LEAST_TAIL = 1e-12, 1e-280
# Keys of a user beyond which the optimal selection is never better.
_MOST_KEYS = 4
# More digits than a word of 96 bits and a factor of 64 have together.
_DIGITS = 80


class Keys(Dimension):
    """A dimension of which nobody knows the values: `select_keys` finds those that enough people have.

    A published key is published as it is: an address that thirty people share is published. Leave out by a public rule
    for each row what must not be.

    Args:
        rounds: Shares of the budget: after each round the keys that were published leave everybody's lists.
        longest: Most bytes of a key that is text; longer ones are nowhere.

    Raises:
        DataTypeError: No numbers.
        InvalidParameterError: None, not positive, or more than 16 rounds.
    """

    kind = "keys"

    def __init__(self, *, rounds: Sequence[float] = (1.0, 4.0, 16.0), longest: int = 256) -> None:
        self.rounds = tuple(positive("a round", share) for share in sequence("rounds", rounds, "numbers", most=16))
        if not self.rounds:
            raise InvalidParameterError("rounds must be at least one")
        self.longest = integer("longest", longest, least=1, most=2**16)

    @property
    def labels(self) -> tuple[str, ...]:
        """None are known.

        Raises:
            InvalidParameterError: Always.
        """
        raise InvalidParameterError("keys are not known yet: make a schema with the levels that select_keys returns")

    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Refuse: see `labels`."""
        return np.zeros(len(self.labels), dtype=np.int64)

    def record(self) -> dict[str, Any]:
        """Return what counts as a key."""
        return {"kind": self.kind, "rounds": list(self.rounds), "longest": self.longest}

    def sql(self, column: str, dialect: Any) -> str:
        """Refuse: see `labels`."""
        return self.labels[0]

    def __repr__(self) -> str:
        return f"Keys(rounds={self.rounds}, longest={self.longest})"


class _Round(NamedTuple):
    """Noise in quarters of a unit, and the threshold, of weights in units of 2**-20."""

    quarter_units: int
    threshold: int


@dataclass(frozen=True)
class _Selected:
    """What was selected for a request."""

    asked: tuple[str, ApproxDP]
    levels: Levels


def select_keys(
    data: object, schema: Schema, privacy: ApproxDP, *, ledger: Ledger | None = None, request_id: str
) -> Levels:
    """Return the keys that enough users have: what a schema with known levels is made of.

    Of each user at most `bounds.max_cells` keys count, chosen by the schema's public rule. With one or two keys a user
    the optimal selection keeps each key with the largest probability that any mechanism can (Desfontaines, Voss, Gipson
    and Mandayam, PoPETs 2022); else each user shares a weight among its keys, and those whose sum with Gaussian noise
    is above a threshold are published, in rounds (Gopi et al., ICML 2020; Swanberg, Desfontaines and Haney, PoPETs
    2023): a key that one user alone has is published with probability at most delta/2 in all.

    Args:
        data: As `tabulate` takes it for the core.
        schema: With one dimension `Keys`, users and bounds.
        privacy: The guarantee for all rounds together.
        ledger: Where the cost is charged; None leaves the selection unaccounted.
        request_id: Name of the request, charged at most once; it makes the rule's seed too.

    Returns:
        The keys in the order of their bytes, or of their numbers; none if nobody has enough in common.

    Raises:
        DataTypeError: An argument or a column is of the wrong type.
        ShapeError: Columns of different lengths.
        InvalidParameterError: The schema has no keys or no users, or users or keys are of several kinds.
        BudgetExceededError: The ledger's total would be exceeded.
        UnsupportedCostError: The ledger cannot count this cost.
        UnitError: The ledger protects another thing.
        DuplicateRequestError: The request was made before, for something else.
        EntropyError: The operating system gives no randomness; the budget stays charged.
    """
    if not isinstance(schema, Schema):
        raise DataTypeError("schema must be a sordino.Schema")
    if not isinstance(privacy, ApproxDP):
        raise DataTypeError("privacy must be ApproxDP: no key of one user could ever be left out for certain")
    found = [(name, axis) for name, axis in schema.dimensions.items() if isinstance(axis, Keys)]
    if not found or schema.bounds is None or schema.user is None:
        raise InvalidParameterError("schema must have a dimension Keys, a user and bounds")
    ((column, keys),) = found
    most, asked = schema.bounds.max_cells, (schema.digest, privacy)
    seed = list(schema.seed(text("request_id", request_id)))
    thresholds = _optimal_if_better(most, privacy)
    rounds = [] if thresholds is not None else _rounds(keys.rounds, most, privacy)
    mu, delta = _split(privacy)
    cost: Cost = (
        ApproximateGaussianCost(mu, delta) if thresholds is None else ApproxCost(privacy.epsilon, privacy.delta)
    )

    def prepare() -> Prepared[_Selected]:
        lists, names, order, marked = _read(data, schema, column, keys)

        def measure(noise: NoiseKey) -> _Selected:
            known = noise.key
            taken = np.zeros(len(names), dtype=np.bool_)
            if thresholds is not None:
                users = lists.weights(seed, order, taken, most, False) // _core.key_weight(1, False)
                taken[_core.keep_keys(users.astype(np.uint64), thresholds, known)] = True
            else:
                for number, each in enumerate(rounds):
                    weights = lists.weights(seed, order, taken, most, True)
                    weights[taken] = 0
                    left = np.flatnonzero(weights > 0)
                    key = None if known is None else hashlib.sha256(known + bytes([number])).digest()
                    published = _core.publish_keys(weights[left], each.quarter_units, each.threshold, key)
                    taken[left[published]] = True
            return _Selected(
                asked, Levels([name for name, chosen in zip(names, taken.tolist(), strict=True) if chosen])
            )

        return Prepared(measure, marked)

    def same(record: object) -> _Selected | None:
        return record if isinstance(record, _Selected) and record.asked == asked else None

    def asked_digest() -> bytes:
        return hashlib.sha256(canonical({"keys": schema.digest, "privacy": privacy.to_json()}).encode()).digest()

    answering: Answering[_Selected] = Answering(
        Charge(cost, request_id, schema.unit.label, schema.unit),
        asked_digest,
        same,
        prepare,
        lambda selected: selected,
        lambda selected: json.dumps(selected.levels.values).encode(),
        lambda content: _Selected(asked, Levels(json.loads(content))),
    )
    return released(ledger, answering).levels


def _split(privacy: ApproxDP) -> tuple[float, float]:
    """Return mu, and the delta of keys that one user alone has: together what `privacy` allows."""
    delta = privacy.delta * _SHARE
    rest = math.nextafter(privacy.delta - delta, 0.0)
    # Less by what the same search may differ by where a ledger makes it.
    return gaussian_mu(ApproxDP(epsilon=privacy.epsilon, delta=rest)) * (1.0 - 1e-11), delta


def _rounds(shares: Sequence[float], most: int, privacy: ApproxDP, shared: bool = True) -> list[_Round]:
    """Return the noise and the threshold of each round: squares of mu and deltas add up to what there is.

    `τ = max_t (w_t + ⌈σ z(d/t)⌉)` over `t <= most` keys of a user, z the upper quantile: with probability at most d a
    user makes a key appear that nobody else has.
    """
    mu, delta = _split(privacy)
    whole, found = sum(map(Fraction, shares)), []
    length = _core.key_weight(1, False) * (1.0 if shared else math.sqrt(most))
    for share in shares:
        part = float(Fraction(share) / whole)
        if not part >= _LEAST_SHARE:
            raise InvalidParameterError("rounds must not differ by more than a million million")
        own = mu * math.sqrt(part) * (1.0 - 2.0**-50)
        quarters = math.ceil(4.0 * length / own * (1.0 + 2.0**-50))
        least = delta * part * (1.0 - 2.0**-50)
        if quarters > _MOST_NOISE or least < _LEAST_TAIL:
            raise InvalidParameterError("epsilon or delta is too small: no key could be published")
        counts = np.unique(np.geomspace(1, most, min(most, 512)).astype(np.int64)).tolist()
        # Between two of these counts the weight is at most that of the lower, and the quantile that of the upper.
        ends = [*counts[1:], counts[-1]]
        threshold = max(
            _core.key_weight(low, shared) + math.ceil(quarters / 4.0 * upper_quantile(least / high) * (1.0 + 2.0**-50))
            for low, high in zip(counts, ends if most > len(counts) else counts, strict=True)
        )
        found.append(_Round(quarters, threshold))
    return found


def upper_quantile(tail: float) -> float:
    """Return z with `P(Z > z) <= tail` for a standard normal Z, too large by less than 1e-8."""
    z = -normal_quantile(tail) + 1e-9
    log_tail = math.log(tail) - 2.0**-45 * abs(math.log(tail))
    while log_normal_cdf(-z) * (1.0 - 1e-13) > log_tail:
        z += 1e-9
    return z


def optimal_thresholds(epsilon: float, delta: float) -> list[int]:
    """Return `T_0, T_1, ...` up to 2**96: a key of n users stays if a uniform word of 96 bits is below `T_n`.

    `T_n = min(⌊E T_{n−1}/2^64⌋ + D, N − ⌈I (N − T_{n−1} − D)/2^64⌉, N)` with `E = ⌊e^ε 2^64⌋`, `I = ⌈e^{−ε} 2^64⌉` and
    `D = ⌊δN⌋`: rounded so that both inequalities of (epsilon, delta) hold for any two neighbouring numbers of users.
    """
    context = Context(prec=_DIGITS)
    # An error of one in the last of 80 digits, and one unit more for it.
    growth = int((Decimal(epsilon).exp(context) * 2**64).to_integral_value(ROUND_FLOOR)) - 1
    shrink = int((Decimal(-epsilon).exp(context) * 2**64).to_integral_value(ROUND_CEILING)) + 1
    step = math.floor(Fraction(delta) * _WORD)
    found = [0]
    while found[-1] < _WORD:
        last = found[-1]
        if last + step >= _WORD:
            found.append(_WORD)
            break
        grown = (growth * last >> 64) + step
        shrunk = _WORD - -(-shrink * (_WORD - last - step) // 2**64)
        found.append(min(grown, shrunk, _WORD))
        if len(found) > _MOST_USERS or found[-1] <= last:
            raise InvalidParameterError("no key would be kept: epsilon and delta are too small")
    return found


def _optimal_if_better(most: int, privacy: ApproxDP) -> list[int] | None:
    """Return the thresholds of the optimal selection of one of so many keys, None if Gaussian noise keeps more.

    Both are asked for how many users a key needs to be kept every other time.
    """
    if most > _MOST_KEYS:
        return None
    each = (float_down(Fraction(amount) / most) for amount in (privacy.epsilon, privacy.delta))
    try:
        thresholds = optimal_thresholds(*each)
    except InvalidParameterError:
        return None
    try:
        (once,) = _rounds((1.0,), most, privacy, shared=False)
    except InvalidParameterError:
        return thresholds
    half = next(users for users, threshold in enumerate(thresholds) if 2 * threshold >= _WORD)
    return thresholds if half <= once.threshold / _core.key_weight(1, False) else None


def _read(
    data: object, schema: Schema, column: str, keys: Keys
) -> tuple[Any, list[Any], NDArray[np.uint32], Callable[[], bytes]]:
    """Return the keys of every user by number, their names in order, and what stands for each in a user's order.

    And what makes a digest of all that was read.
    """
    parts, kinds = [], set()
    numbers: dict[object, int] = {}
    for frame in frames_of(data, [column, str(schema.user)]):
        kind, users, known = frame[str(schema.user)].users(f"the users in {schema.user!r}")
        of_text, names, places, there = _entries(frame[column], column, keys.longest)
        kinds.add((kind, of_text))
        if len(kinds) > 1:
            raise InvalidParameterError("users, and keys, are of one kind: integers or text")
        own = np.array([numbers.setdefault(name, len(numbers)) for name in names] or [0], dtype=np.int64)
        parts.append((users, np.where(known & there, own[places], -1)))
    ordered = sorted(numbers)  # type: ignore[type-var]
    rank = np.empty(len(numbers) + 1, dtype=np.int64)
    rank[[numbers[name] for name in ordered]] = np.arange(len(ordered))
    rank[-1] = -1
    lists = _core.KeyLists()
    for users, codes in parts:
        lists.update(users, rank[codes].astype(np.int32))
    shown = [name.decode() if isinstance(name, bytes) else name for name in ordered]
    digests = (hashlib.md5(str(name).encode(), usedforsecurity=False).digest() for name in shown)
    order = [(int.from_bytes(digest[:8], "big") >> 4) % _PRIME for digest in digests]

    def digest() -> bytes:
        found = hashlib.sha256(repr(shown).encode())
        for users, codes in parts:
            for array in (users, rank[codes]):
                found.update(np.ascontiguousarray(array).tobytes() + b"|")
        return found.digest()

    return lists, shown, np.array(order, dtype=np.uint32), digest


def _entries(column: Column, name: str, longest: int) -> tuple[bool, list[Any], NDArray[np.int64], NDArray[np.bool_]]:
    """Return whether keys are text, the different ones, the place of each row among them, and where there is one."""
    if column.kind == "dictionary":
        codes, values = column.values
        of_text, names, places, known = _entries(values, name, longest)
        if not len(values):  # the kind is that of the type, whether there is an entry or not
            return of_text, [], np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=np.bool_)
        return of_text, names, places[codes], column.known() & known[codes]
    if column.kind in {"text", "object"}:
        _, entries, known = column.users(f"the keys in {name!r}")
        listed = entries.entries()
        known = known & np.array([len(key) <= longest and _is_text(key) for key in listed], dtype=np.bool_).reshape(-1)
        found: dict[object, int] = {}
        rows = zip(listed, known.tolist(), strict=True)
        places = np.array([found.setdefault(key, len(found)) if ok else 0 for key, ok in rows], dtype=np.int64)
        return True, list(found), places.reshape(-1), known
    if column.kind != "integer":
        raise column.wrong(f"the keys in {name!r}", "integers or text")
    integers, known = column.integers(f"the keys in {name!r}")
    different, inverse = np.unique(integers[known], return_inverse=True)
    places = np.zeros(len(integers), dtype=np.int64)
    places[known] = inverse.reshape(-1)
    return False, different.tolist(), places, known


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
