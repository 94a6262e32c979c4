//! Human-readable message of a denial.

use super::template::{Piece, fill};
use super::{Denial, DenialKind, Template};

const TOO_COSTLY: &[Piece] = &[
    Piece::literal("This request costs more than the limit of "),
    Piece::Limit,
    Piece::literal(" allows at once. Trying again cannot help."),
];

const BLOCKED: &[Piece] = &[Piece::literal(
    "Requests of this kind are blocked. Trying again cannot help.",
)];

const BLOCKED_UNTIL: &[Piece] = &[
    Piece::literal("Requests of this kind are blocked. Please try again in "),
    Piece::RetryIn,
    Piece::literal("."),
];

const UNAVAILABLE: &[Piece] = &[
    Piece::literal("Rate limits cannot be checked right now. Please try again in "),
    Piece::RetryIn,
    Piece::literal("."),
];

const UNAUTHORIZED: &[Piece] = &[Piece::literal(
    "The credentials that came with this request are not valid.",
)];

const AMBIGUOUS_CREDENTIALS: &[Piece] = &[Piece::literal(
    "This request carries several credentials that contradict each other. Please send one.",
)];

const LIMITED: &[Piece] = &[
    Piece::literal("Rate limit exceeded. Please try again in "),
    Piece::RetryIn,
    Piece::literal("."),
];

/// Writes the message of a denial.
pub(super) fn write(denial: &Denial<'_>, out: &mut String) {
    let pieces = match denial.kind() {
        // The message of the rule contains a time, and waiting does not help.
        DenialKind::Limited if denial.can_never_succeed() => match denial.limit() {
            Some(0) => BLOCKED,
            _ => TOO_COSTLY,
        },
        // The message of the rule contains numbers of a quota, and a block has none.
        DenialKind::Limited if denial.limit() == Some(0) => BLOCKED_UNTIL,
        DenialKind::Limited => denial.template().map_or(LIMITED, Template::pieces),
        DenialKind::Unavailable => UNAVAILABLE,
        DenialKind::Unauthorized => UNAUTHORIZED,
        DenialKind::InvalidPath | DenialKind::PathTooLong => {
            return out.push_str(denial.detail().unwrap_or_default());
        }
        DenialKind::AmbiguousCredentials => AMBIGUOUS_CREDENTIALS,
    };
    fill(pieces, denial, out);
}
