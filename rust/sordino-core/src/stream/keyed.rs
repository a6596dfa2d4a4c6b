//! The noise of a process whose key changed at some steps.

use crate::door::{Key, NoiseSource, StreamDoor};

/// Noise of coordinates, one after the other: what is drawn for a step comes from the key that was in force then.
pub(super) struct KeyedNoise<'a> {
    door: StreamDoor,
    /// Steps before each key, ascending from 0, and the key.
    keys: &'a [(u64, Key)],
    /// Made when they are asked for.
    sources: Vec<Option<NoiseSource>>,
}

impl<'a> KeyedNoise<'a> {
    pub(super) fn new(door: StreamDoor, keys: &'a [(u64, Key)]) -> Self {
        Self { door, keys, sources: keys.iter().map(|_| None).collect() }
    }

    fn source(&mut self, place: usize) -> &mut NoiseSource {
        let (door, key) = (self.door, &self.keys[place].1);
        self.sources[place].get_or_insert_with(|| door.source(key.again()))
    }

    /// The source of the step after `steps` others.
    pub(super) fn after(&mut self, steps: u64) -> &mut NoiseSource {
        self.source(self.keys.partition_point(|(first, _)| *first <= steps) - 1)
    }

    /// Calls with the source of each span of steps, and how many these are: of `steps` in all, whose samples begin at
    /// `first` and follow each other.
    pub(super) fn spans(&mut self, first: u64, steps: u64, mut each: impl FnMut(&mut NoiseSource, u64)) {
        let mut position = first;
        for place in 0..self.keys.len() {
            let end = self.keys.get(place + 1).map_or(steps, |(next, _)| steps.min(*next));
            let begin = self.keys[place].0;
            if begin < end {
                let source = self.source(place);
                source.seek(position);
                each(source, end - begin);
                position = source.position();
            }
        }
    }
}
