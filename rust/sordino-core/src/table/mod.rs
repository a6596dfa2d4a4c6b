//! Tables of records with bounded contributions: each user's records become a small vector by a public rule that sees
//! nobody else's, and the vectors are added up.
//!
//! A data set is a multiset of rows: a user, a cell, perhaps an amount. With `h_u` what the rows of user `u` hold and a
//! public seed `s`, the table is `Σ_u f_s(u, h_u)` with every `f_s(u, h)` in
//! `R = {z ≥ 0: z_k ≤ c, Σ z_k ≤ K, at most L non-zeros}` and `f_s(u, 0) = 0`. All rows of one user more or less change
//! the table by one element of `R`, whatever the seed: that is the unit of privacy of everything measured on it.
//!
//! [`Rule`] is `f_s` in integers, the same bits in SQL; [`Tally`] keeps of every user what it needs, so that parts of the
//! data can be counted apart and merged: the `L` smallest cells of a union are the smallest of the parts' smallest.
//! [`Participants`] says in which steps of a stream a user counts.

mod amount;
mod keys;
mod part;
mod participants;
mod reader;
mod rule;
mod sort;
mod tally;
#[cfg(test)]
mod tests;
mod users;

pub use keys::{KEY_WEIGHT, KeyLists, Weighting};
pub use participants::Participants;
pub use rule::{PRIME, Rule, Seed};
pub use tally::Tally;
pub use users::Users;
