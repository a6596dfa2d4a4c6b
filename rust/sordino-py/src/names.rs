//! What crosses the border by name: every name is said, and any other is refused.

use crate::error::PyError;
use pyo3::prelude::*;
use sordino_core::door;
use sordino_core::error::Error;
use sordino_core::estimate::cuts::CutGoal;
use sordino_core::estimate::recovery::Algorithm;
use sordino_core::events;
use sordino_core::objective;
use sordino_core::optimize::{self, Noise};
use sordino_core::path_tree;
use sordino_core::sketch;
use sordino_core::smooth::Profile;
use sordino_core::strategy;
use sordino_core::stream;
use sordino_core::transform;

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
named!(Growth(path_tree::Growth), "way a tree grows",
    "adaptive" => path_tree::Growth::Adaptive,
    "full" => path_tree::Growth::Full,
);
named!(Axis(path_tree::Axis), "axis of queries",
    "cells" => path_tree::Axis::Cells,
    "sums" => path_tree::Axis::Sums,
    "ranges" => path_tree::Axis::Ranges,
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
// With numbers: how the value is made from them.
named!(Mechanism(fn(usize) -> strategy::Mechanism), "mechanism",
    "identity" => |_| strategy::Mechanism::Identity,
    "output" => |_| strategy::Mechanism::Output,
    "fourier" => |_| strategy::Mechanism::Fourier,
    "fourier-composed" => |_| strategy::Mechanism::FourierComposed,
    "fourier-planar" => |_| strategy::Mechanism::FourierPlanar,
    "fourier-grouped" => |_| strategy::Mechanism::FourierGrouped,
    "fourier-uniform" => |_| strategy::Mechanism::FourierUniform,
    "boxes" => |_| strategy::Mechanism::Boxes,
    "table-cover" => |_| strategy::Mechanism::TableCover,
    "tree" => |branching| strategy::Mechanism::Tree { branching },
    "haar" => |_| strategy::Mechanism::Haar,
    "square-root" => |_| strategy::Mechanism::SquareRoot,
    "balanced" => |_| strategy::Mechanism::Balanced,
    "weighted-tree" => |_| strategy::Mechanism::WeightedTree,
);
named!(StreamMechanism(fn(Option<u32>) -> stream::StreamMechanism), "mechanism of streams",
    "identity" => |_| stream::StreamMechanism::Identity,
    "output" => |_| stream::StreamMechanism::Output,
    "blt" => |degree| stream::StreamMechanism::Buffered { degree: degree.map(|d| d as usize) },
    "two-diagonals" => |_| stream::StreamMechanism::TwoDiagonals,
    "time-varying-blt" => |degree| stream::StreamMechanism::TimeVarying { degree: degree.map(|d| d as usize) },
    "normalized-square-root" => |_| stream::StreamMechanism::NormalizedSquareRoot,
    "square-root" => |_| stream::StreamMechanism::SquareRoot,
    "outer" => |_| stream::StreamMechanism::Outer,
    "comb" => |_| stream::StreamMechanism::Comb,
    "optimal" => |_| stream::StreamMechanism::Optimal,
    "binary-tree" => |_| stream::StreamMechanism::BinaryTree,
    "honaker-tree" => |_| stream::StreamMechanism::HonakerTree,
    "smooth-tree" => |_| stream::StreamMechanism::SmoothTree,
    "subtraction-tree" => |branching| stream::StreamMechanism::SubtractionTree { branching },
);
named!(GraphFunction(fn(u32) -> events::GraphFunction), "function of graphs",
    "edge_count" => |_| events::GraphFunction::EdgeCount,
    "triangle_count" => |_| events::GraphFunction::Triangles,
    "star_count" => |k| events::GraphFunction::Stars { k },
    "degree_histogram" => |_| events::GraphFunction::DegreeHistogram,
);
named!(WordCount(fn(u32, u32) -> Result<events::Text, Error>), "count of words",
    "substring_counts" => |letters, longest| events::Substrings::new(letters, longest).map(events::Text::Substrings),
    "episode_counts" => |letters, longest| events::Episodes::new(letters, longest).map(events::Text::Episodes),
);
named!(SketchKind(fn(u32) -> sketch::Kind), "kind of sketch",
    "bernoulli" => |_| sketch::Kind::Bernoulli,
    "hadamard" => |_| sketch::Kind::Hadamard,
    "sparse" => |nonzeros| sketch::Kind::Sparse { nonzeros },
);
named!(KernelProfile(Profile), "kernel",
    "gaussian" => Profile::Gaussian,
    "laplace" => Profile::Laplace,
    "matern32" => Profile::Matern32,
    "matern52" => Profile::Matern52,
);
named!(Recovery(Algorithm), "recovery",
    "cosamp" => Algorithm::Cosamp,
    "hard-thresholding" => Algorithm::HardThresholding,
    "basis-pursuit" => Algorithm::BasisPursuit,
);
named!(BasisName(transform::BasisName), "basis",
    "standard" => transform::BasisName::Standard,
    "haar" => transform::BasisName::Haar,
    "cosine" => transform::BasisName::Cosine,
);
named!(FilterKind(fn(&[f64]) -> Option<stream::Filter>), "filter",
    "running_sum" => |_| Some(stream::Filter::RunningSum),
    "running_average" => |_| Some(stream::Filter::RunningAverage),
    "decay" => |parameters| match *parameters {
        [decay, factor] => Some(stream::Filter::Decay { decay, factor }),
        _ => None,
    },
    "window" => |parameters| match *parameters {
        [window, factor] => Some(stream::Filter::Window { window: window as usize, factor }),
        _ => None,
    },
    "taps" => |taps| Some(stream::Filter::Taps(taps.to_vec())),
);
