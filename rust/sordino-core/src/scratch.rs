//! Working arrays kept from call to call.
//!
//! Fresh memory of some megabytes costs more time (page faults) than transforming it. A few arrays are
//! kept for the next call instead of being returned to the system. Their contents are overwritten by
//! their next user, not wiped: like any freed memory of the process, see `SECURITY.md`.

use num_complex::Complex;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Arrays kept for each type of entry.
const KEPT: usize = 6;
/// Larger arrays are returned to the system.
const LARGEST_KEPT: usize = (1 << 22) + 64;

/// Arrays of one type of entry.
pub(crate) struct Pool<T: 'static>(Mutex<Vec<Vec<T>>>);

/// Real working arrays.
pub(crate) static REALS: Pool<f64> = Pool(Mutex::new(Vec::new()));
/// Complex working arrays.
pub(crate) static COMPLEX: Pool<Complex<f64>> = Pool(Mutex::new(Vec::new()));
/// Integer working arrays.
pub(crate) static INTEGERS: Pool<i64> = Pool(Mutex::new(Vec::new()));

impl<T: Copy + Default> Pool<T> {
    /// An array of this length with arbitrary contents.
    pub(crate) fn take(&'static self, len: usize) -> Scratch<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(|array| array.capacity() >= len && array.capacity() / 4 <= len);
        let mut array = found.map_or_else(Vec::new, |index| kept.swap_remove(index));
        drop(kept);
        array.resize(len, T::default());
        Scratch { array, pool: self }
    }
}

/// A working array; dropping it returns it to its pool.
pub(crate) struct Scratch<T: 'static> {
    array: Vec<T>,
    pool: &'static Pool<T>,
}

impl<T> Deref for Scratch<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.array
    }
}

impl<T> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.array
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        if self.array.capacity() <= LARGEST_KEPT {
            let mut kept = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(std::mem::take(&mut self.array));
            if kept.len() > KEPT {
                // The smallest is the cheapest to get again.
                let smallest = kept.iter().enumerate().min_by_key(|(_, array)| array.capacity()).map(|(i, _)| i);
                kept.swap_remove(smallest.unwrap_or(0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Pool};
    use std::sync::Mutex;

    #[test]
    fn arrays_are_reused_within_limits() {
        static POOL: Pool<i64> = Pool(Mutex::new(Vec::new()));
        let address = {
            let mut a = POOL.take(1000);
            a.fill(7);
            a.as_ptr()
        };
        let again = POOL.take(900);
        assert_eq!((again.as_ptr(), again.len()), (address, 900));
        let many: Vec<_> = (0..20).map(|_| POOL.take(500)).collect();
        drop((many, again));
        assert_eq!(POOL.0.lock().unwrap().len(), KEPT);
        assert_eq!(POOL.take(10).len(), 10, "a much larger array is not taken");
        drop(POOL.take(5000));
        assert!(POOL.0.lock().unwrap().iter().any(|array| array.capacity() >= 5000), "large ones displace small ones");
    }
}
