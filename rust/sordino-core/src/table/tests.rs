//! Against an oracle that keeps every row: the theorem on all small tables, parts in any order, and what each condition is for.

use super::{PRIME, Participants, Rule, Seed, Tally, Users};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SEED: [u64; 6] = [1_103_515_245, 741_103_597, 1_597_334_677, 377_401_575, 69_069, 1_220_703_125];

type Row = (i64, i32, u32);

fn rule(cells: u32, bounds: [u32; 3], height: u32) -> Rule {
    let [max_cells, per_cell, max_records] = bounds;
    Rule::new(Seed::new(SEED).unwrap(), cells, max_cells, per_cell, max_records, height).unwrap()
}

fn tally_of(rule: Rule, rows: &[Row]) -> Tally {
    let mut tally = Tally::new(rule);
    update(&mut tally, rows);
    tally
}

fn update(tally: &mut Tally, rows: &[Row]) {
    let users: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let cells: Vec<i32> = rows.iter().map(|row| row.1).collect();
    let values: Vec<u32> = if tally.rule().height == 0 { Vec::new() } else { rows.iter().map(|row| row.2).collect() };
    tally.update(Users::Integers(&users), &cells, &values).unwrap();
}

/// The rule as it is written, in wide integers.
fn naive(rule: &Rule, rows: &[Row]) -> Vec<i64> {
    let p = u128::from(PRIME);
    let [a0, a1, a2, a3, a4, a5] = SEED.map(u128::from);
    let (l, c, k, h) =
        (rule.max_cells as usize, u128::from(rule.per_cell), u128::from(rule.max_records), u128::from(rule.height));
    let mut users: BTreeMap<i64, BTreeMap<u128, (u128, u128)>> = BTreeMap::new();
    for &(user, cell, value) in rows.iter().filter(|row| row.1 >= 0) {
        let held = users.entry(user).or_default().entry(cell as u128).or_default();
        *held = (held.0 + 1, held.1 + u128::from(value));
    }
    let mut table = vec![0; rule.cells as usize * rule.channels()];
    for (user, held) in users {
        let name = u128::from(user as u64);
        let h0 = (a0 * (name & p) % p + a1 * ((name >> 31) & p) % p) % p;
        let place = |k: u128| {
            let x = (h0 + a2 * k % p + a3) % p;
            let y = (x * x % p * ((x + a4) % p) % p + a5 * k) % p;
            y * y % p * ((y + a3) % p) % p
        };
        let mut cells: Vec<(u128, u128)> = held.keys().map(|&cell| (place(cell), cell)).collect();
        cells.sort_unstable();
        cells.truncate(l);
        let total: u128 = cells.iter().map(|(_, cell)| held[cell].0.min(c)).sum();
        let phase = (h0 + a4) % p % total;
        let mut before = 0;
        for (_, cell) in cells {
            let (n, sum) = held[&cell];
            let clipped = n.min(c);
            let w = if total <= k {
                clipped
            } else {
                ((before + clipped) * k + phase) / total - (before * k + phase) / total
            };
            before += clipped;
            let b = w * (sum / n) + (w * (sum % n) + phase % n) / n;
            if h == 0 {
                table[cell as usize] += w as i64;
            } else {
                table[2 * cell as usize] += (w * h - b) as i64;
                table[2 * cell as usize + 1] += b as i64;
            }
        }
    }
    table
}

/// Whether a difference of tables is what one user may add.
fn allowed(rule: &Rule, with: &[i64], without: &[i64]) -> bool {
    let change: Vec<i64> = with.iter().zip(without).map(|(a, b)| a - b).collect();
    let (c, height) = (rule.per_cell as i64, (rule.height as i64).max(1));
    let cells: Vec<i64> = change.chunks(rule.channels()).map(|pair| pair.iter().sum()).collect();
    change.iter().all(|&z| z >= 0)
        && cells.iter().all(|&z| z <= c * height && z % height == 0)
        && cells.iter().sum::<i64>() <= rule.max_records as i64 * height
        && cells.iter().filter(|&&z| z > 0).count() <= rule.max_cells as usize
}

#[test]
fn every_table_of_few_rows_keeps_its_bounds() {
    // Two users, three cells, four rows: all of them, under all bounds up to three.
    let options: Vec<Row> = (0..2).flat_map(|user| (0..3).map(move |cell| (user, cell, 0))).collect();
    let choices = options.len() + 1;
    let mut cases = 0;
    for l in 1..=3 {
        for c in 1..=3 {
            for k in 1..=3 {
                let rule = rule(3, [l, c, k], 0);
                for code in 0..choices.pow(4) {
                    let picks: Vec<usize> = (0..4).map(|place| code / choices.pow(place) % choices).collect();
                    if !picks.is_sorted() {
                        continue;
                    }
                    let rows: Vec<Row> = picks.iter().filter_map(|&pick| options.get(pick).copied()).collect();
                    let with = tally_of(rule, &rows).table().unwrap();
                    assert_eq!(with, naive(&rule, &rows));
                    for gone in 0..2 {
                        let left: Vec<Row> = rows.iter().copied().filter(|row| row.0 != gone).collect();
                        assert!(allowed(&rule, &with, &naive(&rule, &left)));
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 10_000);
}

#[test]
fn conditions_that_are_broken_break_the_bound() {
    let bound = rule(512, [1, 1, 1], 0);
    // 256 users have a record in both of two cells, and keep the one that is rarer in all: others see who is there.
    let rarer = |more: &[usize]| {
        let mut table = vec![0_i64; 512];
        let first = 256 + more.iter().filter(|&&cell| cell == 0).count() > 256;
        table[usize::from(first)] += 256;
        for &cell in more {
            table[cell] += 1;
        }
        table
    };
    let (with, without) = (rarer(&[0]), rarer(&[]));
    assert!(!allowed(&bound, &with, &without));
    assert_eq!(with.iter().zip(without).map(|(a, b)| (a - b).abs()).sum::<i64>(), 511);
    // The first record in the order of arrival: another user's rows that renumber them move a bystander's.
    let first = |rows: &[Row]| {
        let mut table = vec![0; 512];
        let mut seen = std::collections::BTreeSet::new();
        for &(user, cell, _) in rows {
            if seen.insert(user) {
                table[cell as usize] += 1;
            }
        }
        table
    };
    assert!(!allowed(&bound, &first(&[(1, 7, 0), (1, 3, 0), (2, 5, 0)]), &first(&[(1, 3, 0), (1, 7, 0)])));
    // One name that is two in one step and one in the other.
    let twice = tally_of(bound, &[(1, 3, 0), (2, 7, 0)]).table().unwrap();
    assert!(!allowed(&bound, &twice, &[0; 512]));
    // Tables of parts, added up: each part bounds the user by itself.
    let (one, other) = (tally_of(bound, &[(1, 3, 0)]).table().unwrap(), tally_of(bound, &[(1, 7, 0)]).table().unwrap());
    let sum: Vec<i64> = one.iter().zip(other).map(|(a, b)| a + b).collect();
    assert!(!allowed(&bound, &sum, &[0; 512]));
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let user = prop_oneof![0..6_i64, Just(i64::MIN), Just(i64::MAX), Just(-1)];
    prop::collection::vec((user, -1..20_i32, 0..9_u32), 0..200)
}

proptest! {
    #[test]
    fn parts_in_any_order_are_the_whole(
        rows in rows(), cuts in prop::collection::vec(0..200_usize, 0..6),
        l in 1..6_u32, c in 1..5_u32, k in 1..12_u32, height in prop_oneof![Just(0_u32), Just(8)],
    ) {
        let rule = rule(20, [l, c, k], height);
        let whole = naive(&rule, &rows);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows.len())).collect();
        cuts.extend([0, rows.len()]);
        cuts.sort_unstable();
        let (mut merged, mut grown) = (Tally::new(rule), Tally::new(rule));
        for ends in cuts.windows(2).rev() {
            let part = &rows[ends[0]..ends[1]];
            update(&mut grown, part);
            let _ = grown.table().unwrap();
            let state = tally_of(rule, part).to_bytes().unwrap();
            merged.merge(&mut Tally::from_bytes(&state).unwrap()).unwrap();
        }
        prop_assert_eq!(&merged.table().unwrap(), &whole);
        prop_assert_eq!(&grown.table().unwrap(), &whole);
        if rows.iter().any(|row| row.1 >= 0) {
            prop_assert_eq!(merged.to_bytes().unwrap(), grown.to_bytes().unwrap());
        }
        for gone in [0, 1, -1, i64::MAX] {
            let left: Vec<Row> = rows.iter().copied().filter(|row| row.0 != gone).collect();
            prop_assert!(allowed(&rule, &whole, &naive(&rule, &left)));
        }
    }

    #[test]
    fn bytes_of_strangers_are_refused_or_read(mut bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..60_usize, byte: u8) {
        let _ = Tally::from_bytes(&bytes);
        let mut state = tally_of(rule(20, [2, 2, 3], 0), &[(1, 3, 0), (2, 4, 0)]).to_bytes().unwrap();
        let at = at.min(state.len() - 1);
        state[at] = byte;
        if let Ok(mut tally) = Tally::from_bytes(&state) && tally.rule().cells < 1000 {
            let _ = tally.table().unwrap();
        }
        bytes.splice(0..0, *b"sordtly1");
        let _ = Tally::from_bytes(&bytes);
    }
}

#[test]
fn many_users_by_number_and_by_name() {
    // Users that are numbered anew by growing tables, in parts of many blocks.
    let rule = rule(100, [3, 2, 4], 0);
    let rows: Vec<Row> = (0..200_000_i64).map(|i| ((i * i % 30_011) << 20, (i % 97) as i32, 0)).collect();
    assert_eq!(tally_of(rule, &rows).table().unwrap(), naive(&rule, &rows));
    let names: Vec<String> = rows.iter().map(|row| format!("user {}", row.0)).collect();
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for name in &names {
        bytes.extend_from_slice(name.as_bytes());
        offsets.push(bytes.len() as i64);
    }
    let cells: Vec<i32> = rows.iter().map(|row| row.1).collect();
    let mut tally = Tally::new(rule);
    tally.update(Users::Bytes { offsets: &offsets, bytes: &bytes }, &cells, &[]).unwrap();
    let (mut early, mut late) = (Tally::new(rule), Tally::new(rule));
    let half = rows.len() / 2;
    early.update(Users::Bytes { offsets: &offsets[..=half], bytes: &bytes }, &cells[..half], &[]).unwrap();
    late.update(Users::Bytes { offsets: &offsets[half..], bytes: &bytes }, &cells[half..], &[]).unwrap();
    late.merge(&mut early).unwrap();
    assert_eq!(tally.table().unwrap(), late.table().unwrap());
    assert_eq!(tally.to_bytes().unwrap(), late.to_bytes().unwrap());
    assert!(late.update(Users::Integers(&[1]), &[1], &[]).is_err());
}

#[test]
fn the_largest_bounds_fit() {
    let rule = rule(3, [1, (1 << 31) - 1, (1 << 31) - 1], 0);
    assert_eq!(tally_of(rule, &[(i64::MIN, 2, 0); 5]).table().unwrap(), [0, 0, 5]);
    let seed = Seed::new([PRIME - 1; 6]).unwrap();
    assert!(Rule::new(seed, 3, 2, 1 << 30, 1, 0).is_err());
    assert!(Rule::new(seed, 3, 2, 1 << 29, 0, 0).is_err());
    assert!(Rule::new(seed, (1 << 26) + 1, 1, 1, 1, 0).is_err());
    assert!(Seed::new([PRIME, 1, 1, 1, 1, 1]).is_err());
}

/// The steps of one user that count, by the rule as it is said.
fn steps_that_count(steps: &[u32], most: usize, apart: u32) -> Vec<u32> {
    let mut kept: Vec<u32> = Vec::new();
    for &step in steps {
        if kept.len() < most && kept.last().is_none_or(|last| step - last >= apart) {
            kept.push(step);
        }
    }
    kept
}

proptest! {
    #[test]
    fn users_take_part_in_so_many_steps_so_far_apart(
        rows in prop::collection::vec((0_u32..30, -3_i64..3, -1_i32..3), 0..120),
        (most, apart) in (1_u32..5, 1_u32..6),
        cut in 0_usize..30,
        text in any::<bool>(),
    ) {
        let mut state = Participants::new(most, apart).unwrap();
        let mut kept = Vec::new();
        for step in 0..30 {
            let own: Vec<(i64, i32)> = rows.iter().filter(|row| row.0 == step).map(|row| (row.1, row.2)).collect();
            let (names, cells): (Vec<i64>, Vec<i32>) = own.iter().copied().unzip();
            let bytes: Vec<u8> = names.iter().flat_map(|name| name.to_be_bytes()).collect();
            let offsets: Vec<i64> = (0..=names.len() as i64).map(|at| 8 * at).collect();
            let users =
                || if text { Users::Bytes { offsets: &offsets, bytes: &bytes } } else { Users::Integers(&names) };
            if step as usize == cut {
                let bytes = state.to_bytes();
                state = Participants::from_bytes(&bytes).unwrap();
                prop_assert_eq!(state.to_bytes(), bytes);
            }
            let found = state.admitted(users(), &cells).unwrap();
            // Again, and in parts: the same.
            prop_assert_eq!(&state.admitted(users(), &cells).unwrap(), &found);
            kept.extend(names.iter().zip(&found).filter(|(_, cell)| **cell >= 0).map(|(name, _)| (*name, step)));
            for (cell, found) in cells.iter().zip(&found) {
                prop_assert!(found == cell || *found == -1);
            }
            state.advance().unwrap();
        }
        for user in -3..3 {
            let mut steps: Vec<u32> = rows.iter().filter(|row| row.1 == user && row.2 >= 0).map(|row| row.0).collect();
            steps.sort_unstable();
            steps.dedup();
            let mut own: Vec<u32> = kept.iter().filter(|(name, _)| *name == user).map(|(_, step)| *step).collect();
            own.dedup();
            prop_assert_eq!(own, steps_that_count(&steps, most as usize, apart));
        }
    }
}

#[test]
fn participations_that_were_not_written_are_refused() {
    let mut state = Participants::new(2, 3).unwrap();
    state.admitted(Users::Integers(&[5, 6]), &[0, 1]).unwrap();
    let bytes = state.to_bytes();
    assert!((0..bytes.len()).filter(|&len| Participants::from_bytes(&bytes[..len]).is_ok()).count() <= 2); // whole users
    let mut twice = bytes.clone();
    twice.extend_from_slice(&bytes[bytes.len() - 20..]);
    assert!(Participants::from_bytes(&twice).is_err());
    assert!(state.admitted(Users::Bytes { offsets: &[0, 1], bytes: b"a" }, &[0]).is_err());
    assert!(Participants::new(0, 1).is_err() && Participants::new(1, 0).is_err());
}
