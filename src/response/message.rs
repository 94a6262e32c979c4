//! Which message a denial has.

use super::sink::Sink;
use super::template::{Piece, fill};
use super::{Denial, DenialKind, words};

const TOO_COSTLY: &[Piece] = &[
    Piece::literal("This request asks for more than the limit of "),
    Piece::Limit,
    Piece::literal(" allows at once. Trying again cannot help."),
];

const BLOCKED: &[Piece] = &[Piece::literal(
    "Requests of this kind are blocked. Trying again cannot help.",
)];

const UNAVAILABLE: &[Piece] = &[
    Piece::literal("Rate limits cannot be checked right now. Please try again in "),
    Piece::RetryIn,
    Piece::literal("."),
];

const UNAUTHORIZED: &[Piece] = &[Piece::literal(
    "The credentials that came with this request are not valid.",
)];

/// What most denials say, put together without a look at each piece.
fn usual(denial: &Denial<'_>, out: &mut impl Sink) {
    out.plain("Rate limit exceeded. Please try again in ");
    if let Some(secs) = denial.retry_after_secs() {
        words::wait(secs, out);
    }
    out.plain(".");
}

/// Writes the message of a denial.
pub(super) fn write(denial: &Denial<'_>, out: &mut impl Sink) {
    let pieces = match denial.kind() {
        // A rule's own message says when to come back, and would not be true.
        DenialKind::Limited if denial.is_hopeless() => match denial.limit() {
            Some(0) => BLOCKED,
            _ => TOO_COSTLY,
        },
        DenialKind::Limited => match denial.template() {
            Some(template) => template.pieces(),
            None => return usual(denial, out),
        },
        DenialKind::Unavailable => UNAVAILABLE,
        DenialKind::Unauthorized => UNAUTHORIZED,
        DenialKind::InvalidPath | DenialKind::PathTooLong => {
            return out.text(denial.detail().unwrap_or_default());
        }
    };
    fill(pieces, denial, out);
}
