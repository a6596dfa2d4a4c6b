//! Numbers out of bytes.

/// Bytes that are read as numbers, one after another; behind their end everything is zero.
#[derive(Debug, Clone)]
pub struct Food<'a>(&'a [u8]);

impl<'a> Food<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Whether there is more.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A word of 64 bits.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A number from `least` to `most`, of at most 256.
    pub fn from(&mut self, least: usize, most: usize) -> usize {
        least + usize::from(self.byte()) % (most - least + 1)
    }

    /// Yes or no.
    pub fn coin(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    /// One of these.
    pub fn of<T: Clone>(&mut self, these: &[T]) -> T {
        these[self.from(0, these.len() - 1)].clone()
    }

    /// An integer: small, near a power of two, at an end, or any.
    pub fn integer(&mut self) -> i64 {
        match self.byte() % 8 {
            0..4 => i64::from(self.byte() as i8),
            4 => i64::from(self.word() as i32),
            5 => (1i64 << (self.byte() % 63)).wrapping_add(i64::from(self.byte() as i8)),
            6 => [i64::MIN, i64::MAX, 0, -1][usize::from(self.byte() % 4)],
            _ => self.word() as i64,
        }
    }

    /// A finite number that filters and matrices may have.
    pub fn real(&mut self) -> f64 {
        match self.byte() % 8 {
            0 => 0.0,
            1..4 => f64::from(self.byte() as i8) / 4.0,
            4 => f64::from(self.byte() as i8) / 30.0,
            5 => f64::from(self.byte() as i8) * 1e-6,
            6 => f64::from(self.byte() as i8) * 1e4,
            _ => (self.word() as f64 * 2f64.powi(-63) - 1.0) * 3.0,
        }
    }

    /// Any bits as a number, with what is none.
    pub fn any_real(&mut self) -> f64 {
        if self.coin() { self.real() } else { f64::from_bits(self.word()) }
    }

    /// Some numbers.
    pub fn reals(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.real()).collect()
    }

    /// These bytes, cut off, or with some of them changed.
    pub fn spoiled(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.byte() % 8 == 7 {
            bytes.truncate(self.word() as usize % (bytes.len() + 1));
        }
        for _ in 0..self.from(0, 4) {
            let place = self.word() as usize % (bytes.len() + 1);
            match (self.byte() % 4, bytes.get_mut(place)) {
                (0, Some(byte)) => *byte ^= 1 << (self.byte() % 8),
                (1, Some(byte)) => *byte = self.byte(),
                (2, Some(_)) => {
                    let word = self.word().to_le_bytes();
                    bytes.iter_mut().skip(place / 8 * 8).zip(word).for_each(|(byte, new)| *byte = new);
                }
                _ => bytes.insert(place, self.byte()),
            }
        }
        bytes
    }
}
