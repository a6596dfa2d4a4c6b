//! Who takes part how often: neighbouring streams.

use crate::error::Error;
use crate::strategy::largest_square;
use crate::upper::Upper;

/// What one protected unit changes in a stream of items with `dim` coordinates.
///
/// At most `count` steps, at least `separation` apart; at each of them by at most `weight` records, each of which
/// changes the item by a vector of squared ℓ2 norm `item_squared` and ℓ1 norm `item_l1`; all records of the unit
/// together touch at most `touched` coordinates. Or, in an *exchange*, records that leave one step and enter another, or
/// none, in the same coordinates.
///
/// What changes in several ways is a list of these, in coordinates of their own: squared norms add up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Participation {
    count: u64,
    weight: u32,
    separation: u64,
    item_squared: u128,
    item_l1: u64,
    touched: u64,
    exchange: bool,
    /// Euclidean norm of what a record adds in any direction, in place of coordinates.
    vector: Option<f64>,
    /// Common noise over that of a coordinate, and the coordinates that have it.
    common: Option<(f64, u64)>,
}

impl Participation {
    /// One record of one coordinate, `count` times.
    ///
    /// # Errors
    /// If a number is zero.
    pub fn new(count: u64, weight: u32, separation: u64) -> Result<Self, Error> {
        if count == 0 || weight == 0 || separation == 0 {
            return Err(Error::invalid("unit", "counts must be at least 1"));
        }
        Ok(Self { count, weight, separation, ..Self::single() })
    }

    /// The same for records that change an item in several coordinates.
    ///
    /// `item_squared` must be at least the number of coordinates that one record changes: real entries are charged
    /// one grid step for each unit of it.
    ///
    /// # Errors
    /// If a number is zero.
    pub fn with_items(self, item_squared: u128, item_l1: u64, touched: u64) -> Result<Self, Error> {
        if item_squared == 0 || item_l1 == 0 || touched == 0 {
            return Err(Error::invalid("unit", "items that change nothing need no privacy"));
        }
        Ok(Self { item_squared, item_l1, touched, ..self })
    }

    /// The same for records that change an item of `dim` coordinates by a vector of Euclidean norm at most `norm`, in any
    /// direction; or, if they are replaced by others, of twice that.
    ///
    /// # Errors
    /// If a number is not positive and finite.
    pub fn with_vectors(self, norm: f64, dim: u64, replaced: bool) -> Result<Self, Error> {
        if !norm.is_finite() || norm <= 0.0 || dim == 0 {
            return Err(Error::invalid("record_norm", "must be positive and finite"));
        }
        Ok(Self { item_squared: if replaced { 4 } else { 1 }, touched: dim, vector: Some(norm), ..self })
    }

    /// One record of one coordinate at one step.
    pub fn single() -> Self {
        Self {
            count: 1,
            weight: 1,
            separation: 1,
            item_squared: 1,
            item_l1: 1,
            touched: 1,
            exchange: false,
            vector: None,
            common: None,
        }
    }

    /// The same under Gaussian noise that all `dim` coordinates have in common, `ratio` of that of each: of records each of
    /// which raises coordinates, lowers none, or the other way round.
    ///
    /// # Errors
    /// If records move, or a number is not positive.
    pub fn with_common(self, ratio: f64, dim: u64) -> Result<Self, Error> {
        let raises = u128::from(self.item_l1) == self.item_squared && self.item_l1 <= dim && self.vector.is_none();
        if self.exchange || !raises || !ratio.is_finite() || ratio <= 0.0 {
            return Err(Error::invalid("common noise", "is for records that raise coordinates by one"));
        }
        Ok(Self { common: Some((ratio, dim)), ..self })
    }

    /// Common noise over that of a coordinate, and the coordinates that have it.
    pub fn common(&self) -> Option<(f64, u64)> {
        self.common
    }

    /// The same records leaving one step and entering another, or none, in place of `count` times.
    #[must_use]
    pub fn exchanged(self) -> Self {
        Self { count: 1, exchange: true, ..self }
    }

    /// Whether records move from one step to another.
    pub fn is_exchange(&self) -> bool {
        self.exchange
    }

    /// Steps that the unit takes part in, of a stream of so many.
    pub fn count(&self, steps: u64) -> u64 {
        self.count.min((steps - 1) / self.separation + 1)
    }

    /// Least distance of two of them.
    pub fn separation(&self) -> u64 {
        self.separation
    }

    /// Coordinates that differ between neighbours.
    pub fn touched(&self) -> u64 {
        self.touched
    }

    /// Norm of one step's change: `weight·√item_squared`, times that of a vector. With `G = CᵀC ≥ 0` entrywise, a pattern of items has at
    /// most this times the norm of the pattern of ones: `⟨w_r, w_s⟩ ≤ item_squared` for any two records.
    ///
    /// With common noise the norm is that of the inverse covariance, and products are at most its square as well.
    pub fn item_norm(&self) -> Upper {
        let square = match self.common {
            Some((ratio, dim)) => largest_square(ratio, dim, self.item_l1, 1),
            None => Upper::integer(self.item_squared),
        };
        Upper::exact(f64::from(self.weight) * self.vector.unwrap_or(1.0)) * square.sqrt()
    }

    /// The same in ℓ1, for Laplace noise.
    pub fn item_l1(&self) -> Upper {
        match self.vector {
            Some(_) => self.item_norm() * Upper::integer(self.touched.into()).sqrt(),
            None => Upper::exact(f64::from(self.weight)) * Upper::integer(self.item_l1.into()),
        }
    }

    /// Of vectors: norm, or ℓ1 norm, of what rounding items to steps of their domain adds to their change, in these steps.
    ///
    /// An item is rounded once and moves by a step at most in every coordinate; a quarter is for the doubles that it comes
    /// in: steps are whole numbers up to 2^53, whose halves are rounded beyond 2^52, and their quarters beyond 2^51.
    pub fn rounded(&self, l1: bool) -> Option<Upper> {
        let (once, dim) = (Upper::exact(f64::from(self.weight) * 1.25), Upper::integer(self.touched.into()));
        let steps = if l1 { dim } else { dim.sqrt() };
        self.vector.map(|_| once * Upper::integer(self.item_squared).sqrt() * steps)
    }
}
