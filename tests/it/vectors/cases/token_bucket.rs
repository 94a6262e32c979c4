use super::super::Case;
use super::{DAY, HOUR, MINUTE, SECOND, START, case};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = boundaries();
    cases.extend(changes());
    cases
}

/// Instants at which a counter is used up and has room again.
fn boundaries() -> Vec<Case> {
    vec![
        case("a burst, then an even rate", "60/1m, token-bucket, burst 3")
            .decide(START, 3)
            .decide(START, 1)
            .decide(START + SECOND - 1, 1)
            .decide(START + SECOND, 1)
            .decide(START + SECOND, 1)
            .decide(START + 3 * SECOND, 2)
            .peek(START + HOUR, 3),
        case(
            "a permit is not a whole number of microseconds",
            "7/1s, token-bucket",
        )
        .decide(START, 7)
        .decide(START, 1)
        .decide(START + 142_857, 1)
        .decide(START + 142_858, 1)
        .decide(START + 142_858, 1)
        .decide(START + 285_714, 1)
        .decide(START + 285_715, 1)
        .decide(START + 999_999, 5)
        .decide(START + SECOND, 5),
        case("a fraction counts as a whole", "2/1m, token-bucket")
            .decide(START, 1)
            .peek(START + 1, 2)
            .peek(START + 30 * SECOND - 1, 2)
            .peek(START + 30 * SECOND, 2),
        case(
            "costs of nothing, of all, and of more",
            "50/1m, token-bucket, burst 20",
        )
        .decide(START, 0)
        .decide(START, 21)
        .decide(START, 20)
        .decide(START, 0)
        .decide(START, 21)
        .decide(START, 20),
        case(
            "a bucket larger than the amount",
            "10/1m, token-bucket, burst 40",
        )
        .decide(START, 40)
        .decide(START, 10)
        .decide(START + MINUTE, 10)
        .decide(START + MINUTE, 40)
        .peek(START + 4 * MINUTE, 30)
        .peek(START + 5 * MINUTE, 40),
        case("full is full", "10/1s, token-bucket")
            .decide(START, 1)
            .decide(START + DAY, 10)
            .decide(START + DAY, 1)
            .decide(START + DAY + 100_000, 1),
        case("a window of a microsecond", "3/1us, token-bucket, burst 5")
            .decide(START, 5)
            .decide(START, 1)
            .decide(START + 1, 4)
            .decide(START + 1, 3)
            .decide(START + 2, 5)
            .decide(START + 3, 5),
        case("a month is thirty days", "3/1mo, token-bucket")
            .decide(START, 3)
            .decide(START + 10 * DAY - 1, 1)
            .decide(START + 10 * DAY, 1)
            .peek(START + 40 * DAY, 3),
        case(
            "time moves in ticks of a second",
            "4000000000/1h, token-bucket",
        )
        .decide(START + 1, 4_000_000_000)
        .decide(START + SECOND, 1)
        .decide(START + 2 * SECOND - 1, 1)
        .decide(START + 2 * SECOND, 1_111_111)
        .decide(START + 2 * SECOND, 1)
        .decide(START + 3 * SECOND, 1_111_111)
        .peek(START + 2 * HOUR, 4_000_000_000),
        case(
            "almost full gains nothing from the running tick",
            "4000000000/1h, token-bucket",
        )
        .decide(START, 1)
        .decide(START + SECOND - 1, 3_999_999_999)
        .decide(START + SECOND, 2)
        .decide(START + 2 * SECOND, 1_111_110)
        .peek(START + 2 * SECOND, 1_111_111),
        case(
            "as large as products may be",
            "70368744177664/1us, token-bucket",
        )
        .decide(START, 70_368_744_177_663)
        .decide(START, 2)
        .decide(START, 1)
        .decide(START, 1)
        .decide(START + 1, 70_368_744_177_664),
    ]
}

/// Debts, other amounts, refunds, and a clock that goes back.
fn changes() -> Vec<Case> {
    vec![
        case(
            "what has happened is charged over the limit",
            "60/1m, token-bucket, burst 5",
        )
        .decide(START, 4)
        .record(START, 8)
        .peek(START + SECOND, 0)
        .decide(START + SECOND, 1)
        .decide(START + 7 * SECOND - 1, 0)
        .decide(START + 7 * SECOND, 0)
        .decide(START + 8 * SECOND - 1, 1)
        .decide(START + 8 * SECOND, 1),
        case(
            "another amount keeps what is missing",
            "60/1m, token-bucket, burst 6",
        )
        .decide(START, 4)
        .peek(START, 1)
        .under(30)
        .decide(START, 3)
        .under(120)
        .decide(START, 1)
        .decide(START + SECOND, 2)
        .under(120)
        .decide(START + SECOND, 1),
        case(
            "refunded as if it had been refilled first",
            "60/1m, token-bucket, burst 6",
        )
        .decide(START, 4)
        .refund(START, START, 1)
        .peek(START, 3)
        .refund(START, START + SECOND, 3)
        .peek(START + SECOND, 6)
        .decide(START + SECOND, 2)
        .decide(START + SECOND, 2)
        .refund(START + SECOND, START + 4 * SECOND, 2)
        .peek(START + 4 * SECOND, 5)
        .refund(START + 4 * SECOND, START + 4 * SECOND, 100)
        .peek(START + 4 * SECOND, 6),
        case(
            "a clock that goes back refills nothing",
            "60/1m, token-bucket, burst 3",
        )
        .decide(START + 90 * SECOND, 3)
        .decide(START + 30 * SECOND, 1)
        .decide(START, 1)
        .decide(START + 91 * SECOND - 1, 1)
        .decide(START + 91 * SECOND, 1),
    ]
}
