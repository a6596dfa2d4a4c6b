//! All sets within wanted ones, numbered.

use super::wanted::Wanted;

/// The sets within wanted ones, in a tree: the children of a set have one more attribute, after all of its own.
///
/// Smaller sets come first, and the children of a set one after the other. With a set all that is within it is here, so
/// the sets within a table are found by walking down its attributes alone.
pub(super) struct Closure {
    /// The last attribute of each set; of the empty set, which is the first, nothing.
    last: Vec<u32>,
    /// Where the children of each set start; those of the next one start where they end.
    first_child: Vec<u32>,
    /// `e_S`: what the squared error counts with.
    pub(super) errors: Vec<f64>,
}

/// A set within a wanted one.
struct Subset {
    /// Its number.
    node: u32,
    /// Its last attribute.
    last: u32,
    /// The wanted set, and the position in it after the last attribute.
    wanted: u32,
    next: u32,
    /// `w_W Π_{i∈S} (n_i − 1) / Π_{i∈W} n_i`.
    error: f64,
}

impl Closure {
    /// The closure, and which of its sets each wanted one is.
    pub(super) fn new(wanted: &Wanted) -> (Self, Vec<u32>) {
        let mut closure = Self { last: vec![u32::MAX], first_child: vec![1], errors: vec![0.0] };
        let mut nodes = vec![0; wanted.sets.len()];
        let empty = wanted.weights.iter().zip(&wanted.cells).enumerate();
        let mut layer: Vec<Subset> = empty
            .map(|(k, (w, cells))| Subset { node: 0, last: 0, wanted: k as u32, next: 0, error: w / cells })
            .collect();
        closure.errors[0] = layer.iter().map(|subset| subset.error).sum();
        while !layer.is_empty() {
            layer = larger(&layer, wanted);
            closure.number(&mut layer);
            // Those of as many attributes as their wanted set are seen last.
            for subset in &layer {
                nodes[subset.wanted as usize] = subset.node;
            }
        }
        (closure, nodes)
    }

    /// Numbers sets of one more attribute than before, which come with the numbers of the sets that they extend.
    fn number(&mut self, layer: &mut [Subset]) {
        layer.sort_by_key(|subset| (subset.node, subset.last));
        let mut before = None;
        for subset in layer.iter_mut() {
            let key = (subset.node, subset.last);
            if before != Some(key) {
                before = Some(key);
                self.first_child.resize(subset.node as usize + 1, self.last.len() as u32);
                self.last.push(subset.last);
                self.errors.push(0.0);
            }
            subset.node = self.last.len() as u32 - 1;
            self.errors[subset.node as usize] += subset.error;
        }
    }

    /// The numbers of the children of a set.
    fn children(&self, node: u32) -> std::ops::Range<usize> {
        let start = |node: usize| self.first_child.get(node).map_or(self.last.len(), |start| *start as usize);
        start(node as usize)..start(node as usize + 1)
    }

    /// The sets within these attributes, which rise.
    pub(super) fn inside(&self, attributes: &[u32]) -> Vec<u32> {
        let mut found = vec![0];
        let mut seen = 0;
        while seen < found.len() {
            let children = self.children(found[seen]);
            seen += 1;
            let last = &self.last[children.clone()];
            let mut at = 0;
            if last.is_empty() {
                continue;
            }
            for attribute in attributes {
                at += last[at..].partition_point(|other| other < attribute);
                if last.get(at) == Some(attribute) {
                    found.push((children.start + at) as u32);
                }
            }
        }
        found
    }
}

/// All sets that have one attribute more of their wanted set, after those that they have.
fn larger(layer: &[Subset], wanted: &Wanted) -> Vec<Subset> {
    let extensions = |subset: &Subset| {
        let Subset { node, wanted: of, next, error, .. } = *subset;
        let rest = wanted.sets[of as usize].iter().enumerate().skip(next as usize);
        rest.map(move |(k, last)| {
            let error = error * (wanted.levels[*last as usize] - 1.0);
            Subset { node, last: *last, wanted: of, next: k as u32 + 1, error }
        })
    };
    layer.iter().flat_map(extensions).collect()
}
