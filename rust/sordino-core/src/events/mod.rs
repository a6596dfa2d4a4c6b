//! What an event adds to the counters of a continual release: exact, incremental, without noise.
//!
//! | file | concept |
//! |---|---|
//! | `neighbours.rs` | a set of vertices that grows: sorted while small, bits when large |
//! | `degree_bound.rs` | a simple graph under insertion, and the online rule that bounds its degrees |
//! | `graph.rs` | edges, triangles, k-stars, degree histogram |
//! | `forest.rs` | cost of the minimum spanning forest |
//! | `words.rs` | numbering of words up to a length |
//! | `substrings.rs` | words that end at a letter |
//! | `episodes.rs` | minimal occurrences of words as serial episodes |
//! | `text.rs` | a text, of whose words either is counted |
//! | `steps.rs` | events grouped into steps |
//!
//! A malformed item (self-loop, unknown vertex or letter, weight out of range) is a null item: it changes nothing.
//! Everything in here is private until a door adds noise, so no state shows itself in `Debug`.

mod degree_bound;
mod episodes;
mod forest;
mod graph;
mod neighbours;
mod steps;
mod substrings;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use degree_bound::SimpleGraph;
pub use episodes::Episodes;
pub use forest::SpanningForest;
pub use graph::{GraphEvents, GraphFunction};
pub(crate) use steps::check_ends;
pub use substrings::Substrings;
pub use text::Text;
pub use words::{Words, count};
