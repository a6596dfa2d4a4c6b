use super::*;
use crate::door::Key;
use crate::strategy::{Codes, Mechanism, Recipe};
use crate::unit::Unit;
use crate::workload::Workload;
