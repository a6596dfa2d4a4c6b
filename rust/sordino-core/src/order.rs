//! Orders of few things, by numbers: every use of a sort of the standard library is compiled for itself, these once.

/// Puts places in the order of rising keys; those with equal ones stay as they are.
pub(crate) fn by_key(places: &mut [usize], key: &dyn Fn(usize) -> f64) {
    places.sort_by(|a, b| key(*a).total_cmp(&key(*b)));
}

/// The places of so many things, in the order of rising keys; those with equal ones stay as they are.
pub(crate) fn in_order(count: usize, key: &dyn Fn(usize) -> f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    by_key(&mut places, key);
    places
}

/// Things in the order of rising keys; those with equal ones stay as they are.
pub(crate) fn sorted_by_key<T>(things: Vec<T>, key: impl Fn(&T) -> f64) -> Vec<T> {
    let keys: Vec<f64> = things.iter().map(key).collect();
    let places = in_order(keys.len(), &|k| keys[k]);
    let mut things: Vec<Option<T>> = things.into_iter().map(Some).collect();
    places.into_iter().filter_map(|k| things[k].take()).collect()
}

/// The numbers from the largest on.
pub(crate) fn falling(numbers: &mut [f64]) {
    numbers.sort_unstable_by(|a, b| b.total_cmp(a));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_stay_in_order() {
        let mut places = vec![4, 0, 3, 1, 2];
        by_key(&mut places, &|k| [2.0, 1.0, 2.0, f64::INFINITY, -0.5][k]);
        assert_eq!(places, [4, 1, 0, 2, 3]);
        assert_eq!(in_order(4, &|k| [1.0, 0.0, 1.0, -1.0][k]), [3, 1, 0, 2]);
        let pairs = sorted_by_key(vec![("a", 1.0), ("b", -1.0), ("c", 1.0)], |pair| -pair.1);
        assert_eq!(pairs, [("a", 1.0), ("c", 1.0), ("b", -1.0)]);
        let mut numbers = [1.0, 3.0, -2.0];
        falling(&mut numbers);
        assert_eq!(numbers, [3.0, 1.0, -2.0]);
        assert!(sorted_by_key(Vec::<u8>::new(), |_| 0.0).is_empty());
    }
}
