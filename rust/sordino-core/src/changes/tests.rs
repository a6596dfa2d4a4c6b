use super::*;
use crate::linear_algebra::from_rows;
use proptest::prelude::*;

/// `max vᵀ G v` over all changes, by listing them.
fn naive(gram: &Gram, changes: Changes) -> f64 {
    let values: &[i8] = if changes.signed { &[-1, 0, 1] } else { &[0, 1] };
    let mut largest = 0.0f64;
    let mut at = vec![0usize; gram.cells];
    loop {
        let v: Vec<i8> = at.iter().map(|k| values[*k]).collect();
        if v.iter().filter(|x| **x != 0).count() <= changes.most {
            largest = largest.max(gram.square(&v));
        }
        let Some(place) = at.iter().position(|k| k + 1 < values.len()) else { return largest };
        at[place] += 1;
        at[..place].fill(0);
    }
}

fn random(rows: usize, cells: usize, seed: u64) -> Matrix {
    let mut random = crate::split_mix::SplitMix(seed);
    // Some entries alike, some columns alike, some zero.
    let entries: Vec<f64> = (0..rows * cells)
        .map(|k| {
            if seed.is_multiple_of(3) {
                random.index(5) as f64 - 2.0
            } else {
                random.uniform() - 0.3 + f64::from(k as u32 % 2)
            }
        })
        .collect();
    from_rows(rows, cells, &entries)
}

proptest! {
    #[test]
    fn every_proof_bounds_all_changes(rows in 1usize..6, cells in 1usize..8, most in 1usize..9, signed: bool, seed: u64) {
        let matrix = random(rows, cells, seed);
        let gram = Gram::new(&matrix);
        let changes = Changes { most: most.min(cells), signed };
        let known = naive(&gram, changes);
        let above = |bound: f64| bound >= known * (1.0 - 1e-12);
        prop_assert!(above(rows::bound(&gram, changes)));
        // Of a matrix of zeros none.
        let diagonal = by_diagonal(&gram, changes, known).unwrap().unwrap_or(f64::INFINITY);
        prop_assert!(above(diagonal), "{diagonal} {known}");
        let found = climb(&gram, changes, &starts(&gram, changes)).1;
        prop_assert!(found <= known * (1.0 + 1e-12));
        let all = enumeration::bound(&gram, changes, found).unwrap().unwrap();
        prop_assert!(above(all) && all <= known * (1.0 + 1e-8) + 1e-12, "{all} {known}");
        let norm = largest_norm(&matrix, Changes { most, signed }).unwrap().unwrap().get();
        prop_assert!(norm >= known.sqrt() && norm <= known.sqrt() * (1.0 + 1e-6) + 1e-150, "{norm} {}", known.sqrt());
    }

    #[test]
    fn diagonal_proofs_are_near(cells in 2usize..10, seed: u64) {
        // Nesterov: within π/2 for all signs, and for all of one direction.
        let gram = Gram::new(&random(4, cells, seed));
        for signed in [false, true] {
            let changes = Changes { most: cells, signed };
            let (bound, known) = (by_diagonal(&gram, changes, 1.0).unwrap().unwrap(), naive(&gram, changes));
            prop_assert!(bound <= known * std::f64::consts::FRAC_PI_2 * (1.0 + 1e-4) + 1e-12, "{bound} {known}");
        }
    }
}

#[test]
fn one_direction_is_near() {
    // Neighbouring cells in common, as measured for running sums; the changes are too many to list.
    for (cells, most) in [(40, 10), (40, 20), (40, 40)] {
        let entries: Vec<f64> = (0..cells * cells)
            .map(|k| if k % cells <= k / cells { 0.9f64.powi((k / cells - k % cells) as i32) } else { 0.0 })
            .collect();
        let gram = Gram::new(&from_rows(cells, cells, &entries));
        let changes = Changes { most, signed: false };
        let attained = climb(&gram, changes, &starts(&gram, changes)).1;
        let bound = by_diagonal(&gram, changes, attained).unwrap().unwrap();
        assert!(bound >= attained && bound <= 1.05 * attained, "{cells} {most}: {}", bound / attained);
    }
}

#[test]
fn kept_bits_round_up() {
    for value in [1.0, 1.0 + 1e-12, 3.7e-200, 8.1e200] {
        let up = coarse(value).get();
        assert!(up > value && up <= value * (1.0 + 2f64.powi(-25)), "{value} {up}");
    }
}
