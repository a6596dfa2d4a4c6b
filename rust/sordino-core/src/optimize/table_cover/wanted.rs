//! What is wanted, and what a search looks up about it.

use super::closure::Closure;
use super::{MANY_WANTED, TOLERANCE};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most cells of a table, and of all of them, unless wanted tables have more.
const TABLE_CELLS: f64 = 4_194_304.0;
const TOTAL_CELLS: f64 = 16_777_216.0;
/// Numbers of cells that are too large for anything count as this many: sums of them are finite.
const MOST_CELLS: f64 = 1e200;
/// No wanted table counts less than this fraction of the one that counts most.
const LITTLE: f64 = 1e-12;
/// What a wanted set counts for that misses one attribute, and what each further one takes off.
const PARTIAL: f64 = 0.01;
/// No wanted set: of sets within wanted ones.
const NONE: u32 = u32::MAX;

/// Distinct wanted sets of attributes, smaller ones first, with their weights.
pub(super) struct Wanted {
    /// The attributes that a wanted set has, as the caller numbers them, rising.
    pub(super) attributes: Vec<usize>,
    /// Levels of each of them.
    pub(super) levels: Vec<f64>,
    /// The sets, of positions in `attributes`, rising.
    pub(super) sets: Vec<Vec<u32>>,
    /// Positive; only their ratios matter.
    pub(super) weights: Vec<f64>,
    /// Cells of the table of each set.
    pub(super) cells: Vec<f64>,
}

impl Wanted {
    /// Equal sets are one, with the sum of their weights. Weights of nothing become tiny: every wanted set is covered.
    pub(super) fn new(levels: &[usize], sets: &[Vec<usize>], weights: &[f64]) -> Self {
        debug_assert!(weights.iter().all(|w| w.is_finite() && *w >= 0.0), "weights are not negative");
        let mut attributes: Vec<usize> = sets.iter().flatten().copied().collect();
        attributes.sort_unstable();
        attributes.dedup();
        let mut position = vec![0; levels.len()];
        attributes.iter().enumerate().for_each(|(k, a)| position[*a] = k as u32);
        let mut merged: BTreeMap<(usize, Vec<u32>), f64> = BTreeMap::new();
        for (set, weight) in sets.iter().zip(weights) {
            let mut set: Vec<u32> = set.iter().map(|a| position[*a]).collect();
            set.sort_unstable();
            set.dedup();
            *merged.entry((set.len(), set)).or_default() += weight;
        }
        let levels: Vec<f64> = attributes.iter().map(|a| levels[*a] as f64).collect();
        let (sets, weights): (Vec<Vec<u32>>, Vec<f64>) =
            merged.into_iter().map(|((_, set), weight)| (set, weight)).unzip();
        let cells: Vec<f64> = sets.iter().map(|set| cells(&levels, set)).collect();
        let weights = balanced(&weights, &cells);
        Self { attributes, levels, sets, weights, cells }
    }

    /// Attributes as the caller numbers them.
    pub(super) fn original(&self, set: &[u32]) -> Vec<usize> {
        set.iter().map(|k| self.attributes[*k as usize]).collect()
    }

    /// How many sets are within wanted ones, each counted as often as it is.
    pub(super) fn subsets(&self) -> usize {
        let within = |set: &Vec<u32>| 1usize.checked_shl(set.len() as u32).unwrap_or(usize::MAX);
        self.sets.iter().map(within).fold(0, usize::saturating_add)
    }

    /// Whether a search must be brief.
    pub(super) fn many(&self) -> bool {
        self.sets.len() > MANY_WANTED.0 || self.sets.iter().map(Vec::len).sum::<usize>() > MANY_WANTED.1
    }

    /// Whether these are pairs, at least half of all there are, perhaps beside single attributes.
    pub(super) fn are_pairs(&self) -> bool {
        let d = self.attributes.len();
        let largest = self.sets.last().map_or(0, Vec::len);
        largest == 2 && d > 4 && 4 * self.sets.len() >= d * (d - 1)
    }

    /// Cells of the table of all attributes.
    pub(super) fn union_cells(&self) -> f64 {
        self.levels.iter().product::<f64>().min(MOST_CELLS)
    }

    /// Most cells of one table.
    pub(super) fn table_limit(&self) -> f64 {
        self.cells.iter().fold(TABLE_CELLS, |most, cells| most.max(*cells)) * (1.0 + TOLERANCE)
    }

    /// Most cells of all tables together.
    fn total_limit(&self) -> f64 {
        TOTAL_CELLS.max(self.cells.iter().sum()) * (1.0 + TOLERANCE)
    }
}

/// Cells of a table.
fn cells(levels: &[f64], set: &[u32]) -> f64 {
    set.iter().map(|k| levels[*k as usize]).product::<f64>().min(MOST_CELLS)
}

/// Weights relative to the largest, none so small that its table counts for nothing.
fn balanced(weights: &[f64], cells: &[f64]) -> Vec<f64> {
    let most = weights.iter().zip(cells).fold(0.0, |most: f64, (w, cells)| most.max(w * cells));
    if most == 0.0 {
        return vec![1.0; weights.len()];
    }
    let raised: Vec<f64> = weights.iter().zip(cells).map(|(w, cells)| w.max(LITTLE * most / cells)).collect();
    let largest = raised.iter().fold(0.0, |largest: f64, w| largest.max(*w));
    raised.into_iter().map(|w| w / largest).collect()
}

/// A marginal table that may be measured.
pub(super) struct Marginal {
    /// Positions of its attributes, rising.
    pub(super) attributes: Vec<u32>,
    /// How many cells it has.
    pub(super) cells: f64,
    /// The sets of the closure that are within it.
    pub(super) inside: Vec<u32>,
    /// The wanted sets that are.
    pub(super) answers: Vec<u32>,
}

/// All that a search reads.
pub(super) struct Problem {
    /// What is wanted.
    pub(super) wanted: Wanted,
    /// All sets within it.
    pub(super) closure: Closure,
    /// Which wanted set a set of the closure is, if one.
    wanted_at: Vec<u32>,
    /// Attributes of all wanted sets, one set after the other, and where each starts.
    members: Vec<u32>,
    starts: Vec<u32>,
    /// The wanted sets that have each attribute.
    pub(super) with: Vec<Vec<u32>>,
    /// What a wanted set counts for that misses so many attributes but is not covered; nothing once it is.
    pub(super) credits: Vec<f64>,
    /// Attributes of as many levels are one class: which each is in, and the logarithms of these levels.
    pub(super) classes: Vec<usize>,
    pub(super) class_logs: Vec<f64>,
    /// Most cells of one table, and of all.
    pub(super) table_limit: f64,
    pub(super) total_limit: f64,
}

impl Problem {
    /// What is looked up about these sets.
    pub(super) fn new(wanted: Wanted) -> Self {
        let (closure, nodes) = Closure::new(&wanted);
        let mut wanted_at = vec![NONE; closure.errors.len()];
        nodes.iter().enumerate().for_each(|(k, node)| wanted_at[*node as usize] = k as u32);
        let mut with = vec![Vec::new(); wanted.attributes.len()];
        for (k, set) in wanted.sets.iter().enumerate() {
            for a in set {
                with[*a as usize].push(k as u32);
            }
        }
        let mut starts = vec![0];
        starts.extend(wanted.sets.iter().scan(0, |end, set| {
            *end += set.len() as u32;
            Some(*end)
        }));
        let members = wanted.sets.concat();
        let largest = wanted.sets.last().map_or(0, Vec::len);
        let mut credits = vec![0.0];
        credits.extend(std::iter::successors(Some(1.0), |credit| Some(credit * PARTIAL)).take(largest));
        let mut distinct: Vec<f64> = Vec::new();
        let class = |levels: &f64| {
            distinct.iter().position(|other| other == levels).unwrap_or_else(|| {
                distinct.push(*levels);
                distinct.len() - 1
            })
        };
        let classes = wanted.levels.iter().map(class).collect();
        let class_logs = distinct.iter().map(|levels| levels.ln()).collect();
        let (table_limit, total_limit) = (wanted.table_limit(), wanted.total_limit());
        Self {
            wanted,
            closure,
            wanted_at,
            members,
            starts,
            with,
            credits,
            classes,
            class_logs,
            table_limit,
            total_limit,
        }
    }

    /// The attributes of a wanted set, as they lie in memory one set after the other.
    pub(super) fn members(&self, k: usize) -> &[u32] {
        &self.members[self.starts[k] as usize..self.starts[k + 1] as usize]
    }

    /// A table of these attributes, rising.
    pub(super) fn marginal(&self, attributes: Vec<u32>) -> Rc<Marginal> {
        let inside = self.closure.inside(&attributes);
        let answers = inside.iter().map(|node| self.wanted_at[*node as usize]).filter(|k| *k != NONE).collect();
        Rc::new(Marginal { cells: cells(&self.wanted.levels, &attributes), attributes, inside, answers })
    }

    /// All wanted tables.
    pub(super) fn every_wanted(&self) -> Vec<Rc<Marginal>> {
        self.wanted.sets.iter().map(|set| self.marginal(set.clone())).collect()
    }

    /// The table of all attributes, if it is not too large.
    pub(super) fn union(&self) -> Option<Rc<Marginal>> {
        let fits = self.wanted.union_cells() <= self.table_limit;
        fits.then(|| self.marginal((0..self.wanted.attributes.len() as u32).collect()))
    }
}
