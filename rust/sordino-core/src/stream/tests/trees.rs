//! Trees: node matrices from their definitions, `BC = A`, and all neighbours.

use super::rebuild::{check_products, worst, worst_exchange};
use super::*;
use crate::stream::Participation;

/// The items that each sample's node sums, in the order in which samples are drawn: from the definitions of the trees.
fn nodes(mechanism: StreamMechanism, n: usize) -> Vec<Vec<usize>> {
    match mechanism {
        StreamMechanism::BinaryTree => {
            (0..n).map(|t| (t + 1 - (1 << (t + 1).trailing_zeros())..=t).collect()).collect()
        }
        StreamMechanism::HonakerTree => {
            let closing = |t: usize| (0..=(t + 1).trailing_zeros()).map(move |h| (t + 1 - (1 << h)..=t).collect());
            (0..n).flat_map(closing).collect()
        }
        StreamMechanism::SmoothTree => smooth(n),
        StreamMechanism::SubtractionTree { branching } => subtraction(branching.unwrap() as usize, n),
        _ => unreachable!(),
    }
}

/// Leaves are the labels with the right number of ones in order; item `t` sits on the `t`-th.
fn smooth(n: usize) -> Vec<Vec<usize>> {
    let choose = |h: u64, k: u64| (0..k).fold(1u64, |p, i| p * (h - i) / (i + 1));
    // Least ones·zeros with a leaf for every prefix, then the least height.
    let (_, height, ones) = (1..20u64)
        .flat_map(|h| (1..h).map(move |k| (h, k)))
        .filter(|(h, k)| choose(*h, *k) > n as u64)
        .map(|(h, k)| (k * (h - k), h, k))
        .min()
        .unwrap();
    let labels: Vec<u64> =
        (0..1u64 << height).filter(|label| u64::from(label.count_ones()) == ones).take(n + 1).collect();
    let mut nodes = Vec::new();
    for t in 1..=n {
        let changed = (labels[t] ^ labels[t - 1]).ilog2();
        for bit in (0..=changed).filter(|bit| labels[t] >> bit & 1 == 1) {
            let left = (labels[t] >> bit) - 1;
            nodes.push((0..n).filter(|i| labels[*i] >> bit == left).collect());
        }
    }
    nodes
}

/// Node `(level, j)` sums the items `j·k^level … (j+1)·k^level − 1`.
fn subtraction(k: usize, n: usize) -> Vec<Vec<usize>> {
    let half = (k - 1) / 2;
    let levels = (1..64).find(|levels| k.pow(*levels) > 2 * n).unwrap();
    let mut nodes = Vec::new();
    for t in 1..=n {
        for level in 0..levels {
            let width = k.pow(level);
            let nearest = |t: usize| (t + (width - 1) / 2) / width;
            let node = |j: usize| (j * width..((j + 1) * width).min(n)).collect::<Vec<_>>();
            let (before, now) = (nearest(t - 1), nearest(t));
            if before == now {
                break;
            }
            let parent = |j: usize| (j + half) / k;
            if parent(before) != parent(now) {
                nodes.extend((parent(now) * k - half..parent(now) * k).map(node));
            } else if before >= parent(now) * k {
                nodes.push(node(before));
            }
        }
    }
    nodes
}

#[test]
fn trees_rebuilt() {
    for n in [1usize, 2, 3, 8, 11, 13] {
        for (mechanism, law) in [
            (StreamMechanism::BinaryTree, GAUSS),
            (StreamMechanism::BinaryTree, NoiseLaw::Laplace),
            (StreamMechanism::HonakerTree, GAUSS),
            (StreamMechanism::HonakerTree, NoiseLaw::Laplace),
            (StreamMechanism::SmoothTree, GAUSS),
            (StreamMechanism::SubtractionTree { branching: Some(3) }, NoiseLaw::Laplace),
            (StreamMechanism::SubtractionTree { branching: Some(5) }, NoiseLaw::Laplace),
        ] {
            let plan = plan(Filter::RunningSum, mechanism, law, Horizon::Hard(n as u64), Objective::Max);
            let (colouring, sizes) = colouring(&plan, n);
            assert!(sizes.iter().all(|size| *size == 1.0));
            let nodes = nodes(mechanism, n);
            assert_eq!(nodes.len(), sizes.len(), "{mechanism:?} {n}");
            let sums = workload(&Filter::RunningSum, n);
            let b = sums.times(&colouring);
            let c = Matrix::new(nodes.len(), n, |i, j| f64::from(u8::from(nodes[i].contains(&j))));
            assert!(b.times(&c).distance(&sums) <= 1e-11, "{mechanism:?} {n} {:?}", b.times(&c));

            let l1 = law == NoiseLaw::Laplace;
            let steps: Vec<u64> = (1..=n as u64).collect();
            for (t, variance) in plan.variances(&steps).unwrap().into_iter().enumerate() {
                let found: f64 = b.row(t).iter().map(|v| v * v).sum::<f64>() * if l1 { 2.0 } else { 1.0 };
                assert!((variance / found - 1.0).abs() < 1e-8, "{mechanism:?} {n} {t} {variance} {found}");
            }
            check_products(&plan, &c);
            let exchange = plan.sensitivity(&[Participation::single().exchanged()]).get();
            assert!(worst_exchange(&c, l1) <= exchange * (1.0 + 1e-12), "{mechanism:?} {n}");
            for (count, separation) in [(1, 1), (2, 1), (2, 3), (3, 1), (3, 2)] {
                let found = worst(&c, count, separation, l1);
                let pattern = Participation::new(count as u64, 1, separation as u64).unwrap();
                let bound = plan.sensitivity(&[pattern]).get();
                assert!(found <= bound * (1.0 + 1e-12), "{mechanism:?} {law:?} {n} {count} {found} {bound}");
                let whole = n.is_power_of_two() || mechanism == StreamMechanism::HonakerTree;
                let binary = matches!(mechanism, StreamMechanism::BinaryTree | StreamMechanism::HonakerTree);
                assert!(!(binary && whole && count == 1) || found >= bound * (1.0 - 1e-12));
            }
        }
    }
}

/// Noise per item and per sum with Laplace noise.
#[test]
fn ends_in_l1() {
    for n in [1usize, 4, 7] {
        for mechanism in [StreamMechanism::Identity, StreamMechanism::Output] {
            let plan = plan(Filter::RunningSum, mechanism, NoiseLaw::Laplace, Horizon::Hard(n as u64), Objective::Max);
            let c = colouring(&plan, n).0.inverse();
            for (count, separation) in [(1, 1), (2, 1), (2, 3), (3, 2)] {
                let pattern = Participation::new(count as u64, 1, separation as u64).unwrap();
                let bound = plan.sensitivity(&[pattern]).get();
                assert!((worst(&c, count, separation, true) / bound - 1.0).abs() < 1e-9, "{mechanism:?} {n} {count}");
            }
        }
    }
}
