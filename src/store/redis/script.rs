//! The scripts that run in Redis, composed of the files in `lua/`.
//!
//! A script contains only the kinds of counters that its requests have: every function that a script
//! defines is defined anew in each call.

use std::sync::OnceLock;

use super::reply::INSTANT_BYTES;
use super::request::{CHECK_BYTES, HEAD_BYTES, LIVE};

/// What the script does with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Verb {
    Decide = 1,
    Peek = 2,
    Record = 3,
    Refund = 4,
}

/// Added to the number of a group that must not be charged.
pub(super) const UNCHARGED: u8 = 0x80;

/// Kind of a record. 5 is reserved for holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Fixed = 1,
    Sliding = 2,
    Token = 3,
    /// Sliding buckets and sliding logs.
    Log = 4,
}

impl Kind {
    /// The byte that identifies a record of this kind: the kind, and the length of its state.
    pub(super) const fn shape(self) -> u8 {
        let state = match self {
            Self::Fixed | Self::Log => 7,
            Self::Sliding => 8,
            Self::Token => 14,
        };
        (self as u8) << 4 | state
    }
}

/// Some kinds of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// Number of subsets of the four kinds. Each has a script of its own. A fifth kind doubles it.
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

/// Text of a script, and the hash under which Redis caches it.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) hash: String,
}

/// Returns the script for batches with counters of these kinds.
pub(super) fn deciding(kinds: Kinds) -> &'static Script {
    static SCRIPTS: [OnceLock<Script>; Kinds::SETS] = [const { OnceLock::new() }; Kinds::SETS];
    SCRIPTS[usize::from(kinds.0)].get_or_init(|| {
        let steps = [
            (Kind::Fixed, include_str!("lua/fixed_window.lua")),
            (Kind::Sliding, include_str!("lua/sliding_window.lua")),
            (Kind::Token, include_str!("lua/token_bucket.lua")),
            (Kind::Log, include_str!("lua/sliding_log.lua")),
        ];
        let steps = steps.iter().filter(|(kind, _)| kinds.contains(*kind));
        let mut parts = vec![
            include_str!("lua/prelude.lua"),
            include_str!("lua/value.lua"),
            include_str!("lua/save.lua"),
        ];
        parts.extend(steps.map(|(_, text)| *text));
        parts.push(include_str!("lua/decide.lua"));
        Script::new(&parts)
    })
}

/// Returns the script that removes and counts whole keys.
pub(super) fn upkeep() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        Script::new(&[
            include_str!("lua/prelude.lua"),
            include_str!("lua/value.lua"),
            include_str!("lua/upkeep.lua"),
        ])
    })
}

/// Returns the script that changes overrides.
pub(super) fn overrides() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| Script::new(&[include_str!("lua/overrides.lua")]))
}

/// Returns the script that runs the commands of every decision, without effect.
pub(super) fn verification() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| Script::new(&[include_str!("lua/verify.lua")]))
}

impl Script {
    fn new(parts: &[&str]) -> Self {
        let text = with_constants(&without_comments(&parts.concat()));
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}

/// Constants of the scripts. Their numbers are written into the text: a local variable that functions
/// capture costs about 400 instructions in each call.
const CONSTANTS: [(&str, u64); 39] = [
    ("DECIDE", Verb::Decide as u64),
    ("PEEK", Verb::Peek as u64),
    ("RECORD", Verb::Record as u64),
    ("REFUND", Verb::Refund as u64),
    // Kinds, as the shape of their records.
    ("FIXED", Kind::Fixed.shape() as u64),
    ("SLIDING", Kind::Sliding.shape() as u64),
    ("TOKEN", Kind::Token.shape() as u64),
    ("LOG", Kind::Log.shape() as u64),
    ("LIVE", LIVE as u64),
    ("UNCHARGED", UNCHARGED as u64),
    // Outcomes.
    ("ALLOWED", 0),
    ("DENIED", 1),
    ("NEVER", 2),
    // Operations of a step. Those up to CHARGE_AT_ONCE evaluate whether there is room.
    ("EVALUATE", 0),
    ("TRY_CHARGE", 1),
    ("CHARGE_AT_ONCE", 2),
    ("CHARGE", 3),
    ("UNDO", 4),
    ("DROP", 5),
    // The request.
    ("REQUEST_BYTES", HEAD_BYTES as u64),
    ("CHECK_BYTES", CHECK_BYTES as u64),
    // A record: id and shape, which identify it, then `expires`, `seen` and the state.
    ("RECORD_HEAD_BYTES", 6),
    ("RECORD_BYTES", 6 + 4 + INSTANT_BYTES as u64),
    ("LAST_SECOND", u32::MAX as u64),
    // Logs.
    ("LOG_HEAD_BYTES", 31),
    ("CHUNK_HEAD_BYTES", 18),
    ("ENTRY_BYTES", 14),
    ("CHUNK_ENTRIES", 64),
    ("CHUNKS_PER_CALL", 256),
    ("MOST_CHUNKS", 1 << 20),
    ("TWO_TO_32", 1 << 32),
    ("TWO_TO_53", 1 << 53),
    // Limits of counters and of token buckets. No tick is longer than 10^15 µs.
    ("MAX_COUNT", crate::quota::MAX_COUNT),
    ("MAX_LEVEL", crate::algorithm::token_bucket::MAX_LEVEL),
    ("MAX_POWER", 15),
    ("DAY", crate::calendar::DAY),
    ("SECOND", 1_000_000),
    // Milliseconds that keys live longer than their counters. The clocks of several processes differ.
    ("SERVER_SLACK", 1_000),
    ("CALLER_SLACK", 60_000),
];

/// Returns the text without lines of comments, which the server would have to keep.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the text with every constant's name replaced by its number.
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

    /// Other names in capitals are Redis's own, or quoted.
    #[test]
    fn every_constant_of_a_script_is_defined() {
        let all = [Kind::Fixed, Kind::Sliding, Kind::Token, Kind::Log];
        let all = all.into_iter().fold(Kinds::default(), Kinds::and);
        for script in [deciding(all), upkeep(), overrides(), verification()] {
            for line in script.text.lines() {
                let code = line.split("--").next().unwrap_or_default();
                for (index, part) in code.split('\'').enumerate() {
                    let words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    let is_quoted = index % 2 == 1;
                    for word in words.filter(|word| !is_quoted && word.len() > 1) {
                        let is_capital =
                            |c: char| c.is_ascii_uppercase() || "_0123456789".contains(c);
                        let is_constant = word.chars().all(is_capital)
                            && word.chars().any(|c| c.is_ascii_uppercase());
                        let is_known = ["KEYS", "ARGV"].contains(&word);
                        assert!(!is_constant || is_known, "{word} in {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn only_whole_names_are_replaced() {
        assert_eq!(with_constants("LOG, LOGS, x[LOG]"), "71, LOGS, x[71]");
        assert_eq!(with_constants("ENTRY_BYTES + 1 ÷ DAYS"), "14 + 1 ÷ DAYS");
    }

    #[test]
    fn script_has_the_steps_of_its_kinds_only() {
        let sliding = deciding(Kinds::default().and(Kind::Sliding));
        assert!(sliding.text.contains("steps[40] ="));
        assert!(!sliding.text.contains("steps[62] ="));
        assert!(!sliding.text.contains("steps[71] ="));
        assert_eq!(sliding.hash.len(), 40);
    }
}
