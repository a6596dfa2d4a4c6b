//! What crosses the border by name: every name is said, and any other is refused.

use crate::error::PyError;
use pyo3::prelude::*;
use sordino_core::door;
use sordino_core::error::Error;
use sordino_core::estimate::cuts::CutGoal;
use sordino_core::objective;
use sordino_core::optimize::{self, Noise};

/// A value of the core that Python calls by name.
macro_rules! named {
    ($type:ident($core:ty), $what:literal, $($name:literal => $value:expr),+ $(,)?) => {
        #[doc = concat!("A ", $what, ", by name.")]
        #[derive(Clone, Copy)]
        pub(crate) struct $type(pub $core);

        impl<'py> FromPyObject<'_, 'py> for $type {
            type Error = PyErr;

            fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
                match object.extract::<&str>()? {
                    $($name => Ok(Self($value)),)+
                    _ => Err(PyError::from(Error::Unsupported(concat!("unknown ", $what).into())).into()),
                }
            }
        }
    };
}

/// A neighbouring relation, without its numbers.
#[derive(Clone, Copy)]
pub(crate) enum Neighbours {
    AddRemove,
    ReplaceOne,
}

/// How long a stream lasts, without its number.
#[derive(Clone, Copy)]
pub(crate) enum Lasting {
    Hard,
    Soft,
    Unbounded,
}

/// What projected cells satisfy, without its number.
#[derive(Clone, Copy)]
pub(crate) enum Limits {
    Total,
    AtMost,
    Absolute,
}

named!(NoiseLaw(door::NoiseLaw), "noise law",
    "gaussian" => door::NoiseLaw::Gaussian,
    "laplace" => door::NoiseLaw::Laplace,
);
named!(SearchedNoise(Noise), "noise of a search", "gaussian" => Noise::Gaussian, "laplace" => Noise::Blocks);
named!(Relation(Neighbours), "neighbouring relation",
    "add_remove" => Neighbours::AddRemove,
    "replace_one" => Neighbours::ReplaceOne,
);
named!(Horizon(Lasting), "horizon",
    "hard" => Lasting::Hard,
    "soft" => Lasting::Soft,
    "unbounded" => Lasting::Unbounded,
);
named!(Objective(objective::Objective), "objective",
    "mean" => objective::Objective::Mean,
    "max" => objective::Objective::Max,
);
named!(Constraint(Limits), "constraint",
    "total" => Limits::Total,
    "bound" => Limits::AtMost,
    "signed" => Limits::Absolute,
);
named!(Goal(CutGoal), "goal of a cut",
    "minimum" => CutGoal::Minimum,
    "maximum" => CutGoal::Maximum,
    "sparsest" => CutGoal::Sparsest,
);
named!(Coefficients(optimize::Coefficients), "choice of coefficients",
    "printed" => optimize::Coefficients::Printed,
    "rescaled" => optimize::Coefficients::Rescaled,
    "optimal" => optimize::Coefficients::Optimal,
);
