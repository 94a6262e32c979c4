//! Slots of a cluster: the slot of a key, and the node of a slot.

/// Number of slots of every cluster.
pub(super) const SLOTS: u16 = 16_384;

/// Returns the slot of a key: that of the text between its first braces, or of the whole key if
/// there is none.
pub(super) fn slot_of(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag)
        .filter(|tag| !tag.is_empty());
    crc16(tag.unwrap_or(key).as_bytes()) % SLOTS
}

/// CRC-16/XMODEM, as Redis uses it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let carried = if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            crc << 1 ^ carried
        })
    })
}

/// Map from slots to nodes.
#[derive(Clone, Debug)]
pub(super) struct SlotMap<T> {
    nodes: Vec<T>,
    /// Index of the node of every slot, or `UNASSIGNED`.
    of_slot: Vec<u16>,
}

impl<T: Clone> SlotMap<T> {
    const UNASSIGNED: u16 = u16::MAX;

    /// Builds a map from ranges, both ends included.
    pub(super) fn new(
        ranges: impl IntoIterator<Item = (u16, u16, T)>,
        same: impl Fn(&T, &T) -> bool,
    ) -> Self {
        let mut map = Self {
            nodes: Vec::new(),
            of_slot: vec![Self::UNASSIGNED; usize::from(SLOTS)],
        };
        for (first, last, node) in ranges {
            let number = map.number_of(node, &same);
            for slot in first..=last {
                if let Some(owner) = map.of_slot.get_mut(usize::from(slot)) {
                    *owner = number;
                }
            }
        }
        map
    }

    fn number_of(&mut self, node: T, same: impl Fn(&T, &T) -> bool) -> u16 {
        let known = self.nodes.iter().position(|known| same(known, &node));
        let number = known.unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        });
        u16::try_from(number).unwrap_or(Self::UNASSIGNED)
    }

    /// Returns a copy in which one slot belongs to `node`.
    pub(super) fn with(&self, slot: u16, node: T, same: impl Fn(&T, &T) -> bool) -> Self {
        let mut map = self.clone();
        let number = map.number_of(node, same);
        if let Some(owner) = map.of_slot.get_mut(usize::from(slot)) {
            *owner = number;
        }
        map
    }

    /// Returns the node of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<&T> {
        let number = self.of_slot.get(usize::from(slot))?;
        self.nodes.get(usize::from(*number))
    }

    /// Returns all nodes that have or had a slot.
    pub(super) fn nodes(&self) -> &[T] {
        &self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // As `CLUSTER KEYSLOT` returns them.
        for (key, slot) in [
            ("foo", 12_182),
            ("{user1000}.following", 3_443),
            ("foo{}{bar}", 8_363),
            ("foo{{bar}}zap", 4_015),
            ("foo{bar}{zap}", 5_061),
            ("", 0),
        ] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn a_slot_can_be_reassigned() {
        let same = |one: &char, other: &char| one == other;
        let ranges = [(0, 99, 'a'), (100, 199, 'b'), (16_383, 16_383, 'a')];
        let map = SlotMap::new(ranges, same);
        assert_eq!(map.nodes(), ['a', 'b']);
        let found = [0, 99, 100, 199, 200, 16_383].map(|slot| map.owner(slot).copied());
        let [a, b] = [Some('a'), Some('b')];
        assert_eq!(found, [a, a, b, b, None, a]);
        let later = map.with(100, 'c', same).with(200, 'b', same);
        assert_eq!(later.owner(100), Some(&'c'));
        assert_eq!(later.owner(101), Some(&'b'));
        assert_eq!(later.owner(200), Some(&'b'));
        assert_eq!(map.owner(100), Some(&'b'), "the old map is unchanged");
    }
}
