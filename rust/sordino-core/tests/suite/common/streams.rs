//! Plans of streams, for tests.

use sordino_core::door::NoiseLaw;
use sordino_core::objective::Objective;
use sordino_core::stream::{Filter, Horizon, StreamMechanism, StreamPlan, StreamRecipe};
use std::sync::Arc;

/// A plan, which must exist.
pub(crate) fn plan(
    filter: Filter,
    mechanism: StreamMechanism,
    law: NoiseLaw,
    horizon: Horizon,
    objective: Objective,
) -> Arc<StreamPlan> {
    Arc::new(
        StreamPlan::new(StreamRecipe { filter, mechanism, law, horizon, objective, participations: (1, 1) }).unwrap(),
    )
}
