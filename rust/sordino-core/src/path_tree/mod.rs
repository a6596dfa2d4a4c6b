//! Trees over cells that grow where records are: the budget of a path is spent from the top down.
//!
//! Every cell lies on one path of nodes. A node is measured with a share of what its path has left, and what was published
//! decides what happens below: nothing, when parts could not be told from noise. [`crate::door::PathDoor`] measures and sees
//! to it that no path spends more than its budget, whatever the [`Growth`]; what was published says where the tree has
//! grown, so that a [`Grown`] tree follows from it again.

mod axis;
mod dense;
mod grown;
mod region;
mod rule;
#[cfg(test)]
mod tests;

pub use axis::Axis;
pub(crate) use dense::noise_square;
pub use grown::Grown;
pub(crate) use grown::Source;
pub use region::Region;
pub use rule::Growth;
pub(crate) use rule::Rule;
