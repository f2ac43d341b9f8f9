//! Chance that comes out the same on every run.

use std::collections::BTreeSet;

/// A small generator (SplitMix64): the same worlds on every run, named by their seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.roll(items.len())]
    }

    /// Each item with a chance of one in `sides`.
    pub(crate) fn few<T: Ord + Clone>(&mut self, items: &[T], sides: usize) -> BTreeSet<T> {
        items.iter().filter(|_| self.roll(sides) == 0).cloned().collect()
    }

    /// Most items.
    pub(crate) fn some<T: Ord + Clone>(&mut self, items: &[T]) -> BTreeSet<T> {
        items.iter().filter(|_| self.roll(4) != 0).cloned().collect()
    }
}
