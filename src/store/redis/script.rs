//! The scripts that decide in Redis, put together from the parts in `lua/`.
//!
//! A script is made for the kinds of counters that it is asked about and for no others: every
//! function that a script defines is defined anew in each call, needed or not.

use std::sync::OnceLock;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Verb {
    Decide = 1,
    Peek = 2,
    Record = 3,
    Refund = 4,
}

/// What stands where a verb would be, if several requests follow.
pub(super) const SEVERAL: u8 = 0;

/// What a counter keeps, and the function that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Fixed = 1,
    Sliding = 2,
    Token = 3,
    /// Sliding buckets and sliding logs.
    Queue = 4,
}

/// Some kinds of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    const SETS: usize = 16;

    #[must_use]
    pub(super) const fn and(self, kind: Kind) -> Self {
        Self(self.0 | 1 << (kind as u8 - 1))
    }

    #[must_use]
    pub(super) const fn with_all(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    const fn contains(self, kind: Kind) -> bool {
        self.0 >> (kind as u8 - 1) & 1 == 1
    }
}

/// The text of a script, and the hash that Redis knows it by.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) hash: String,
}

/// The script that decides about counters of these kinds.
pub(super) fn deciding(kinds: Kinds) -> &'static Script {
    static SCRIPTS: [OnceLock<Script>; Kinds::SETS] = [const { OnceLock::new() }; Kinds::SETS];
    SCRIPTS[usize::from(kinds.0)].get_or_init(|| {
        let steps = [
            (Kind::Fixed, include_str!("lua/fixed_window.lua")),
            (Kind::Sliding, include_str!("lua/sliding_window.lua")),
            (Kind::Token, include_str!("lua/token_bucket.lua")),
            (Kind::Queue, include_str!("lua/queue.lua")),
        ];
        let steps = steps.iter().filter(|(kind, _)| kinds.contains(*kind));
        let mut parts = vec![include_str!("lua/words.lua")];
        parts.extend(steps.map(|(_, text)| *text));
        parts.extend([include_str!("lua/tend.lua"), include_str!("lua/decide.lua")]);
        Script::new(&parts)
    })
}

/// The script for what concerns whole keys.
pub(super) fn upkeep() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        Script::new(&[
            include_str!("lua/words.lua"),
            include_str!("lua/tend.lua"),
            include_str!("lua/upkeep.lua"),
        ])
    })
}

/// The script that changes overrides.
pub(super) fn overrides() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| Script::new(&[include_str!("lua/overrides.lua")]))
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let text = with_constants(&parts.concat());
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}

/// The constants of the scripts. Their numbers are written into the text: a variable that a
/// function borrows costs it about as much as an addition.
const CONSTANTS: [(&str, u64); 48] = [
    // Verbs and kinds, as above.
    ("SEVERAL", SEVERAL as u64),
    ("DECIDE", Verb::Decide as u64),
    ("PEEK", Verb::Peek as u64),
    ("RECORD", Verb::Record as u64),
    ("RETURN", Verb::Refund as u64),
    ("FIXED", Kind::Fixed as u64),
    ("SLIDING", Kind::Sliding as u64),
    ("TOKEN", Kind::Token as u64),
    ("QUEUE", Kind::Queue as u64),
    // What a counter says, and what is done to it.
    ("ALLOWED", 0),
    ("DENIED", 1),
    ("NEVER", 2),
    ("ASK", 0),
    ("TAKE", 1),
    ("CHARGE", 2),
    ("GIVE_BACK", 3),
    // The places of a check: what comes of it, then what was asked.
    ("OUTCOME", 1),
    ("USED", 2),
    ("RESET", 3),
    ("AFTER", 4),
    ("EXPIRES", 5),
    ("STATE", 6),
    ("ID", 7),
    ("KEY", 8),
    ("KIND", 9),
    ("COST", 10),
    ("AMOUNT", 11),
    ("WINDOW", 12),
    ("THIS", 13),
    ("THAT", 14),
    ("NEXT", 15),
    // How long things are. The lengths of records differ, so that they tell the kinds apart.
    ("REQUEST_BYTES", 18),
    ("CHECK_BYTES", 51),
    ("ID_BYTES", 8),
    ("HEAD_BYTES", 14),
    ("FIXED_BYTES", 28),
    ("SLIDING_BYTES", 29),
    ("TOKEN_BYTES", 32),
    ("QUEUE_BYTES", 34),
    ("ENTRY_BYTES", 14),
    ("SUM_BYTES", 7),
    ("CHUNK_ENTRIES", 64),
    ("MOST_CHUNKS", 1 << 20),
    // A key with more fields than this is looked through whenever it gets another.
    ("CROWD", 32),
    // Where counters stop, and levels of token buckets.
    ("MAX_COUNT", crate::quota::MAX_COUNT),
    ("MAX_LEVEL", crate::algorithm::token_bucket::MAX_LEVEL),
    ("DAY", crate::calendar::DAY),
    ("SECOND", 1_000_000),
];

/// The text with every constant's name replaced by its number.
fn with_constants(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        written.push_str(before);
        match CONSTANTS.iter().find(|(name, _)| *name == word) {
            Some((_, number)) => written.push_str(&number.to_string()),
            None => written.push_str(word),
        }
        rest = after;
    }
    written + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names in capitals that are left are Redis's own, or in quotes or comments.
    #[test]
    fn every_constant_is_known() {
        let all = [Kind::Fixed, Kind::Sliding, Kind::Token, Kind::Queue];
        let all = all.into_iter().fold(Kinds::default(), Kinds::and);
        for script in [deciding(all), upkeep(), overrides()] {
            for line in script.text.lines() {
                let code = line.split("--").next().unwrap_or_default();
                for (index, part) in code.split('\'').enumerate() {
                    let words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    let quoted = index % 2 == 1;
                    for word in words.filter(|word| !quoted && word.len() > 1) {
                        let shouted = word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                        let known = ["KEYS", "ARGV", "_"].contains(&word);
                        assert!(!shouted || known, "{word} in {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn only_whole_names_are_replaced() {
        assert_eq!(with_constants("KEY, KEYS, x[KEY]"), "8, KEYS, x[8]");
        assert_eq!(with_constants("HEAD_BYTES + 1 ÷ DAYS"), "14 + 1 ÷ DAYS");
    }

    #[test]
    fn a_script_has_the_steps_it_needs_and_no_others() {
        let sliding = deciding(Kinds::default().and(Kind::Sliding));
        assert!(sliding.text.contains("steps[2] ="));
        assert!(!sliding.text.contains("steps[3] ="));
        assert_eq!(sliding.hash.len(), 40);
    }
}
