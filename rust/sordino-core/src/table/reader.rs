//! States as bytes.

use rayon::prelude::*;

/// What is left of a state's bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(len)?;
        self.0 = left;
        Some(taken)
    }

    pub(super) fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Bytes that [`write_counted`] wrote.
    pub(super) fn counted(&mut self) -> Option<&'a [u8]> {
        let len = self.word()? as usize;
        self.take(len)
    }
}

/// Writes users and their states in the order of their names, before each how many bytes it has.
pub(super) fn write_users(mut users: Vec<(Vec<u8>, Vec<u8>)>, out: &mut Vec<u8>) {
    users.par_sort_unstable();
    for (name, state) in users {
        out.extend_from_slice(&(name.len() as u32).to_le_bytes());
        out.extend_from_slice(&name);
        out.extend_from_slice(&state);
    }
}
