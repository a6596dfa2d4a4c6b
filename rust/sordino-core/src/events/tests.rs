//! The increments against their definitions: small examples by hand, then everything computed anew offline.

use super::{Episodes, GraphEvents, GraphFunction, SimpleGraph, SpanningForest, Substrings, Words};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Edge = (i64, i64);

/// K4, an edge a step.
const K4: [Edge; 6] = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3)];
const FUNCTIONS: [GraphFunction; 5] = [
    GraphFunction::EdgeCount,
    GraphFunction::Triangles,
    GraphFunction::Stars { k: 2 },
    GraphFunction::Stars { k: 4 },
    GraphFunction::DegreeHistogram,
];

fn unzip(edges: &[Edge]) -> (Vec<i64>, Vec<i64>) {
    edges.iter().copied().unzip()
}

/// Running values, one row a step, of events that come one a step.
fn running(function: GraphFunction, vertices: u32, max_degree: Option<u32>, edges: &[Edge]) -> Vec<Vec<i64>> {
    let mut events = GraphEvents::new(function, vertices, max_degree).unwrap();
    let mut value = vec![0; events.width()];
    let mut push = |(u, v): &Edge| {
        events.push(*u, *v, &mut value);
        value.clone()
    };
    edges.iter().map(&mut push).collect()
}

/// The edges that the online rule keeps, from its definition.
fn kept(vertices: u32, max_degree: Option<u32>, edges: &[Edge]) -> BTreeSet<Edge> {
    let mut distinct: Vec<Edge> = Vec::new();
    for &(u, v) in edges {
        let edge = (u.min(v), u.max(v));
        if u != v && edge.0 >= 0 && edge.1 < i64::from(vertices) && !distinct.contains(&edge) {
            distinct.push(edge);
        }
    }
    let rank = |place: usize, end: i64| distinct[..place].iter().filter(|e| e.0 == end || e.1 == end).count();
    let limit = max_degree.map_or(usize::MAX, |d| d as usize);
    let keeps = |place: &usize| [distinct[*place].0, distinct[*place].1].iter().all(|end| rank(*place, *end) < limit);
    (0..distinct.len()).filter(keeps).map(|place| distinct[place]).collect()
}

/// Number of sets of `k` out of `n`, by counting them.
fn subsets(n: u32, k: u32) -> i64 {
    (0..1_u32 << n).filter(|set| set.count_ones() == k).count() as i64
}

/// A function of a set of edges, from its definition.
fn offline(function: GraphFunction, vertices: u32, max_degree: Option<u32>, graph: &BTreeSet<Edge>) -> Vec<i64> {
    let degree = |w: i64| graph.iter().filter(|e| e.0 == w || e.1 == w).count() as u32;
    let n = i64::from(vertices);
    match function {
        GraphFunction::EdgeCount => vec![graph.len() as i64],
        GraphFunction::Triangles => {
            let closes = |&(u, v): &Edge| {
                (v + 1..n).filter(|w| graph.contains(&(u, *w)) && graph.contains(&(v, *w))).count() as i64
            };
            vec![graph.iter().map(closes).sum()]
        }
        GraphFunction::Stars { k } => vec![(0..n).map(|w| subsets(degree(w), k)).sum()],
        GraphFunction::DegreeHistogram => {
            let mut counts = vec![0; max_degree.unwrap() as usize + 1];
            counts[0] = -n;
            (0..n).for_each(|w| counts[degree(w) as usize] += 1);
            counts
        }
    }
}

#[test]
fn graph_functions_of_k4() {
    let single = |function| running(function, 4, None, &K4).concat();
    assert_eq!(single(GraphFunction::EdgeCount), [1, 2, 3, 4, 5, 6]);
    assert_eq!(single(GraphFunction::Triangles), [0, 0, 1, 1, 2, 4]);
    assert_eq!(single(GraphFunction::Stars { k: 2 }), [0, 1, 3, 5, 8, 12]);
    let expected = [[2, 2, 0, 0], [1, 2, 1, 0], [1, 0, 3, 0], [0, 1, 2, 1], [0, 0, 2, 2], [0, 0, 0, 4]];
    let histograms = running(GraphFunction::DegreeHistogram, 4, Some(3), &K4);
    for (mut histogram, expected) in histograms.into_iter().zip(expected) {
        histogram[0] += 4;
        assert_eq!(histogram, expected);
    }
}

#[test]
fn forest_of_k4() {
    let mut forest = SpanningForest::new(4, 5).unwrap();
    let mut cost = 0;
    let costs: Vec<i64> = K4
        .iter()
        .zip([4, 1, 2, 5, 3, 1])
        .map(|((u, v), w)| {
            cost += forest.push(*u, *v, w);
            cost
        })
        .collect();
    assert_eq!(costs, [4, 5, 3, 8, 6, 4]);
}

/// The greedy rule keeps (2, 3) here: dropped edges count.
#[test]
fn dropped_edges_count_and_repeats_do_not() {
    let mut graph = SimpleGraph::new(5, Some(1)).unwrap();
    let stream = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 4), (4, 4), (-1, 2), (0, 5)];
    let kept: Vec<_> = stream.iter().map(|(u, v)| graph.insert(*u, *v)).collect();
    assert_eq!(kept, [Some((0, 1)), None, None, None, None, None, None, None, None]);
    assert_eq!((0..5).map(|w| graph.degree(w)).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);

    let mut graph = SimpleGraph::new(4, Some(2)).unwrap();
    let stream = [(0, 1), (1, 0), (0, 1), (1, 2), (1, 3), (2, 3)];
    let kept: Vec<_> = stream.iter().map(|(u, v)| graph.insert(*u, *v)).collect();
    assert_eq!(kept, [Some((0, 1)), None, None, Some((1, 2)), None, Some((2, 3))]);
}

#[test]
fn large_stars_stop_at_the_cap() {
    let mut events = GraphEvents::new(GraphFunction::Stars { k: 40 }, 200, None).unwrap();
    let mut row = [0];
    for leaf in 1..200 {
        let before = row;
        events.push(0, leaf, &mut row);
        assert!(row[0] >= before[0] && row[0] <= i64::MAX / 4);
    }
    assert_eq!(row, [i64::MAX / 4]);
}

#[test]
fn malformed_calls_are_refused() {
    assert!(GraphEvents::new(GraphFunction::DegreeHistogram, 4, None).is_err());
    assert!(GraphEvents::new(GraphFunction::Stars { k: 1 }, 4, None).is_err());
    assert!(GraphEvents::new(GraphFunction::EdgeCount, 0, None).is_err());
    assert!(GraphEvents::new(GraphFunction::EdgeCount, 4, Some(0)).is_err());
    assert!(SpanningForest::new(0, 1).is_err());
    assert!(SpanningForest::new(3, i64::MAX as u64 / 8).is_ok());
    assert!(SpanningForest::new(3, i64::MAX as u64 / 8 + 1).is_err());
    assert!(SpanningForest::new(1, u64::MAX).is_err());
    assert!(Episodes::new(2, 30).is_err() && Substrings::new(2, 64).is_err());

    let mut events = GraphEvents::new(GraphFunction::EdgeCount, 4, None).unwrap();
    let (u, v) = unzip(&K4);
    assert!(events.rows(&u, &v[1..], &[6], &mut [0]).is_err());
    assert!(events.rows(&u, &v, &[5], &mut [0]).is_err());
    assert!(events.rows(&u, &v, &[4, 3, 6], &mut [0; 3]).is_err());
    assert!(events.rows(&u, &v, &[6], &mut [0; 2]).is_err());
    let mut rows = [9; 4];
    events.rows(&u, &v, &[0, 2, 2, 6], &mut rows).unwrap();
    assert_eq!(rows, [0, 2, 0, 4], "no call above inserted anything");
}

#[test]
fn what_is_private_is_not_printed() {
    let mut events = GraphEvents::new(GraphFunction::Triangles, 4, None).unwrap();
    let before = format!("{events:?}");
    events.push(0, 1, &mut [0]);
    assert_eq!(format!("{events:?}"), before);
}

fn edges(vertices: i64) -> impl Strategy<Value = Vec<Edge>> {
    prop::collection::vec((-1..=vertices, -1..=vertices), 0..70)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn graph_functions_are_those_of_the_kept_edges(
        edges in edges(9), bound in prop::option::of(1_u32..7), cuts in prop::collection::vec(0_usize..70, 0..5),
    ) {
        for function in FUNCTIONS {
            let max_degree = if function == GraphFunction::DegreeHistogram { bound.or(Some(8)) } else { bound };
            let values = running(function, 9, max_degree, &edges);
            for (t, value) in values.iter().enumerate() {
                let graph = kept(9, max_degree, &edges[..=t]);
                prop_assert_eq!(value, &offline(function, 9, max_degree, &graph));
            }
            // In steps: the sums of what comes one by one.
            let mut ends: Vec<usize> = cuts.iter().map(|c| (*c).min(edges.len())).chain([edges.len()]).collect();
            ends.sort_unstable();
            let mut events = GraphEvents::new(function, 9, max_degree).unwrap();
            let width = events.width();
            let mut rows = vec![7; ends.len() * width];
            let (u, v) = unzip(&edges);
            events.rows(&u, &v, &ends, &mut rows).unwrap();
            let mut sum = vec![0; width];
            for (row, end) in rows.chunks(width).zip(ends) {
                sum.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
                let expected = if end == 0 { vec![0; width] } else { values[end - 1].clone() };
                prop_assert_eq!(&sum, &expected);
            }
        }
    }

    #[test]
    fn one_edge_more_changes_three_kept_ones(edges in edges(7), at in 0_usize..70, bound in 1_u32..5) {
        let mut shorter = edges.clone();
        if !edges.is_empty() {
            shorter.remove(at % edges.len());
        }
        let [long, short] = [&edges, &shorter].map(|stream| {
            let mut graph = SimpleGraph::new(7, Some(bound)).unwrap();
            let kept: BTreeSet<_> =
                stream.iter().filter_map(|(u, v)| graph.insert(*u, *v)).map(|(u, v)| (u.min(v), u.max(v))).collect();
            kept
        });
        prop_assert!(long.symmetric_difference(&short).count() <= 3);
    }

    #[test]
    fn forests_cost_what_kruskals_do(
        edges in prop::collection::vec((-1_i64..=12, -1_i64..=12, -1_i64..=9), 0..120), cut in 0_usize..120,
    ) {
        let mut forest = SpanningForest::new(12, 8).unwrap();
        let mut cost = 0;
        let mut costs = vec![0];
        for (t, (u, v, w)) in edges.iter().enumerate() {
            cost += forest.push(*u, *v, *w);
            prop_assert_eq!(cost, kruskal(12, 8, &edges[..=t]));
            costs.push(cost);
        }
        let nodes = forest.bytes();
        prop_assert!(nodes <= 4096, "removed edges leave no memory behind: {}", nodes);
        let (u, (v, w)): (Vec<i64>, (Vec<i64>, Vec<i64>)) = edges.iter().map(|(u, v, w)| (*u, (*v, *w))).unzip();
        let cut = cut.min(edges.len());
        let mut rows = [5; 2];
        SpanningForest::new(12, 8).unwrap().rows(&u, &v, &w, &[cut, edges.len()], &mut rows).unwrap();
        prop_assert_eq!(rows, [costs[cut], cost - costs[cut]]);
    }

    #[test]
    fn substrings_are_counted_where_they_stand(
        (u, text) in texts(), longest in 1_u32..5,
    ) {
        let words = Words::new(u, longest).unwrap();
        let mut expected = BTreeMap::new();
        for end in 1..=text.len() {
            for start in end.saturating_sub(longest as usize)..end {
                let letters: Option<Vec<u32>> = text[start..end].iter().map(|c| known(*c, u)).collect();
                if let Some(index) = letters.and_then(|word| words.index(&word)) {
                    *expected.entry((end, index)).or_insert(0) += 1;
                }
            }
        }
        let mut substrings = Substrings::new(u, longest).unwrap();
        let mut got = BTreeMap::new();
        for (t, letter) in text.iter().enumerate() {
            substrings.push(*letter, |index| *got.entry((t + 1, index)).or_insert(0) += 1);
        }
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn episodes_are_counted_by_the_definition((u, text) in texts(), longest in 1_u32..5, start in any::<bool>()) {
        let mut episodes = Episodes::new(u, longest).unwrap();
        if start {
            episodes.run_out_of_times_after(7);
        }
        let mut got = BTreeMap::new();
        for (t, letter) in text.iter().enumerate() {
            episodes.push(*letter, |index| *got.entry((t, index)).or_insert(0) += 1);
        }
        prop_assert_eq!(got, minimal_occurrences(u, longest, &text));
    }
}

/// Minimum spanning forest of the well-formed edges: lightest first, if it joins two components.
fn kruskal(vertices: i64, max_weight: i64, edges: &[(i64, i64, i64)]) -> i64 {
    let fine = |w: i64| (0..vertices).contains(&w);
    let mut edges: Vec<_> =
        edges.iter().filter(|(u, v, w)| fine(*u) && fine(*v) && (0..=max_weight).contains(w)).collect();
    edges.sort_by_key(|e| e.2);
    let mut component: Vec<i64> = (0..vertices).collect();
    let mut cost = 0;
    for (u, v, w) in edges {
        let (from, to) = (component[*u as usize], component[*v as usize]);
        if from != to {
            component.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
            cost += w;
        }
    }
    cost
}

/// An alphabet and a text over it with unknown letters.
fn texts() -> impl Strategy<Value = (u32, Vec<i64>)> {
    (1_u32..4).prop_flat_map(|u| {
        (
            Just(u),
            prop::collection::vec(prop_oneof![9 => 0..i64::from(u), 1 => Just(-1), 1 => Just(i64::from(u))], 0..24),
        )
    })
}

fn known(letter: i64, alphabet: u32) -> Option<u32> {
    u32::try_from(letter).ok().filter(|c| *c < alphabet)
}

/// Ends of minimal occurrences, from the definition: `[s, t]` contains the word as a subsequence, `[s+1, t]` and
/// `[s, t−1]` do not.
fn minimal_occurrences(u: u32, longest: u32, text: &[i64]) -> BTreeMap<(usize, u64), i32> {
    let words = Words::new(u, longest).unwrap();
    let mut found = BTreeMap::new();
    for index in 0..words.count() {
        let word = words.word(index).unwrap();
        let occurs = |part: &[i64]| {
            let mut letters = part.iter();
            word.iter().all(|c| letters.any(|letter| *letter == i64::from(*c)))
        };
        for end in 0..text.len() {
            for start in 0..=end {
                if occurs(&text[start..=end]) && !occurs(&text[start + 1..=end]) && !occurs(&text[start..end]) {
                    *found.entry((end, index)).or_insert(0) += 1;
                }
            }
        }
    }
    found
}

/// Counts of all words that occur, written with letters `a, b, …`.
fn counted(longest: u32, text: &str, mut push: impl FnMut(i64, &mut dyn FnMut(u64))) -> String {
    let words = Words::new(3, longest).unwrap();
    let mut counts = BTreeMap::new();
    for letter in text.bytes() {
        push(i64::from(letter - b'a'), &mut |index| {
            let word: String = words.word(index).unwrap().iter().map(|c| (b'a' + *c as u8) as char).collect();
            *counts.entry(word).or_insert(0) += 1;
        });
    }
    let written: Vec<String> = counts.iter().map(|(word, count)| format!("{word}{count}")).collect();
    written.join(" ")
}

#[test]
fn substrings_of_abaab() {
    let mut substrings = Substrings::new(3, 3).unwrap();
    let counts = counted(3, "abaab", |letter, out| substrings.push(letter, out));
    assert_eq!(counts, "a3 aa1 aab1 ab2 aba1 b2 ba1 baa1");
}

#[test]
fn episodes_of_ababb_and_abcab() {
    let mut episodes = Episodes::new(3, 3).unwrap();
    let counts = counted(3, "ababb", |letter, out| episodes.push(letter, out));
    assert_eq!(counts, "a2 aa1 aab1 ab2 aba1 abb2 b3 ba1 bab1 bb2 bbb1");
    let mut episodes = Episodes::new(3, 2).unwrap();
    let counts = counted(2, "abcab", |letter, out| episodes.push(letter, out));
    assert_eq!(counts, "a2 aa1 ab2 ac1 b2 ba1 bb1 bc1 c1 ca1 cb1");
}
