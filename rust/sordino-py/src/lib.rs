//! Python bindings of `sordino-core`: each extracts, detaches from the interpreter, calls and wraps.

// PyO3 hands arguments over by value.
#![allow(clippy::needless_pass_by_value)]

mod adaptive_tables;
mod bounds;
mod door;
mod error;
mod estimate;
mod events;
mod forks;
mod guarded;
mod interrupt;
mod names;
mod nested_groups;
mod noise;
mod optimize;
mod path_tree;
mod recovery;
mod sealing;
mod sketch;
mod smooth;
mod strategy;
mod stream;
mod table;
mod waves;
mod workload;

use pyo3::prelude::*;

/// Exact noise, strategies and the door.
#[pymodule(gil_used = false)]
mod _core {
    use numpy::PyArrayMethods;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::adaptive_tables::TableDoor;
    #[pymodule_export]
    use crate::bounds::{Discrepancy, LowerBounds, discrepancy, lower_bounds};
    #[pymodule_export]
    use crate::door::{Door, Measured, fit, keep_keys, publish_keys};
    #[pymodule_export]
    use crate::estimate::{
        exchange, nearest_cells, nearest_tables, project, project_measure, search_cut, top_down, unbiased_table,
        whole_table, whole_top_down,
    };
    #[pymodule_export]
    use crate::events::{AboveThreshold, GraphEvents, LazyStream, SpanningForest, Words};
    #[pymodule_export]
    use crate::forks::{forks, renew_owner, watch_forks};
    #[pymodule_export]
    use crate::nested_groups::NestedGroups;
    #[pymodule_export]
    use crate::noise::{gaussian_noise, laplace_noise};
    #[pymodule_export]
    use crate::optimize::{
        Searched, balanced_root, balanced_rows, condensed, decay_bound, dense, dense_strategy, in_phase,
        joined_prefixes, minimum_ellipsoid, optimize_strategy, p_identity, p_identity_of_line, prefix_bound,
        root_diagonal, several_strategy,
    };
    #[pymodule_export]
    use crate::path_tree::{GrownTree, PathDoor};
    #[pymodule_export]
    use crate::recovery::{Basis, Recovered, SparsityScores, isotonic, key_columns, recover, recover_keys};
    #[pymodule_export]
    use crate::sealing::{seal, unseal};
    #[pymodule_export]
    use crate::sketch::{PanPrivateTree, Sketch, SketchOperator};
    #[pymodule_export]
    use crate::smooth::{PointFeatures, PointSums};
    #[pymodule_export]
    use crate::strategy::{Strategy, answer, block_gram, box_sums, decode, joint_errors, tree_blocks};
    #[pymodule_export]
    use crate::stream::{Stream, StreamDoor, StreamPlan, checkpoint_header, clipped_sum};
    #[pymodule_export]
    use crate::table::{KeyLists, Participants, Tally, key_weight};
    #[pymodule_export]
    use crate::waves::{Waves, tell_subset};
    #[pymodule_export]
    use crate::workload::Workload;

    /// numpy's tables are fetched now: fetched at the first array, a signal could come in between.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let none = numpy::PyArray1::<f64>::zeros(module.py(), 0, false);
        drop(none.try_readonly()?);
        Ok(())
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
