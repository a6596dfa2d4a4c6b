//! Every reader of bytes: an error, or a state that writes the same bytes again and can be used.

use crate::Food;
use crate::streams::{EVERY, door_of};
use bolero::check;
use sordino_core::door::{AboveThreshold, Key};
use sordino_core::sealing::{seal, unseal};
use sordino_core::sketch::{Kind, Operator, Sketch};
use sordino_core::smooth::{Axis, Chebyshev, Cube, Features, IndexSet, PointSums};
use sordino_core::stream::{Items, LazyStream, Stream, header};
use sordino_core::table::{Participants, Rule, Seed, Tally, Users};
use std::sync::{Arc, LazyLock};

const KEY: [u8; 32] = [9; 32];

/// What is read: these bytes with a few of them changed, or anything.
fn bytes_of(food: &mut Food<'_>, own: Vec<u8>) -> Vec<u8> {
    if food.byte().is_multiple_of(4) { food.rest().to_vec() } else { food.spoiled(own) }
}

/// The words of `SplitMix64`, by which sketches and sums find that they are damaged.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// With a last word that says that nothing is damaged.
fn checked(mut bytes: Vec<u8>, check: impl Fn(&[u8]) -> u64) -> Vec<u8> {
    if bytes.len() >= 8 && bytes.len().is_multiple_of(8) {
        let body = bytes.len() - 8;
        let word = check(&bytes[..body]);
        bytes[body..].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

pub(crate) fn rule(food: &mut Food<'_>) -> Rule {
    let seed = Seed::new([1_103_515_245, 741_103_597, 1_597_334_677, 377_401_575, 69_069, 1_220_703_125]).unwrap();
    let mut bound = || food.from(1, 4) as u32;
    let (cells, max_cells, per_cell, max_records) = (bound(), bound(), bound(), bound());
    Rule::new(seed, cells, max_cells, per_cell, max_records, 3 * u32::from(food.coin())).unwrap()
}

/// Takes some rows in, of integers or of text.
pub(crate) fn fill(food: &mut Food<'_>, tally: &mut Tally, text: bool, rows: usize) {
    let (mut users, mut offsets, mut names, mut cells, mut values) = (vec![], vec![0], vec![], vec![], vec![]);
    let counted = tally.rule().channels() == 1;
    let most = tally.table().unwrap().len() / tally.rule().channels();
    for _ in 0..rows {
        let user = food.from(0, 5);
        users.push([0, -1, i64::MIN, 7, 1 << 40, i64::MAX][user]);
        names.extend_from_slice(["", "a", "ab", "\u{e9}", "a\0", "abc"][user].as_bytes());
        offsets.push(names.len() as i64);
        cells.push(food.from(0, most) as i32 - 1);
        if !counted {
            values.push(food.of(&[0, 1, 3, u32::MAX]));
        }
    }
    let users = if text { Users::Bytes { offsets: &offsets, bytes: &names } } else { Users::Integers(&users) };
    tally.update(users, &cells, &values).unwrap();
}

#[test]
fn tallies() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let mut own = Tally::new(rule(&mut food));
        let (text, rows) = (food.coin(), food.from(0, 12));
        fill(&mut food, &mut own, text, rows);
        let bytes = bytes_of(&mut food, own.to_bytes().unwrap());
        let Ok(mut read) = Tally::from_bytes(&bytes) else { return };
        // A table of 2^26 cells is no error, and too large for a fuzz target.
        if bytes.len() < 40 || u32::from_le_bytes(bytes[32..36].try_into().unwrap()) > 1 << 16 {
            return;
        }
        let table = read.table().unwrap();
        assert!(table.iter().all(|sum| *sum >= 0));
        let written = read.to_bytes().unwrap();
        let mut again = Tally::from_bytes(&written).unwrap();
        assert_eq!((again.table().unwrap(), again.to_bytes().unwrap()), (table.clone(), written));
        let mut merged = Tally::new(*read.rule());
        merged.merge(&mut read).unwrap();
        assert_eq!(merged.table().unwrap(), table);
    });
}

#[test]
fn participants() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let mut own = Participants::new(food.from(1, 3) as u32, food.from(1, 3) as u32).unwrap();
        for _ in 0..food.from(0, 6) {
            let users: Vec<i64> = (0..food.from(0, 4)).map(|_| food.from(0, 3) as i64).collect();
            own.admitted(Users::Integers(&users), &vec![0; users.len()]).unwrap();
            own.advance().unwrap();
        }
        let bytes = bytes_of(&mut food, own.to_bytes());
        let Ok(mut read) = Participants::from_bytes(&bytes) else { return };
        let written = read.to_bytes();
        assert_eq!(Participants::from_bytes(&written).unwrap().to_bytes(), written);
        // Whatever was read, the bounds hold from here on.
        let (most, _) = read.bounds();
        let mut taken = 0;
        for _ in 0..8 {
            let Ok(cells) = read.admitted(Users::Integers(&[1]), &[0]) else { return };
            taken += u32::from(cells[0] == 0);
            if read.advance().is_err() {
                return;
            }
        }
        assert!(taken <= most);
    });
}

#[test]
fn sketches() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let kind = food.of(&[Kind::Bernoulli, Kind::Hadamard, Kind::Sparse { nonzeros: 2 }]);
        let operator = Operator::new(kind, food.from(3, 20), food.from(2, 3), food.word()).unwrap();
        let mut own = Sketch::new(Arc::new(operator));
        let cells: Vec<i64> = (0..food.from(0, 5)).map(|_| food.integer()).collect();
        let counts: Vec<i64> = cells.iter().map(|_| food.integer()).collect();
        own.update(&cells, Some(&counts)).unwrap();
        let mut bytes = bytes_of(&mut food, own.to_bytes());
        if food.coin() {
            let check = |body: &[u8]| words(body).fold(0x736B_6574, |sum: u64, w| mix(sum ^ w).wrapping_add(1));
            bytes = checked(bytes, check);
        }
        let Ok(mut read) = Sketch::from_bytes(&bytes) else { return };
        let written = read.to_bytes();
        let again = Sketch::from_bytes(&written).unwrap();
        assert!(again.sums() == read.sums() && again.to_bytes() == written);
        read.merge(&again).unwrap();
        if read.operator().cells() < 1 << 12 {
            read.add_table(&vec![i64::MIN; read.operator().cells()]).unwrap();
        }
    });
}

/// Features of points in two coordinates, of very different bounds.
pub(crate) static FEATURES: LazyLock<Arc<Features>> = LazyLock::new(|| {
    let axes = vec![Axis::chebyshev(3).unwrap(), Axis::chebyshev(2).unwrap()];
    let sizes = axes.iter().map(Axis::features).collect();
    let map = Chebyshev::new(axes, IndexSet::tensor(sizes).unwrap(), 1000).unwrap();
    let cube = Cube::new(vec![(-1.0, 1.0), (0.0, 1e-3)]).unwrap();
    Arc::new(Features::new(cube, Box::new(map), 1000).unwrap())
});

#[test]
fn sums_of_points() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let mut own = PointSums::new(Arc::clone(&FEATURES));
        let points: Vec<f64> = (0..2 * food.from(0, 4)).map(|_| food.any_real()).collect();
        own.add(&points).unwrap();
        let mut bytes = bytes_of(&mut food, own.to_bytes());
        if food.coin() {
            let step = |state: u64, word: u64| mix((state ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15));
            bytes = checked(bytes, |body| words(body).fold(1, step));
        }
        let Ok(mut read) = PointSums::from_bytes(Arc::clone(&FEATURES), &bytes) else { return };
        assert_eq!(read.to_bytes(), bytes);
        read.merge(&own).unwrap();
        read.add(&points).unwrap();
    });
}

/// What a sealed state of a stream is bound to, as `stream/checkpoint.rs` says it.
fn place(public: &[u8], stream: &Stream, plan: &sordino_core::stream::StreamPlan) -> Vec<u8> {
    let mut out = public.to_vec();
    out.extend_from_slice(format!("{:?} {:?} {}", plan.recipe(), stream.door(), stream.dim()).as_bytes());
    out.extend_from_slice(&plan.parameters());
    out
}

/// States that somebody with the key has written: read or refused, never half.
#[test]
fn states_of_streams() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let plan = food.of(&EVERY);
        let (dim, steps) = (food.from(1, 2), food.from(1, 20));
        let mut stream =
            Stream::open_with(Arc::clone(&plan), door_of(&plan), dim, Key::deterministic([3; 32])).unwrap();
        let items: Vec<i64> = (0..dim * steps).map(|_| i64::from(food.byte())).collect();
        stream.update(Items::Integers(&items), &mut vec![0.0; dim * steps], None).unwrap();
        let checkpoint = stream.checkpoint(&KEY, b"public").unwrap();
        let public = &checkpoint[..16 + header(&checkpoint).unwrap().len()];
        let place = place(public, &stream, &plan);
        let state = unseal(&KEY, &place, &checkpoint[public.len()..]).unwrap();
        let bytes = bytes_of(&mut food, state.clone());
        let mut sealed = public.to_vec();
        sealed.extend(seal(&KEY, &place, &bytes).unwrap());
        let read = Stream::restore(Arc::clone(&plan), *stream.door(), dim, &KEY, &sealed);
        assert!(bytes != state || read.is_ok());
        let Ok(mut read) = read else { return };
        // What is written is read again, and is the same: numbers of 128 bits that fit 64 may come in either form.
        let written = read.checkpoint(&KEY, b"public").unwrap();
        let again = Stream::restore(Arc::clone(&plan), *stream.door(), dim, &KEY, &written).unwrap();
        let own = |checkpoint: &[u8]| unseal(&KEY, &place, &checkpoint[public.len()..]).unwrap();
        assert_eq!(own(&again.checkpoint(&KEY, b"public").unwrap()), own(&written));
        assert!(bytes != state || own(&written) == state);
        let (mut one, mut two) = (vec![0.0; dim], vec![0.0; dim]);
        if bytes == state {
            let next = vec![1; dim];
            assert_eq!(
                read.update(Items::Integers(&next), &mut one, None).is_ok(),
                stream.update(Items::Integers(&next), &mut two, None).is_ok(),
            );
            assert_eq!(one, two);
        }
    });
}

/// Checkpoints as anybody may have altered them.
#[test]
fn checkpoints() {
    let plan = &EVERY[0];
    let stream = Stream::open_with(Arc::clone(plan), door_of(plan), 1, Key::deterministic([3; 32])).unwrap();
    let own = stream.checkpoint(&KEY, b"public").unwrap();
    check!().for_each(|input: &[u8]| {
        let bytes = bytes_of(&mut Food::new(input), own.clone());
        let restored = Stream::restore(Arc::clone(&EVERY[0]), door_of(&EVERY[0]), 1, &KEY, &bytes);
        assert_eq!(restored.is_ok(), bytes == own);
        let _ = header(&bytes).map(<[u8]>::len);
        assert!(unseal(&KEY, b"elsewhere", &bytes).is_err());
    });
}

/// Keys and lists of keys under a seal.
#[test]
fn sealed_keys() {
    check!().for_each(|input: &[u8]| {
        let (mut food, plan) = (Food::new(input), &EVERY[0]);
        let mut stream = Stream::open_with(Arc::clone(plan), door_of(plan), 1, Key::deterministic([3; 32])).unwrap();
        let bytes = food.rest();
        let sealed = seal(&KEY, b"here", bytes).unwrap();
        assert_eq!(stream.take_key(&KEY, b"here", &sealed).is_ok(), bytes.len() == 32);
        assert!(stream.take_key(&KEY, b"here", bytes).is_err());
        let mut state = 5u64.to_le_bytes().to_vec();
        for _ in 0..food.from(0, 3) {
            state.extend_from_slice(&(food.from(0, 4) as u64).to_le_bytes());
            state.extend_from_slice(&32u64.to_le_bytes());
            state.extend_from_slice(&[food.byte(); 32]);
        }
        let state = bytes_of(&mut food, state);
        let sealed = seal(&KEY, b"here", &state).unwrap();
        let Ok(lazy) = LazyStream::unsealed(Arc::clone(plan), door_of(plan), 5, &KEY, b"here", &sealed) else { return };
        assert_eq!(unseal(&KEY, b"here", &lazy.sealed(&KEY, b"here").unwrap()).unwrap(), state);
    });
}

/// Segments of a rare stream under a seal.
#[test]
fn segments() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let mut above = AboveThreshold::open(8, 1, 1.0, Some([4; 32])).unwrap();
        let state = unseal(&KEY, b"here", &above.sealed(&KEY, b"here").unwrap()).unwrap();
        let bytes = bytes_of(&mut food, state);
        let read = above.go_on(&KEY, b"here", &seal(&KEY, b"here", &bytes).unwrap());
        if read.is_ok() {
            assert_eq!(bytes.len(), 56);
            for _ in 0..4 {
                above.push(food.integer()).unwrap();
            }
        }
    });
}
