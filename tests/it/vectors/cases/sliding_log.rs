use super::super::Case;
use super::{DAY, MINUTE, SECOND, START, case};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = boundaries();
    cases.extend(changes());
    cases
}

/// Instants at which a counter is used up and has room again.
fn boundaries() -> Vec<Case> {
    vec![
        case("free the instant that it can be", "2/1m, sliding-log")
            .decide(START, 1)
            .decide(START + 1, 1)
            .decide(START + 2, 1)
            .decide(START + MINUTE - 1, 1)
            .decide(START + MINUTE, 1)
            .decide(START + MINUTE, 1)
            .decide(START + MINUTE + 1, 1),
        case(
            "free when the oldest that is needed leaves",
            "6/1m, sliding-log",
        )
        .decide(START, 1)
        .decide(START + 10 * SECOND, 2)
        .decide(START + 25 * SECOND, 3)
        .decide(START + 30 * SECOND, 1)
        .decide(START + 30 * SECOND, 2)
        .decide(START + 30 * SECOND, 4)
        .decide(START + 30 * SECOND, 6)
        .decide(START + 70 * SECOND - 1, 3)
        .decide(START + 70 * SECOND, 3),
        case(
            "many at one instant leave at one instant",
            "5/1s, sliding-log",
        )
        .decide(START, 2)
        .decide(START, 2)
        .decide(START, 1)
        .decide(START, 1)
        .decide(START + SECOND - 1, 1)
        .decide(START + SECOND, 5),
        case("costs of nothing, of all, and of more", "5/1m, sliding-log")
            .decide(START, 0)
            .decide(START, 6)
            .decide(START, 5)
            .decide(START, 0)
            .decide(START, 6)
            .peek(START, 5),
        case("a window of a microsecond", "2/1us, sliding-log")
            .decide(START, 2)
            .decide(START, 1)
            .decide(START + 1, 1)
            .decide(START + 1, 1)
            .decide(START + 2, 2),
        case("a month is thirty days", "2/1mo, sliding-log")
            .decide(START, 1)
            .decide(START + DAY, 1)
            .decide(START + 30 * DAY - 1, 1)
            .decide(START + 30 * DAY, 1),
        case("the largest log", "100000/1s, sliding-log")
            .decide(START, 99_999)
            .decide(START, 2)
            .decide(START + 1, 1)
            .decide(START + 1, 1)
            .decide(START + SECOND, 99_999)
            .decide(START + SECOND, 1),
    ]
}

/// Debts, other amounts, refunds, and a clock that goes back.
fn changes() -> Vec<Case> {
    vec![
        case(
            "what has happened is charged over the limit",
            "5/1m, sliding-log",
        )
        .decide(START, 3)
        .record(START + 10 * SECOND, 9)
        .peek(START + 20 * SECOND, 0)
        .decide(START + 20 * SECOND, 1)
        .decide(START + MINUTE, 1)
        .decide(START + 70 * SECOND - 1, 1)
        .decide(START + 70 * SECOND, 5),
        case(
            "what a full log cannot hold joins the last",
            "2/1m, sliding-log",
        )
        .decide(START, 1)
        .decide(START + 10 * SECOND, 1)
        .record(START + 20 * SECOND, 1)
        .decide(START + MINUTE, 1)
        .decide(START + 70 * SECOND, 1)
        .decide(START + 80 * SECOND - 1, 1)
        .decide(START + 80 * SECOND, 2),
        case("another amount keeps the count", "5/1m, sliding-log")
            .decide(START, 2)
            .decide(START + SECOND, 2)
            .decide(START + SECOND, 1)
            .under(3)
            .peek(START + SECOND, 2)
            .under(3)
            .decide(START + SECOND, 6)
            .under(10)
            .decide(START + 2 * SECOND, 1)
            .decide(START + 2 * SECOND, 1)
            .under(11),
        case(
            "refunded at the instant it was charged",
            "5/1m, sliding-log",
        )
        .decide(START, 2)
        .decide(START + SECOND, 3)
        .refund(START + SECOND, START + 2 * SECOND, 1)
        .peek(START + 2 * SECOND, 1)
        .refund(START + SECOND - 1, START + 2 * SECOND, 2)
        .peek(START + 2 * SECOND, 1)
        .refund(START, START + 3 * SECOND, 100)
        .peek(START + 3 * SECOND, 3)
        .refund(START + SECOND, START + 2 * MINUTE, 2)
        .peek(START + 2 * MINUTE, 5),
        case("a clock that goes back stands still", "3/1m, sliding-log")
            .decide(START + 90 * SECOND, 2)
            .decide(START + 30 * SECOND, 1)
            .decide(START, 1)
            .decide(START + 150 * SECOND - 1, 1)
            .decide(START + 150 * SECOND, 3),
    ]
}
