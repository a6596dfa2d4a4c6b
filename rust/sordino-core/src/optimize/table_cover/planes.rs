//! Covers of all pairs by the lines of finite planes.
//!
//! In a plane over a finite field of `q` elements any two points share exactly one line. With attributes as points, in
//! some of the columns, a line is a table of about as many attributes as there are columns, and every pair is in one
//! table. Attributes that find no place are points at infinity: each is on all lines of one slope.

use super::TOLERANCE;
use super::wanted::{Marginal, Problem};
use crate::order::sorted_by_key;
use std::rc::Rc;

/// What is not covered by lines is covered with this power.
pub(super) const POWER: f64 = 2.0;
/// Orders of the prime fields.
const PRIMES: [usize; 17] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59];
/// Orders of the other fields, and the polynomials that are zero in them, with bits as coefficients.
const POLYNOMIALS: [(usize, usize); 4] = [(4, 0b111), (8, 0b1011), (16, 0b1_0011), (32, 0b10_0101)];
/// Attributes of a table that are thought of, at most.
const MOST_ATTRIBUTES: usize = 11;

/// A finite field: numbers modulo a prime, or polynomials over two elements modulo one of them.
#[derive(Clone, Copy)]
struct Field {
    /// Its number of elements, which count from 0.
    order: usize,
    /// What is zero, of a power of two; 0 of a prime.
    polynomial: usize,
}

impl Field {
    /// All that are tried, small ones first.
    fn all() -> Vec<Self> {
        let primes = PRIMES.into_iter().map(|order| Self { order, polynomial: 0 });
        let powers = POLYNOMIALS.into_iter().map(|(order, polynomial)| Self { order, polynomial });
        sorted_by_key(primes.chain(powers).collect(), |field| field.order as f64)
    }

    /// Modulo the prime, or without carries.
    fn add(self, a: usize, b: usize) -> usize {
        if self.polynomial == 0 { (a + b) % self.order } else { a ^ b }
    }

    /// Without carries, of a power of two.
    fn multiply(self, mut a: usize, mut b: usize) -> usize {
        if self.polynomial == 0 {
            return a * b % self.order;
        }
        let mut product = 0;
        while b > 0 {
            if b & 1 == 1 {
                product ^= a;
            }
            b >>= 1;
            a <<= 1;
            if a >= self.order {
                a ^= self.polynomial;
            }
        }
        product
    }
}

/// Covers of pairs, perhaps not of all of them, to be completed and pruned.
pub(super) fn planes(problem: &Problem) -> Vec<Vec<Rc<Marginal>>> {
    let d = problem.wanted.attributes.len();
    let order = sorted_by_key((0..d as u32).collect(), |k| -problem.wanted.levels[*k as usize]);
    let size = usual_size(problem);
    let mut found = Vec::new();
    for field in Field::all() {
        let q = field.order;
        if d > q * (size + 2) || q * (size - 1) > d {
            continue;
        }
        let height = d.div_ceil(q);
        for columns in 2.max(height - 1)..=q.min(height + 1) {
            if columns * q + q + 1 < d {
                continue; // not all have a place or are at infinity
            }
            let plane = Plane::new(field, columns, &order);
            let (lines, columns) = (plane.lines(), plane.columns());
            let both = [lines.clone(), columns].concat();
            found.extend([lines, both].map(|tables| fitting(problem, tables)));
        }
    }
    found
}

/// How many attributes a table of pairs had best, if all had the mean of the levels.
fn usual_size(problem: &Problem) -> usize {
    let logs: f64 = problem.classes.iter().map(|class| problem.class_logs[*class]).sum();
    let mean = logs / problem.classes.len() as f64;
    let worth = |size: usize| POWER * ((size * (size - 1) / 2) as f64).ln() - size as f64 * mean;
    (3..=MOST_ATTRIBUTES).fold(2, |best, size| if worth(size) > worth(best) + TOLERANCE { size } else { best })
}

/// Tables that are not too large.
fn fitting(problem: &Problem, tables: Vec<Vec<u32>>) -> Vec<Rc<Marginal>> {
    let sorted = tables.into_iter().map(|mut table| {
        table.sort_unstable();
        table
    });
    let cells = |table: &[u32]| table.iter().map(|a| problem.wanted.levels[*a as usize]).product::<f64>();
    sorted.filter(|table| cells(table) <= problem.table_limit).map(|table| problem.marginal(table)).collect()
}

/// Attributes as points of a plane.
struct Plane<'a> {
    /// The field of the coordinates.
    field: Field,
    /// How many columns are used.
    columns: usize,
    /// Points of a column that an attribute has.
    height: usize,
    /// The attributes, column by column, and those at infinity.
    placed: &'a [u32],
    far: &'a [u32],
}

impl<'a> Plane<'a> {
    /// The first attributes have places, the others are at infinity.
    fn new(field: Field, columns: usize, order: &'a [u32]) -> Self {
        let places = order.len().min(columns * field.order);
        let (placed, far) = order.split_at(places);
        Self { field, columns, height: places.div_ceil(columns), placed, far }
    }

    /// The attribute at a point, if one has it.
    fn point(&self, x: usize, y: usize) -> Option<u32> {
        if y < self.height { self.placed.get(x * self.height + y).copied() } else { None }
    }

    /// The columns, and with each the first point at infinity.
    fn columns(&self) -> Vec<Vec<u32>> {
        let column = |x: usize| {
            let points = (0..self.height).filter_map(|y| self.point(x, y));
            points.chain(self.far.first().copied()).collect()
        };
        (0..self.columns).map(column).collect()
    }

    /// The lines of each slope, and with each of them another point at infinity; single points are none.
    fn lines(&self) -> Vec<Vec<u32>> {
        let q = self.field.order;
        let line = |slope: usize, start: usize| -> Vec<u32> {
            let height = |x: usize| self.field.add(self.field.multiply(slope, x), start);
            let points = (0..self.columns).filter_map(|x| self.point(x, height(x)));
            points.chain(self.far.get(slope + 1).copied()).collect()
        };
        let all = (0..q).flat_map(|slope| (0..q).map(move |start| (slope, start)));
        all.map(|(slope, start)| line(slope, start)).filter(|line| line.len() > 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With all points in use, and those at infinity, two attributes of which one has a place share one line.
    #[test]
    fn two_points_are_on_one_line() {
        for field in Field::all().into_iter().filter(|field| field.order < 20) {
            let q = field.order;
            let order: Vec<u32> = (0..(q * q + q + 1) as u32).collect();
            let plane = Plane::new(field, q, &order);
            let mut shared = vec![0; order.len() * order.len()];
            for line in [plane.lines(), plane.columns()].concat() {
                assert_eq!(line.len(), q + 1);
                for a in &line {
                    for b in &line {
                        shared[*a as usize * order.len() + *b as usize] += 1;
                    }
                }
            }
            for a in 0..q * q {
                assert!((0..order.len()).all(|b| a == b || shared[a * order.len() + b] == 1), "{q} {a}");
            }
        }
    }

    /// Fewer columns: two attributes of different columns share one line.
    #[test]
    fn two_columns_are_on_one_line() {
        for field in Field::all().into_iter().filter(|field| field.order > 20) {
            let order: Vec<u32> = (0..(3 * field.order - 2) as u32).collect();
            let plane = Plane::new(field, 3, &order);
            let (lines, columns) = (plane.lines(), plane.columns());
            let both = |line: &Vec<u32>, a: u32, b: u32| line.contains(&a) && line.contains(&b);
            for (a, b) in columns[0].iter().zip(&columns[2]) {
                assert_eq!(lines.iter().filter(|line| both(line, *a, *b)).count(), 1);
            }
        }
    }
}
