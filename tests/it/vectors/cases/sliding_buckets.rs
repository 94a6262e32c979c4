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
        case(
            "a bucket counts until its last instant has left",
            "2/1m, sliding-buckets",
        )
        .decide(START, 1)
        .decide(START + SECOND - 1, 1)
        .decide(START + SECOND - 1, 1)
        .decide(START + MINUTE, 1)
        .decide(START + MINUTE + SECOND - 2, 1)
        .decide(START + MINUTE + SECOND - 1, 2)
        .decide(START + MINUTE + SECOND - 1, 1),
        case(
            "free when the oldest that is needed leaves",
            "6/1m, sliding-buckets, buckets 6",
        )
        .decide(START, 1)
        .decide(START + 10 * SECOND, 2)
        .decide(START + 25 * SECOND, 3)
        .decide(START + 30 * SECOND, 1)
        .decide(START + 30 * SECOND, 2)
        .decide(START + 30 * SECOND, 4)
        .decide(START + 30 * SECOND, 6)
        .decide(START + 70 * SECOND - 1, 1)
        .decide(START + 70 * SECOND, 1)
        .decide(START + 80 * SECOND - 1, 2),
        case(
            "costs of nothing, of all, and of more",
            "5/1m, sliding-buckets",
        )
        .decide(START, 0)
        .decide(START, 6)
        .decide(START, 5)
        .decide(START, 0)
        .decide(START, 6)
        .peek(START, 5),
        case(
            "one bucket is as long as the window",
            "3/1m, sliding-buckets, buckets 1",
        )
        .decide(START + 10 * SECOND, 3)
        .decide(START + MINUTE, 1)
        .decide(START + 2 * MINUTE - 2, 1)
        .decide(START + 2 * MINUTE - 1, 3),
        case(
            "buckets that do not divide the window",
            "3/10us, sliding-buckets, buckets 3",
        )
        .decide(START, 1)
        .decide(START + 3, 1)
        .decide(START + 4, 1)
        .decide(START + 5, 1)
        .peek(START + 12, 1)
        .decide(START + 13, 1)
        .peek(START + 16, 1)
        .peek(START + 17, 1)
        .peek(START + 24, 3)
        .peek(START + 25, 3),
        case("more buckets than microseconds", "2/3us, sliding-buckets")
            .decide(START, 1)
            .decide(START + 1, 1)
            .decide(START + 2, 1)
            .decide(START + 3, 1)
            .decide(START + 3, 1)
            .decide(START + 4, 1),
        case(
            "a month is thirty days",
            "2/1mo, sliding-buckets, buckets 30",
        )
        .decide(START, 2)
        .decide(START + 30 * DAY, 1)
        .decide(START + 31 * DAY - 2, 1)
        .decide(START + 31 * DAY - 1, 1),
        case(
            "counts as large as a double holds",
            "9007199254740991/1h, sliding-buckets",
        )
        .decide(START, 9_007_199_254_740_989)
        .decide(START + MINUTE, 3)
        .decide(START + MINUTE, 2)
        .decide(START + MINUTE, 1)
        .decide(START + HOUR + MINUTE - 1, 9_007_199_254_740_989)
        .decide(START + HOUR + MINUTE - 1, 1)
        .decide(START + HOUR + 2 * MINUTE - 1, 1),
    ]
}

/// Debts, other amounts, refunds, and a clock that goes back.
fn changes() -> Vec<Case> {
    vec![
        case(
            "what has happened is charged over the limit",
            "5/1m, sliding-buckets",
        )
        .decide(START, 3)
        .record(START + 10 * SECOND, 9)
        .peek(START + 20 * SECOND, 0)
        .decide(START + 20 * SECOND, 1)
        .record(START + 20 * SECOND, 1)
        .decide(START + MINUTE + SECOND - 1, 1)
        .decide(START + MINUTE + 11 * SECOND - 1, 1)
        .peek(START + 3 * MINUTE, 5),
        case(
            "another amount keeps the count",
            "5/1m, sliding-buckets, buckets 12",
        )
        .decide(START, 4)
        .decide(START + SECOND, 1)
        .under(3)
        .peek(START + SECOND, 1)
        .under(3)
        .decide(START + SECOND, 6)
        .under(10)
        .decide(START + 2 * SECOND, 1)
        .decide(START + 2 * SECOND, 1)
        .under(11),
        case(
            "refunded to the bucket it was charged in",
            "5/1m, sliding-buckets",
        )
        .decide(START, 2)
        .decide(START + SECOND, 3)
        .refund(START + SECOND, START + 2 * SECOND, 1)
        .peek(START + 2 * SECOND, 1)
        .refund(START + 3 * SECOND, START + 4 * SECOND, 2)
        .peek(START + 4 * SECOND, 1)
        .refund(START, START + 5 * SECOND, 100)
        .peek(START + 5 * SECOND, 3)
        .refund(START, START + 2 * MINUTE, 2)
        .peek(START + 2 * MINUTE, 5),
        case(
            "a clock that goes back stays in the bucket",
            "3/1m, sliding-buckets",
        )
        .decide(START + 90 * SECOND, 2)
        .decide(START + 30 * SECOND, 1)
        .decide(START, 1)
        .decide(START + 151 * SECOND - 2, 1)
        .decide(START + 151 * SECOND - 1, 1),
    ]
}
