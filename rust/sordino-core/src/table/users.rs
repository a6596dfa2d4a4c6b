//! Names of users, told apart by all that they are, never by a hash.

use crate::error::Error;
use md5::{Digest, Md5};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// What names are: of one kind wherever users are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integers,
    Bytes,
}

impl Kind {
    /// Refuses names of another kind than those before.
    pub(super) fn check(self, before: &mut Option<Self>) -> Result<(), Error> {
        if *before.get_or_insert(self) == self {
            return Ok(());
        }
        Err(Error::invalid("users", "integers and text in one tally: nobody can say who is who"))
    }

    pub(super) fn to_byte(kind: Option<Self>) -> u8 {
        match kind {
            None => 0,
            Some(Self::Integers) => 1,
            Some(Self::Bytes) => 2,
        }
    }

    pub(super) fn read(kind: &mut Option<Self>, byte: u8) -> Option<()> {
        *kind = *[None, Some(Self::Integers), Some(Self::Bytes)].get(usize::from(byte))?;
        Some(())
    }
}

/// Names of the rows of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Users<'a> {
    /// 64-bit integers, with or without a sign: never both in one tally.
    Integers(&'a [i64]),
    /// Text or other bytes: row `i` has those from `offsets[i]` to `offsets[i + 1]`.
    Bytes {
        /// One more than rows, non-decreasing, the last within the bytes.
        offsets: &'a [i64],
        /// Bytes of all rows.
        bytes: &'a [u8],
    },
}

impl Users<'_> {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(names) => names.len(),
            Self::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the names are.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Integers(_) => Kind::Integers,
            Self::Bytes { .. } => Kind::Bytes,
        }
    }

    /// Whether every row's name lies within the bytes.
    pub(super) fn are_sound(&self) -> bool {
        match self {
            Self::Integers(_) => true,
            Self::Bytes { offsets, bytes } => {
                offsets.is_sorted()
                    && offsets.first().is_none_or(|&first| first >= 0)
                    && offsets.last().is_none_or(|&last| last <= bytes.len() as i64)
            }
        }
    }
}

/// The name of one user.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

impl<'a> Name<'a> {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Integer(name) => name.to_be_bytes().to_vec(),
            Self::Bytes(name) => name.to_vec(),
        }
    }

    pub(super) fn of_bytes(kind: Kind, bytes: &'a [u8]) -> Option<Self> {
        Some(match kind {
            Kind::Integers => Self::Integer(i64::from_be_bytes(bytes.try_into().ok()?)),
            Kind::Bytes => Self::Bytes(bytes),
        })
    }
}

impl<'a> Users<'a> {
    /// Whose row this is.
    #[inline]
    pub(super) fn name(&self, row: usize) -> Name<'a> {
        match *self {
            Self::Integers(names) => Name::Integer(names[row]),
            Self::Bytes { offsets, bytes } => Name::Bytes(&bytes[offsets[row] as usize..offsets[row + 1] as usize]),
        }
    }
}

/// Where names are looked for: a secret of this process, so that nobody can choose names that all lie in one place.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    state: RandomState,
    secret: u64,
}

impl Spread {
    /// The same for all that is made in this process: a name is in the same part everywhere.
    pub(super) fn of_process() -> Self {
        static SPREAD: OnceLock<Spread> = OnceLock::new();
        let made = || {
            let state = RandomState::new();
            let secret = state.hash_one(0_u64) | 1;
            Self { state, secret }
        };
        SPREAD.get_or_init(made).clone()
    }

    /// What users are told apart by before their names are looked at.
    pub(super) fn tag(&self, name: Name<'_>) -> u32 {
        tag_of(self.hash(name))
    }

    #[inline]
    pub(super) fn hash(&self, name: Name<'_>) -> u64 {
        let folded = |word: u64, factor: u64| {
            let product = u128::from(word) * u128::from(factor);
            product as u64 ^ (product >> 64) as u64
        };
        match name {
            Name::Integer(name) => {
                let once = folded(name as u64 ^ self.secret.rotate_left(32), self.secret);
                folded(once ^ self.secret, 0x9e37_79b9_7f4a_7c15)
            }
            Name::Bytes(name) => self.state.hash_one(name),
        }
    }
}

/// The half of a hash by which users are told apart within a part.
pub(super) fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// No user.
const FREE: u32 = u32::MAX;

/// Numbers of users by the upper halves of their hashes: an open table, at most half full.
#[derive(Debug, Clone, Default)]
struct Numbers {
    /// A user, and that half of its hash.
    slots: Vec<(u32, u32)>,
    len: u32,
}

impl Numbers {
    /// The user with this hash that `is` the one looked for; if there is none, the next number is taken.
    fn find(&mut self, tag: u32, is: impl Fn(u32) -> bool) -> (u32, bool) {
        if self.slots.len() < 2 * (self.len as usize + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            match self.slots[at] {
                (FREE, _) => {
                    self.slots[at] = (self.len, tag);
                    self.len += 1;
                    return (self.len - 1, true);
                }
                (user, other) if other == tag && is(user) => return (user, false),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let room = (2 * self.slots.len()).max(16);
        let old = std::mem::replace(&mut self.slots, vec![(FREE, 0); room]);
        for (user, tag) in old.into_iter().filter(|slot| slot.0 != FREE) {
            let mut at = tag as usize & (room - 1);
            while self.slots[at].0 != FREE {
                at = (at + 1) & (room - 1);
            }
            self.slots[at] = (user, tag);
        }
    }
}

/// Users by number, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    numbers: Numbers,
    /// Integers, or of other names what stands for them in the order of cells.
    stand_ins: Vec<u64>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Names {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.stand_ins.len()
    }

    /// What stands for a user in the order of cells.
    pub(super) fn name(&self, user: usize) -> u64 {
        self.stand_ins[user]
    }

    /// The name of a user, of the kind that all have.
    pub(super) fn whole(&self, user: usize) -> Name<'_> {
        if self.ends.is_empty() { Name::Integer(self.stand_ins[user] as i64) } else { Name::Bytes(self.bytes(user)) }
    }

    fn bytes(&self, user: usize) -> &[u8] {
        &self.bytes[user.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[user]]
    }

    /// The number of a user, whose hash has this upper half; a new one if it is not known.
    #[inline]
    pub(super) fn number(&mut self, name: Name<'_>, tag: u32) -> u32 {
        let Self { numbers, stand_ins, ends, bytes } = self;
        let of = |user: u32| {
            let user = user as usize;
            &bytes[user.checked_sub(1).map_or(0, |before| ends[before])..ends[user]]
        };
        let (user, new) = match name {
            Name::Integer(name) => numbers.find(tag, |user| stand_ins[user as usize] == name as u64),
            Name::Bytes(name) => numbers.find(tag, |user| of(user) == name),
        };
        if new {
            self.stand_ins.push(match name {
                Name::Integer(name) => name as u64,
                Name::Bytes(name) => {
                    self.bytes.extend_from_slice(name);
                    self.ends.push(self.bytes.len());
                    stand_in(name)
                }
            });
        }
        user
    }
}

/// The first 15 hexadecimal digits of the MD5 of a name: for the order of cells alone, where names that collide do no
/// harm, and known to every engine.
fn stand_in(name: &[u8]) -> u64 {
    let digest: [u8; 16] = Md5::digest(name).into();
    let first = digest[..8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    first >> 4
}
