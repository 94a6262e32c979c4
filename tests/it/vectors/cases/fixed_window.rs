use super::super::Case;
use super::{DAY, HOUR, MINUTE, SECOND, START, case, exactly, just_before};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = boundaries();
    cases.extend(changes());
    cases
}

/// Instants at which a counter is used up and has room again.
fn boundaries() -> Vec<Case> {
    let end = START + MINUTE;
    vec![
        case("a window is full until it ends", "3/1m, fixed-window")
            .decide(START, 1)
            .decide(START + 1, 1)
            .decide(START + 30 * SECOND, 1)
            .decide(START + 30 * SECOND, 1)
            .decide(end - 1, 1)
            .decide(end, 1)
            .peek(end, 2),
        case(
            "twice the limit across a boundary, and no more",
            "3/1m, fixed-window",
        )
        .decide(end - 1, 3)
        .decide(end - 1, 1)
        .decide(end, 3)
        .decide(end, 1),
        case(
            "costs of nothing, of all, and of more",
            "5/1m, fixed-window",
        )
        .decide(START, 0)
        .decide(START, 6)
        .decide(START, 5)
        .decide(START, 0)
        .decide(START, 6)
        .decide(START, 1),
        case("a peek changes nothing", "2/1m, fixed-window")
            .peek(START, 1)
            .peek(START, 2)
            .peek(START, 3)
            .decide(START, 2)
            .peek(START, 0)
            .peek(START, 1),
        case("a day ends at midnight", "2/1d, fixed-window")
            .decide(START + 3 * HOUR, 1)
            .decide(START + DAY - 1, 1)
            .decide(START + DAY - 1, 1)
            .decide(START + DAY, 1),
        case("a month ends with the month", "2/1mo, fixed-window")
            .decide(exactly("2025-01-31T23:59:59"), 2)
            .decide(just_before("2025-02-01T00:00:00"), 1)
            .decide(exactly("2025-02-01T00:00:00"), 2)
            .decide(just_before("2025-03-01T00:00:00"), 1)
            .decide(exactly("2025-03-01T00:00:00"), 1),
        case("a leap year has a day more", "1/1mo, fixed-window")
            .decide(exactly("2024-02-01T00:00:00"), 1)
            .decide(exactly("2024-02-29T00:00:00"), 1)
            .decide(just_before("2024-03-01T00:00:00"), 1)
            .decide(exactly("2024-03-01T00:00:00"), 1)
            .decide(exactly("2100-02-15T00:00:00"), 1)
            .decide(just_before("2100-03-01T00:00:00"), 1)
            .decide(exactly("2100-03-01T00:00:00"), 1),
        case("three months are a quarter", "1/3mo, fixed-window")
            .decide(exactly("2024-02-29T12:00:00"), 1)
            .decide(just_before("2024-04-01T00:00:00"), 1)
            .decide(exactly("2024-04-01T00:00:00"), 1)
            .decide(exactly("2024-12-31T23:59:59"), 1)
            .decide(exactly("2025-01-01T00:00:00"), 1),
        case(
            "other windows are aligned to the epoch",
            "2/7us, fixed-window",
        )
        .decide(START, 1)
        .decide(START + 1, 1)
        .decide(START + 2, 1)
        .decide(START + 6, 1)
        .decide(START + 7, 1)
        .decide(START + 8, 2),
        case(
            "counts as large as a double holds",
            "9007199254740991/1h, fixed-window",
        )
        .decide(START, 9_007_199_254_740_989)
        .decide(START, 3)
        .decide(START, 1)
        .decide(START, 2)
        .decide(START, 1)
        .decide(START, 1)
        .decide(START + HOUR, 1),
    ]
}

/// Debts, other amounts, refunds, and a clock that goes back.
fn changes() -> Vec<Case> {
    let end = START + MINUTE;
    vec![
        case(
            "what has happened is charged over the limit",
            "5/1m, fixed-window",
        )
        .decide(START, 4)
        .record(START + 1, 8)
        .peek(START + 2, 0)
        .decide(START + 2, 0)
        .decide(START + 2, 1)
        .record(START + 3, 0)
        .decide(end - 1, 1)
        .decide(end, 5),
        case("another amount keeps the count", "5/1m, fixed-window")
            .decide(START, 4)
            .decide(START, 1)
            .under(3)
            .peek(START, 0)
            .under(3)
            .decide(START, 6)
            .under(10)
            .decide(START, 1)
            .decide(START, 1)
            .under(11)
            .decide(end, 3)
            .under(3),
        case("refunded within its window only", "5/1m, fixed-window")
            .decide(START, 5)
            .refund(START, START + 1, 2)
            .peek(START + 1, 3)
            .decide(START + 1, 2)
            .decide(end, 3)
            .refund(START + 1, end, 2)
            .peek(end, 3)
            .refund(end, end + 1, 100)
            .peek(end + 1, 5),
        case(
            "a clock that goes back stays in the window",
            "3/1m, fixed-window",
        )
        .decide(START + 90 * SECOND, 2)
        .decide(START + 30 * SECOND, 1)
        .decide(START, 1)
        .decide(START + 119 * SECOND, 1)
        .decide(START + 120 * SECOND, 1),
    ]
}
