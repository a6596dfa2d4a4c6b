use super::local_search::Cut;
use super::*;
use crate::split_mix::SplitMix;
use proptest::prelude::*;

const GOALS: [CutGoal; 3] = [CutGoal::Minimum, CutGoal::Maximum, CutGoal::Sparsest];

fn matrix(n: usize, mut weight: impl FnMut(usize, usize) -> f64) -> Vec<f64> {
    let mut weights = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..i {
            let w = weight(i, j);
            weights[i * n + j] = w;
            weights[j * n + i] = w;
        }
    }
    weights
}

fn weight(weights: &[f64], side: &[bool]) -> f64 {
    let n = side.len();
    let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.filter(|(i, j)| side[*i] != side[*j]).map(|(i, j)| weights[i * n + j]).sum()
}

fn score(weights: &[f64], side: &[bool], goal: CutGoal) -> f64 {
    let (a, n) = (side.iter().filter(|s| **s).count() as f64, side.len() as f64);
    match goal {
        CutGoal::Minimum => weight(weights, side),
        CutGoal::Maximum => -weight(weights, side),
        CutGoal::Sparsest => weight(weights, side) / (a * (n - a)),
    }
}

fn brute_force(weights: &[f64], n: usize, goal: CutGoal) -> f64 {
    let sides = (1u32..(1 << n) - 1).map(|bits| (0..n).map(|v| bits >> v & 1 == 1).collect::<Vec<_>>());
    sides.map(|side| score(weights, &side, goal)).fold(f64::INFINITY, f64::min)
}

/// What holds for every answer.
fn checked(weights: &[f64], n: usize, goal: CutGoal) -> FoundCut {
    let found = search(weights, n, goal).unwrap();
    let size = found.side.iter().filter(|s| **s).count();
    assert!(size > 0 && (2 * size < n || (2 * size == n && found.side[0])));
    let total: f64 = weights.iter().map(|w| w.abs()).sum();
    assert!((found.weight - weight(weights, &found.side)).abs() <= 1e-12 * total);
    assert!(found.exact || n > 40);
    assert_eq!(found, search(weights, n, goal).unwrap());
    found
}

#[test]
fn known_answers() {
    // Two triangles joined by one edge.
    let edges = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)];
    let weights = matrix(6, |i, j| f64::from(u8::from(edges.contains(&(j, i)))));
    let left = vec![true, true, true, false, false, false];
    for goal in [CutGoal::Minimum, CutGoal::Sparsest] {
        let found = checked(&weights, 6, goal);
        assert_eq!((found.side, found.weight), (left.clone(), 1.0));
    }
    assert_eq!(checked(&weights, 6, CutGoal::Maximum).weight, 5.0);
    // A negative edge makes a cut smaller than none.
    let found = checked(&matrix(3, |i, j| if (i, j) == (2, 1) { -2.0 } else { 1.0 }), 3, CutGoal::Minimum);
    assert_eq!((found.side, found.weight), (vec![false, true, false], -1.0));
    let pair = checked(&[0.0, 3.0, 3.0, 0.0], 2, CutGoal::Sparsest);
    assert_eq!((pair.side, pair.weight), (vec![true, false], 3.0));
}

#[test]
fn an_empty_graph_has_cuts() {
    for n in [2, 5, 25] {
        for goal in GOALS {
            assert_eq!(checked(&vec![0.0; n * n], n, goal).weight, 0.0);
        }
    }
}

#[test]
fn malformed_calls() {
    let path = [0.0, 1.0, 1.0, 0.0];
    let is_invalid = |weights: &[f64], n| search(weights, n, CutGoal::Minimum).is_err();
    assert!(!is_invalid(&path, 2));
    assert!(is_invalid(&[], 0) && is_invalid(&[0.0], 1) && is_invalid(&path, usize::MAX));
    assert!(is_invalid(&path[..3], 2) && is_invalid(&path, 3));
    assert!(is_invalid(&[0.0, 1.0, 2.0, 0.0], 2) && is_invalid(&[1.0, 1.0, 1.0, 0.0], 2));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
        assert!(is_invalid(&[0.0, bad, bad, 0.0], 2));
    }
}

proptest! {
        #[test]
        fn small_graphs_exactly(
            n in 2usize..=9,
            entries in prop_oneof![
                prop::collection::vec((-3i8..=3).prop_map(f64::from), 36),
                prop::collection::vec(-1e3f64..1e3, 36),
            ],
        ) {
            let weights = matrix(n, |i, j| entries[i * (i - 1) / 2 + j]);
            for goal in GOALS {
                let found = checked(&weights, n, goal);
                let least = brute_force(&weights, n, goal);
                prop_assert!((score(&weights, &found.side, goal) - least).abs() <= 1e-9, "{goal:?}: {least}");
            }
        }

        /// Local search alone, where all cuts can be looked at. Not a theorem: a property of these seeds' graphs.
        #[test]
        fn local_search_against_enumeration(n in 4usize..=12, seed in any::<u64>()) {
            let mut words = SplitMix(seed);
            let weights = matrix(n, |_, _| words.uniform() - 0.5);
            let graph = Graph::new(&weights, n).unwrap();
            for goal in GOALS {
                let (found, best) = (graph.improve(goal), brute_force(&weights, n, goal));
                prop_assert!((score(&weights, &found, goal) - best).abs() <= 1e-9, "{goal:?}");
            }
        }

        /// Running weights and pulls are those of the definition; a swap is the best of all, or none helps.
        #[test]
        fn moves_by_the_definition(n in 3usize..=9, seed in any::<u64>(), turned in any::<bool>()) {
            let mut words = SplitMix(seed);
            let weights = matrix(n, |_, _| words.uniform() - 0.5);
            let graph = Graph::new(&weights, n).unwrap();
            let goal = if turned { CutGoal::Maximum } else { CutGoal::Minimum };
            let mut cut = Cut::new(&graph, &(0..n).map(|v| v == 0 || (v > 1 && words.uniform() < 0.5)).collect::<Vec<_>>());
            for _ in 0..4 {
                let side = inside(&cut.signs);
                let swapped = |u: usize, v: usize| {
                    let mut side = side.clone();
                    side.swap(u, v);
                    score(&weights, &side, goal)
                };
                let least = (0..n).flat_map(|u| (0..n).map(move |v| (u, v))).map(|(u, v)| swapped(u, v));
                let least = least.fold(f64::INFINITY, f64::min);
                let before = cut.score(goal);
                prop_assert_eq!(cut.swap(goal), least < before - 1e-12);
                prop_assert!((cut.score(goal) - least).abs() <= 1e-12);
                let improved = cut.pass(goal);
                let after = cut.score(goal);
prop_assert!((improved && after < least) || (!improved && (after - least).abs() <= 1e-12));
                let fresh = Cut::new(&graph, &inside(&cut.signs));
                prop_assert!((cut.weight - weight(&weights, &inside(&cut.signs))).abs() <= 1e-12);
                prop_assert!(cut.size == fresh.size && cut.size > 0 && cut.size < n);
                prop_assert!(cut.pulls.iter().zip(&fresh.pulls).all(|(a, b)| (a - b).abs() <= 1e-12));
            }
        }

        /// Heavy within two blocks, light between them, noise everywhere.
        #[test]
        fn planted_cuts(n in 21usize..60, share in 0.2f64..0.5, seed in any::<u64>()) {
            let mut words = SplitMix(seed);
            let inside: Vec<bool> = {
                let size = ((share * n as f64) as usize).max(5);
                let mut order: Vec<(f64, usize)> = (0..n).map(|v| (words.uniform(), v)).collect();
                order.sort_by(|a, b| a.0.total_cmp(&b.0));
                let chosen: Vec<usize> = order[..size].iter().map(|(_, v)| *v).collect();
                (0..n).map(|v| chosen.contains(&v)).collect()
            };
            let weights = matrix(n, |i, j| {
                let base = if inside[i] == inside[j] { 4.0 } else { 0.0 };
                base + words.uniform() - 0.5
            });
            let planted = checked(&weights, n, CutGoal::Sparsest);
            prop_assert!(planted.side.iter().zip(&inside).all(|(a, b)| a == b)
                || planted.side.iter().zip(&inside).all(|(a, b)| a != b));
            let least = checked(&weights, n, CutGoal::Minimum);
            prop_assert!(least.weight <= weight(&weights, &inside) + 1e-9);
            // Turned around, the planted cut is the greatest.
            let turned: Vec<f64> = weights.iter().map(|w| -w).collect();
            let greatest = checked(&turned, n, CutGoal::Maximum);
            prop_assert!(greatest.weight >= -least.weight - 1e-9);
        }

        /// All positive edges of a bipartite graph can be cut at once.
        #[test]
        fn greatest_cuts_of_bipartite_graphs(n in 21usize..60, density in 0.1f64..1.0, seed in any::<u64>()) {
            let mut words = SplitMix(seed);
            let left: Vec<bool> = (0..n).map(|_| words.uniform() < 0.5).collect();
            let weights = matrix(n, |i, j| {
                let present = words.uniform() < density;
                if present && left[i] != left[j] { 0.1 + words.uniform() } else { 0.0 }
            });
            let all = weights.iter().sum::<f64>() / 2.0;
            prop_assert!((checked(&weights, n, CutGoal::Maximum).weight - all).abs() <= 1e-9);
        }

        /// Graphs of weights that are not negative: Stoer and Wagner's algorithm is exact, and local search keeps it.
        #[test]
        fn least_cuts_of_positive_weights(n in 2usize..=12, density in 0.2f64..1.0, seed in any::<u64>()) {
            let mut words = SplitMix(seed);
            let weights = matrix(n, |_, _| if words.uniform() < density { words.uniform() } else { 0.0 });
            let side = Graph::new(&weights, n).unwrap().stoer_wagner();
            prop_assert!(side.contains(&true) && side.contains(&false));
            prop_assert!((weight(&weights, &side) - brute_force(&weights, n, CutGoal::Minimum)).abs() <= 1e-9);
        }
    }
