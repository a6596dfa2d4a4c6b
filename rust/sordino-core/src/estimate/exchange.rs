//! Records whose tables come near to published ones, by exchanging what two of them say of one attribute.
//!
//! One-way tables stay as they are. Two records with values `a ≠ b` of attribute `i` change the table of `(i, j)` only if their
//! values of `j` differ; with `D` the current table less the wanted one, its squared distance then changes by
//! `2 (−D[a, x_j] − D[b, y_j] + D[b, x_j] + D[a, y_j]) + 4`. An exchange is made where the sum over `j` is negative.

use crate::error::Error;
use crate::interrupt::poll;
use crate::split_mix::SplitMix;

/// Sweeps between two looks at what was gained.
const LOOK: usize = 5;
/// It ends where they gain a smaller share.
const LEAST_GAIN: f64 = 1e-3;

/// Tables of pairs of attributes, in whole numbers.
#[derive(Debug)]
pub struct Pairs<'a> {
    /// Levels of each attribute.
    pub levels: &'a [usize],
    /// Attributes of each table.
    pub pairs: &'a [[usize; 2]],
    /// The tables, one after the other, row by row.
    pub tables: &'a [i64],
}

/// A table as one of its attributes sees it: a row for each of its own values.
struct Seen {
    other: usize,
    width: usize,
    /// Where it begins, and where the same table begins as the other attribute sees it.
    start: usize,
    mirror: usize,
}

/// Exchanges values of records, shape (records, attributes) row by row, until sweeps gain little; the sum of squared
/// distances that is left, of each table.
///
/// # Errors
/// Codes that are no levels, tables of another size, too many records; [`Error::Interrupted`].
pub fn exchange(codes: &mut [u16], pairs: &Pairs<'_>, sweeps: usize, seed: u64) -> Result<Vec<f64>, Error> {
    let d = pairs.levels.len();
    let known = |row: &[u16]| row.iter().zip(pairs.levels).all(|(code, levels)| usize::from(*code) < *levels);
    let sizes = d > 0 && codes.len().is_multiple_of(d) && codes.len() / d < 1 << 30;
    if !sizes || !codes.chunks_exact(d).all(known) || pairs.pairs.iter().flatten().any(|i| *i >= d) {
        return Err(Error::invalid("codes", "a level of each attribute in every record"));
    }
    let cells = |[i, j]: &[usize; 2]| pairs.levels[*i] * pairs.levels[*j];
    Error::check_len("tables", pairs.pairs.iter().map(cells).sum(), pairs.tables.len())?;
    // Counted less wanted, of each table and of its transposed.
    let mut over = vec![0_i32; 2 * pairs.tables.len()];
    let mut seen: Vec<Vec<Seen>> = (0..d).map(|_| Vec::new()).collect();
    let mut start = 0;
    for pair @ [i, j] in pairs.pairs {
        let [height, width] = [pairs.levels[*i], pairs.levels[*j]];
        let mirror = start + cells(pair);
        for (at, wanted) in pairs.tables[start / 2..start / 2 + cells(pair)].iter().enumerate() {
            let wanted = i32::try_from(*wanted).map_err(|_| Error::invalid("tables", "too large"))?;
            over[start + at] -= wanted;
            over[mirror + at % width * height + at / width] -= wanted;
        }
        for row in codes.chunks_exact(d) {
            let (a, b) = (usize::from(row[*i]), usize::from(row[*j]));
            over[start + a * width + b] += 1;
            over[mirror + b * height + a] += 1;
        }
        seen[*i].push(Seen { other: *j, width, start, mirror });
        seen[*j].push(Seen { other: *i, width: height, start: mirror, mirror: start });
        start = mirror + cells(pair);
    }
    let distances = |over: &[i32]| -> Vec<f64> {
        let mut rest = over;
        let square = |v: &i32| f64::from(*v).powi(2);
        let each = |pair| {
            let (table, after) = rest.split_at(2 * cells(pair));
            rest = after;
            table[..cells(pair)].iter().map(square).sum()
        };
        pairs.pairs.iter().map(each).collect()
    };
    let records = codes.len() / d;
    let mut random = SplitMix(seed);
    let mut before: f64 = distances(&over).iter().sum();
    for sweep in 0..sweeps {
        if before == 0.0 || records < 2 {
            break;
        }
        for (i, seen) in seen.iter().enumerate().filter(|(_, seen)| !seen.is_empty()) {
            poll()?;
            // Every other record in turn, with any.
            for r in (sweep % 2..records).step_by(2) {
                let s = random.index(records);
                if codes[r * d + i] != codes[s * d + i] {
                    attempt(codes, &mut over, seen, i, r * d, s * d);
                }
            }
        }
        if sweep % LOOK == LOOK - 1 {
            let now: f64 = distances(&over).iter().sum();
            if before - now < LEAST_GAIN * before {
                break;
            }
            before = now;
        }
    }
    Ok(distances(&over))
}

/// Exchanges what two records say of attribute `i`, if that brings tables nearer.
fn attempt(codes: &mut [u16], over: &mut [i32], seen: &[Seen], i: usize, r: usize, s: usize) {
    let (a, b) = (usize::from(codes[r + i]), usize::from(codes[s + i]));
    let values = |table: &Seen| (usize::from(codes[r + table.other]), usize::from(codes[s + table.other]));
    let mut change = 0_i64;
    for table in seen {
        let (x, y) = values(table);
        if x != y {
            let of_a = &over[table.start + a * table.width..][..table.width];
            let of_b = &over[table.start + b * table.width..][..table.width];
            let [ax, ay, bx, by] = [of_a[x], of_a[y], of_b[x], of_b[y]].map(i64::from);
            change += 2 * ((bx - ax) - (by - ay)) + 4;
        }
    }
    if change >= 0 {
        return;
    }
    for table in seen {
        let (x, y) = values(table);
        if x == y {
            continue;
        }
        // The transposed has as many columns as this attribute has levels.
        let height = table.start.abs_diff(table.mirror) / table.width;
        for (own, other, by) in [(a, x, -1), (b, y, -1), (b, x, 1), (a, y, 1)] {
            over[table.start + own * table.width + other] += by;
            over[table.mirror + other * height + own] += by;
        }
    }
    codes.swap(r + i, s + i);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_nearer_and_margins_stay() {
        let mut random = SplitMix(5);
        let levels = [3, 4, 2];
        let draw = |random: &mut SplitMix| -> Vec<u16> {
            (0..600)
                .flat_map(|_| {
                    let a = random.index(3);
                    [a as u16, (a + random.index(2)) as u16, u16::from(random.index(4) < a)]
                })
                .collect()
        };
        let count = |codes: &[u16], [i, j]: [usize; 2]| {
            let mut table = vec![0_i64; levels[i] * levels[j]];
            codes.chunks_exact(3).for_each(|row| table[row[i] as usize * levels[j] + row[j] as usize] += 1);
            table
        };
        let wanted = draw(&mut random);
        let pairs = [[0, 1], [0, 2], [1, 2]];
        let tables: Vec<i64> = pairs.iter().flat_map(|pair| count(&wanted, *pair)).collect();
        // Columns in an order of their own: the same one-way tables, no association.
        let mut codes = wanted.clone();
        for i in 0..3 {
            for r in (1..600).rev() {
                codes.swap(3 * r + i, 3 * random.index(r + 1) + i);
            }
        }
        let before = codes.clone();
        let pairs = Pairs { levels: &levels, pairs: &pairs, tables: &tables };
        let left = exchange(&mut codes, &pairs, 100, 1).unwrap();
        let counted: Vec<i64> = pairs.pairs.iter().flat_map(|pair| count(&codes, *pair)).collect();
        let squares: f64 = counted.iter().zip(&tables).map(|(a, b)| ((a - b) as f64).powi(2)).sum();
        assert_eq!(left.iter().sum::<f64>(), squares);
        assert!(squares < 100.0, "{squares}");
        for i in 0..3 {
            let column = |codes: &[u16]| -> Vec<u16> {
                let mut values: Vec<u16> = codes.chunks_exact(3).map(|row| row[i]).collect();
                values.sort_unstable();
                values
            };
            assert_eq!(column(&codes), column(&before));
        }
        assert!(exchange(&mut [0, 4, 0], &pairs, 1, 1).is_err());
    }
}
