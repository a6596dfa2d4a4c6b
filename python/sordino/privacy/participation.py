"""From a unit to what it changes in a stream: how often, how far apart, in how many coordinates."""

from typing import NamedTuple

from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel

__all__ = ["Pattern", "patterns", "vectors"]


class Pattern(NamedTuple):
    """What one protected unit changes in a stream, as the core reads it.

    Attributes:
        times: Most steps that it takes part in.
        weight: Records at each of them.
        separation: Least distance of two of them.
        item_squared: Squared l2 norm of what a record changes.
        item_l1: l1 norm of what a record changes.
        touched: Coordinates that all its records together can touch.
        norm: Euclidean norm of a record in any direction, in place of coordinates that change by one each.
    """

    times: int
    weight: int
    separation: int
    item_squared: int
    item_l1: int
    touched: int
    norm: float | None = None


def vectors(unit: Unit, dim: int, norm: float) -> tuple[Pattern, ...]:
    """Return the pattern of records that are vectors of Euclidean norm at most `norm`, in any direction.

    `||(C x I) d||^2 = sum_rs G_rs <v_r, v_s> <= norm^2 sum_rs |G_rs|`, `G = C^T C`: what bounds the patterns of numbers
    of any sign bounds those of vectors. A replaced record leaves one vector and enters another: twice the norm.
    """
    match unit:
        case AddRemove(records=records):
            return (Pattern(1, records, 1, 1, 1, dim, norm),)
        case ReplaceOne(records=records):
            return (Pattern(1, records, 1, 4, 1, dim, norm),)
        case UserLevel(max_participations=count, min_separation=separation, per_step=weight):
            return (Pattern(count, weight, separation, 1, 1, dim, norm),)


def patterns(unit: Unit, dim: int, cells: int, one_signed: bool, no_negative_products: bool) -> tuple[Pattern, ...]:
    """Return patterns each of which bounds what the unit can change; the least sensitivity counts.

    A record changes one item in at most b = `cells` coordinates, each by at most 1: squared norm b. A replaced
    record leaves one item (-1 in b coordinates) and enters the same or another (+1 in b coordinates): 2b where
    columns of the strategy have no negative products (`no_negative_products`), 4b in any case; where a record is not
    `one_signed`, entries may go from -1 to 1: 4b. k records at any steps are covered by k at one step (triangle
    inequality).

    Args:
        unit: What one protected thing can change.
        dim: Coordinates of an item.
        cells: b, coordinates that one record changes.
        one_signed: Whether entries of a record are not negative.
        no_negative_products: Whether all products of columns of the strategy are non-negative.
    """
    match unit:
        case AddRemove(records=records, per_cell=per_cell):
            together = Pattern(1, records, 1, cells, cells, min(dim, records * cells))
            if dim > 1 or per_cell is None or per_cell >= records:
                return (together,)
            return together, Pattern(-(-records // per_cell), per_cell, 1, 1, 1, 1)
        case ReplaceOne(records=records):
            squared = 2 * cells if no_negative_products and one_signed else 4 * cells
            return (Pattern(1, records, 1, squared, 2 * cells, min(dim, 2 * records * cells)),)
        case UserLevel(max_participations=count, min_separation=separation, per_step=weight):
            return (Pattern(count, weight, separation, cells, cells, min(dim, count * weight * cells)),)
