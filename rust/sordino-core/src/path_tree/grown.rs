//! A tree that has grown: what was published of its nodes, and what follows from it.

use super::region::Region;
use super::rule::{Growth, Next, Rule};
use crate::door::WHOLE;
use crate::error::Error;
use crate::estimate::{Tree, top_down};
use crate::interrupt::poll;

/// Where measurements come from.
pub(crate) trait Source {
    /// A node's count with noise, for a share of the budget of all paths through it.
    fn measure(&mut self, node: usize, share: u64) -> Result<f64, Error>;
    /// Divides a node; its parts are numbered next, row by row.
    fn divide(&mut self, node: usize, fan: [u32; 2]) -> Result<(), Error>;
}

/// One measurement of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    value: f64,
    variance: f64,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    region: Region,
    depth: u32,
    /// What it is measured with at first, and what is left then.
    share: u64,
    left: u64,
    readings: [Option<Reading>; 2],
}

/// Nodes level by level, the top first.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    nodes: Vec<Node>,
    /// The parts of node `v` are `starts[v]..starts[v + 1]`.
    starts: Vec<usize>,
    /// Whether measurements decided on parts.
    looks: bool,
}

/// Nodes between two looks at signals.
const PAUSE: usize = 1 << 12;

impl Grown {
    /// Grows a tree from the top: what is measured next depends on what was published before, and on nothing else.
    pub(crate) fn grow(rule: &Rule, source: &mut impl Source) -> Result<Self, Error> {
        let (whole, top) = (WHOLE, rule.top());
        let root =
            Node { region: Region::whole(rule.shape), depth: 0, share: top, left: whole - top, readings: [None; 2] };
        let (mut nodes, mut starts) = (vec![root], Vec::new());
        let mut v = 0;
        while v < nodes.len() {
            if v % PAUSE == 0 {
                poll()?;
            }
            starts.push(nodes.len());
            let Node { region, depth, share, left, .. } = nodes[v].clone();
            let mut measure =
                |share| Ok::<_, Error>(Reading { value: source.measure(v, share)?, variance: rule.variance(share) });
            let first = if share > 0 { Some(measure(share)?) } else { None };
            nodes[v].readings[0] = first;
            match rule.next(&region, depth, first.map_or(0.0, |reading| reading.value), left) {
                Next::Leaf => {}
                Next::Again => nodes[v].readings[1] = Some(measure(left)?),
                Next::Divide { fan, share } => {
                    source.divide(v, fan)?;
                    let part =
                        |region| Node { region, depth: depth + 1, share, left: left - share, readings: [None; 2] };
                    nodes.extend(region.parts(fan).map(part));
                }
            }
            v += 1;
        }
        starts.push(nodes.len());
        Ok(Self { nodes, starts, looks: rule.growth == Growth::Adaptive })
    }

    fn parts(&self, v: usize) -> std::ops::Range<usize> {
        self.starts[v]..self.starts[v + 1]
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: there is the top.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The cells of every node.
    pub fn regions(&self) -> impl Iterator<Item = Region> + '_ {
        self.nodes.iter().map(|node| node.region)
    }

    /// Levels below the top, of every node.
    pub fn depths(&self) -> impl Iterator<Item = u32> + '_ {
        self.nodes.iter().map(|node| node.depth)
    }

    /// The last measurement of every node with its variance, if nothing was decided on it; else no numbers.
    ///
    /// Given where the tree has grown these alone are unbiased. What decided on parts has none: a node is divided more often
    /// when its noise is high.
    pub fn undecided(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        (0..self.len()).map(|v| {
            let decided = self.looks && !self.parts(v).is_empty();
            let last = self.nodes[v].readings[1].or(self.nodes[v].readings[0]).filter(|_| !decided);
            last.map_or((f64::NAN, f64::NAN), |reading| (reading.value, reading.variance))
        })
    }

    /// Everything that was measured: cells, count with noise, variance; node by node.
    pub fn measured(&self) -> impl Iterator<Item = (Region, f64, f64)> + '_ {
        let of = |node: &Node| node.readings.map(|reading| reading.map(|r| (node.region, r.value, r.variance)));
        self.nodes.iter().flat_map(of).flatten()
    }

    /// Counts that are not negative and add up, one a node: least squares of all that was measured, from the top down.
    pub fn counts(&self) -> Vec<f64> {
        let (values, variances) = self.least_squares();
        let top = values[0].max(0.0);
        let starts: Vec<usize> = self.starts.iter().map(|start| start - 1).collect();
        let mut counts = vec![top];
        counts.extend(top_down(Tree(&starts), &values[1..], &variances[1..], top));
        counts
    }

    /// Estimates of nodes from what was measured of them and below, and their variances.
    fn least_squares(&self) -> (Vec<f64>, Vec<f64>) {
        let mut found = (vec![0.0; self.len()], vec![0.0; self.len()]);
        for v in (0..self.len()).rev() {
            let parts = self.parts(v);
            let below = (!parts.is_empty())
                .then(|| Reading { value: found.0[parts.clone()].iter().sum(), variance: found.1[parts].iter().sum() });
            let known = self.nodes[v].readings.iter().copied().chain([below]).flatten();
            // A variance may be so small that it is zero.
            let precision = |reading: &Reading| 1.0 / reading.variance.max(1e-200);
            let (sum, all) =
                known.fold((0.0, 0.0), |(sum, all), r| (sum + precision(&r) * r.value, all + precision(&r)));
            (found.0[v], found.1[v]) = if all > 0.0 { (sum / all, 1.0 / all) } else { (0.0, f64::MAX.sqrt()) };
        }
        found
    }

    /// The table: the count of a leaf is spread evenly over its cells. Row by row.
    pub fn cells(&self) -> Vec<f64> {
        let shape = self.nodes[0].region.end.map(|side| side as usize);
        let mut cells = vec![0.0; shape[0] * shape[1]];
        for (v, count) in self.counts().into_iter().enumerate().filter(|(v, _)| self.parts(*v).is_empty()) {
            let region = self.nodes[v].region;
            let each = count / region.cells() as f64;
            for row in region.first[0]..region.end[0] {
                let start = row as usize * shape[1];
                cells[start + region.first[1] as usize..start + region.end[1] as usize].fill(each);
            }
        }
        cells
    }
}
