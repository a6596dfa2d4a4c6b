//! Running sums whose state may be looked at once: a binary tree that stores nothing but noisy sums.
//!
//! A node's sum starts from noise `η`, drawn when the node begins, and gets further noise `φ` when it is published, at
//! its end. Nothing else is kept but published numbers, and every step draws its noise under a key of its own that is
//! wiped at once. So whoever sees the state at one moment sees, of every node that is not complete, its sum so far plus
//! `η`.
//!
//! **Privacy.** Let all noise have the scale that the plain tree needs. A node's view is `S + η + φ` if it was complete
//! at that moment or begins later. Else it is `S_before + η`, then `S_before + η + S_after + φ`: given the first number,
//! the second is one of `S_after + φ`. Items before the moment are covered by `η` (or, in complete nodes, by `φ`), items
//! after it by `φ`, each once a node, as in the plain tree: a unit's changes `a` before and `b` after in one node cost
//! `|a| + |b|` in ℓ1 and `√(a² + b²)` in ℓ2, no more than the plain tree is charged for both. So published answers and
//! one look at the state together satisfy the guarantee of the plain tree, with twice the variance. (Dwork, Naor, Pitassi
//! & Rothblum 2010, Section 4: pan-private counters.) Two looks are not covered.

use super::random::Key;
use super::stream::StreamDoor;
use crate::error::Error;
use crate::lattice::OUTPUT_LIMIT;
use crate::owner::Owner;
use zeroize::Zeroize;

/// A left node of one level, the only kind that prefix sums are made of.
#[derive(Debug)]
struct Level {
    /// Noise and items since the node began.
    sum: Vec<i64>,
    /// Published sum of all steps before the node.
    base: Vec<i64>,
}

/// Running sums of `dim` coordinates for so many steps.
pub struct PanPrivateTree {
    door: StreamDoor,
    steps: u64,
    step: u64,
    levels: Vec<Level>,
    published: Vec<i64>,
    owner: Owner,
    /// For tests and tutorials.
    key: Option<[u8; 32]>,
    closed: bool,
}

impl PanPrivateTree {
    /// Opens a tree for noise of scale `door`: fitted to the plain binary tree for as many steps.
    ///
    /// # Errors
    /// For a bad number of coordinates or steps.
    pub(crate) fn open(door: StreamDoor, steps: u64, dim: usize, key: Option<[u8; 32]>) -> Result<Self, Error> {
        if dim == 0 || dim > 1 << 20 {
            return Err(Error::invalid("dim", "must be from 1 to 2^20"));
        }
        let levels =
            (0..u64::BITS - steps.leading_zeros()).map(|_| Level { sum: vec![0; dim], base: vec![0; dim] }).collect();
        let owner = Owner::current();
        Ok(Self { door, steps, step: 0, levels, published: vec![0; dim], owner, key, closed: false })
    }

    /// Steps published so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Publishes the next step: the sums of all items so far.
    ///
    /// # Errors
    /// For the wrong number of entries, no steps left, another process, or if the operating system gives no randomness;
    /// then nothing has changed.
    pub fn update(&mut self, item: &[i64]) -> Result<(), Error> {
        Error::check_len("item", self.published.len(), item.len())?;
        if self.closed {
            return Err(Error::Closed);
        }
        if self.step == self.steps {
            return Err(Error::Horizon { left: 0 });
        }
        self.owner.check()?;
        let key = match self.key {
            None => Key::from_entropy()?,
            Some(mut bytes) => {
                bytes.iter_mut().zip(self.step.to_le_bytes()).for_each(|(byte, step)| *byte ^= step);
                Key::deterministic(bytes)
            }
        };
        let mut source = self.door.source(key);
        let quarters = self.door.quarter_units();
        for (l, level) in self.levels.iter_mut().enumerate() {
            let node = self.step >> l;
            if node % 2 == 1 {
                continue;
            }
            if node << l == self.step {
                source.fill(&mut level.sum, quarters);
                level.base.copy_from_slice(&self.published);
            }
            for (sum, x) in level.sum.iter_mut().zip(item) {
                *sum = sum.saturating_add(self.door.integer(*x));
            }
        }
        self.step += 1;
        let complete = &mut self.levels[self.step.trailing_zeros() as usize];
        source.fill(&mut self.published, quarters);
        for ((out, sum), base) in self.published.iter_mut().zip(&mut complete.sum).zip(&complete.base) {
            *out = out.saturating_add(*sum).saturating_add(*base).clamp(-OUTPUT_LIMIT, OUTPUT_LIMIT);
        }
        // Of a complete node nothing stays but what was published.
        complete.sum.as_mut_slice().zeroize();
        Ok(())
    }

    /// Whether it was closed.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Wipes all sums that were not published; the tree refuses every further step.
    pub fn close(&mut self) {
        self.closed = true;
        self.levels.iter_mut().for_each(|level| level.sum.as_mut_slice().zeroize());
        self.key.zeroize();
    }

    /// The sums published last.
    pub fn answers(&self) -> Vec<f64> {
        let spacing = 2f64.powi(self.door.exponent());
        self.published.iter().map(|k| *k as f64 * spacing).collect()
    }
}

impl Drop for PanPrivateTree {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for PanPrivateTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PanPrivateTree").field("step", &self.step).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::PanPrivateTree;
    use crate::domain::Domain;
    use crate::door::NoiseLaw;
    use crate::door::{StreamDoor, StreamShift};
    use crate::upper::Upper;

    const STEPS: u64 = 13;
    const LEVELS: usize = 4;

    fn open() -> PanPrivateTree {
        // So much noise that no two sums are equal by chance.
        let shift = StreamShift {
            ideal: Upper::exact(4.0e6),
            rounded: None,
            rounding: Upper::ZERO,
            largest_scale: 1.0,
            common: None,
        };
        let door = StreamDoor::fit(shift, Domain::integral(1000).unwrap(), NoiseLaw::Laplace, 1.0).unwrap();
        PanPrivateTree::open(door, STEPS, 2, Some([9; 32])).unwrap()
    }

    /// Lattice units of one.
    fn unit() -> i64 {
        1 << open().door.grid().unsigned_abs()
    }

    /// What the first coordinate shows in the step of each node, and of all left nodes after each step.
    fn run(items: &[i64]) -> (Vec<i64>, Vec<[i64; LEVELS]>) {
        let mut tree = open();
        let (mut nodes, mut states) = (Vec::new(), Vec::new());
        for (t, x) in items.iter().enumerate() {
            let level = (t + 1).trailing_zeros() as usize;
            let base = if level == 0 && t % 2 == 0 { tree.published[0] } else { tree.levels[level].base[0] };
            tree.update(&[*x, -3]).unwrap();
            nodes.push(tree.published[0] - base);
            states.push(std::array::from_fn(|l| tree.levels[l].sum[0]));
        }
        (nodes, states)
    }

    /// One item, any moment of intrusion: what its nodes show before and after costs at most one a level.
    #[test]
    fn answers_and_one_look_cost_one_a_level() {
        let items = [0i64; STEPS as usize];
        let (nodes, states) = run(&items);
        let mut most = 0;
        for i in 0..items.len() {
            let mut other = items;
            other[i] = 1;
            let (moved, others) = run(&other);
            for look in 0..items.len() {
                let mut cost = 0;
                for t in 0..items.len() {
                    let level = (t + 1).trailing_zeros() as usize;
                    let start = t + 1 - (1 << level);
                    let node = (moved[t] - nodes[t]).abs();
                    if start <= look && look < t {
                        let seen = others[look][level] - states[look][level];
                        cost += seen.abs() + (moved[t] - nodes[t] - seen).abs();
                    } else {
                        cost += node;
                    }
                }
                // Nodes that never end are seen too.
                for level in 0..LEVELS {
                    let start = (look + 1) >> (level + 1) << (level + 1);
                    if start <= look && start + (1 << level) > STEPS as usize {
                        cost += (others[look][level] - states[look][level]).abs();
                    }
                }
                assert!(cost <= LEVELS as i64 * unit(), "item {i}, look after step {look}");
                most = most.max(cost);
            }
        }
        assert_eq!(most, LEVELS as i64 * unit(), "the bound is attained");
    }

    /// The state is never free of noise where it has seen items: another key, another state.
    #[test]
    fn every_sum_of_the_state_has_noise_of_its_own() {
        let mut trees = [open(), open()];
        trees[1].key = Some([10; 32]);
        for _ in 0..STEPS {
            for tree in &mut trees {
                tree.update(&[5, 7]).unwrap();
            }
            let step = trees[0].step;
            for level in 0..LEVELS {
                let begun = (step >> level).is_multiple_of(2) && !step.is_multiple_of(1 << level);
                for c in 0..2 {
                    let [a, b] = [0, 1].map(|i| trees[i].levels[level].sum[c]);
                    assert_eq!(a != b, begun, "step {step}, level {level}");
                    assert!(begun || a == 0, "complete nodes leave nothing");
                }
            }
        }
        assert!(trees[0].update(&[0, 0]).is_err(), "no steps are left");
        assert!(open().update(&[0]).is_err());
    }
}
