use super::super::Case;
use super::{DAY, HOUR, MINUTE, SECOND, START, case};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = boundaries();
    cases.extend(changes());
    cases
}

/// Instants at which a counter is used up and has room again.
fn boundaries() -> Vec<Case> {
    let end = START + MINUTE;
    vec![
        case("what was used fades out over the next window", "6/1m")
            .decide(START, 6)
            .decide(START, 1)
            .peek(end, 1)
            .peek(end + 10 * SECOND - 1, 1)
            .decide(end + 10 * SECOND, 1)
            .decide(end + 10 * SECOND, 1)
            .peek(end + 20 * SECOND - 1, 1)
            .decide(end + 20 * SECOND, 1)
            .peek(end + MINUTE, 4),
        case("a full window has room for one when it ends", "3/1h")
            .decide(START + HOUR - 1, 3)
            .decide(START + HOUR - 1, 1)
            .decide(START + HOUR, 2)
            .decide(START + HOUR, 1)
            .decide(START + HOUR, 1)
            .decide(START + HOUR + 20 * MINUTE - 1, 1)
            .decide(START + HOUR + 20 * MINUTE, 1),
        case("a limit of one has room a tick later", "1/1h")
            .decide(START + HOUR - 1, 1)
            .decide(START + HOUR - 1, 1)
            .decide(START + HOUR, 1)
            .decide(START + HOUR, 1),
        case("a fraction is dropped", "10/1m")
            .decide(START, 2)
            .peek(end, 0)
            .peek(end + 30 * SECOND - 1, 0)
            .peek(end + 30 * SECOND, 0)
            .peek(end, 10)
            .peek(end + 30 * SECOND - 1, 10)
            .peek(end + 1, 0)
            .peek(end + MINUTE - 1, 0)
            .peek(end + MINUTE - 1, 10)
            .peek(end + MINUTE, 10),
        case("a retry within the window, and one in the next", "7/1s")
            .decide(START, 5)
            .decide(START + SECOND, 2)
            .decide(START + SECOND, 1)
            .decide(START + SECOND, 3)
            .decide(START + SECOND, 6)
            .decide(START + SECOND, 7)
            .decide(START + SECOND + 199_999, 1)
            .decide(START + SECOND + 200_000, 1)
            .decide(START + SECOND + 200_000, 7),
        case("two windows later nothing is left", "3/1m")
            .decide(end - 1, 3)
            .peek(end, 1)
            .peek(end + MINUTE - 1, 3)
            .peek(end + MINUTE, 3)
            .decide(START + 5 * MINUTE, 3),
        case("costs of nothing, of all, and of more", "5/1m")
            .decide(START, 0)
            .decide(START, 6)
            .decide(START, 5)
            .decide(START, 0)
            .decide(START, 6)
            .peek(START, 5),
        case("a window of a microsecond", "2/1us")
            .decide(START, 2)
            .decide(START, 1)
            .decide(START + 1, 1)
            .decide(START + 2, 1)
            .decide(START + 2, 2)
            .decide(START + 4, 2),
        case("a window that divides nothing", "3/7us")
            .decide(START, 3)
            .peek(START + 1, 1)
            .peek(START + 7, 1)
            .decide(START + 7, 1)
            .decide(START + 9, 1)
            .decide(START + 11, 2)
            .decide(START + 15, 3),
        case("a month is thirty days", "4/1mo")
            .decide(START, 4)
            .decide(START + 20 * DAY, 1)
            .decide(START + 40 * DAY, 2)
            .peek(START + 60 * DAY, 4),
        case("time moves in ticks of a second", "4000000000/1h")
            .decide(START, 4_000_000_000)
            .decide(START + HOUR, 1)
            .decide(START + HOUR + SECOND - 1, 1)
            .decide(START + HOUR + SECOND, 1_111_111)
            .decide(START + HOUR + SECOND, 1)
            .decide(START + HOUR + 2 * SECOND, 1_111_112)
            .peek(START + HOUR + 30 * MINUTE + 1, 2_000_000_000),
        case("as large as its counters are", "4294967295/1s")
            .decide(START, 4_294_967_294)
            .decide(START, 2)
            .decide(START, 1)
            .decide(START, 1)
            .decide(START + SECOND, 4_294_967_295)
            .peek(START + 2 * SECOND, 4_294_967_295),
    ]
}

/// Debts, other amounts, refunds, and a clock that goes back.
fn changes() -> Vec<Case> {
    let end = START + MINUTE;
    vec![
        case("what has happened is charged over the limit", "5/1m")
            .decide(START, 3)
            .record(START + 1, 12)
            .peek(START + 2, 0)
            .decide(START + 2, 1)
            .decide(START + 2, 5)
            .peek(end + 40 * SECOND, 0)
            .record(end + 40 * SECOND, 1)
            .decide(end + 44 * SECOND, 1)
            .peek(end + MINUTE, 5),
        case("another amount keeps the count", "6/1m")
            .decide(START, 5)
            .decide(START, 1)
            .under(3)
            .decide(end + 30 * SECOND, 1)
            .under(3)
            .decide(end + 30 * SECOND, 9)
            .under(12)
            .decide(end + 30 * SECOND, 1)
            .decide(end + 30 * SECOND, 1)
            .under(13),
        case("refunded to the window it was charged in", "6/1m")
            .decide(START, 4)
            .decide(START + SECOND, 2)
            .refund(START + SECOND, START + 2 * SECOND, 2)
            .peek(START + 2 * SECOND, 2)
            .decide(end, 2)
            .refund(START, end + 30 * SECOND, 4)
            .peek(end + 30 * SECOND, 4)
            .refund(START, end + MINUTE, 4)
            .peek(end + MINUTE, 4)
            .refund(end + MINUTE, end + MINUTE, 100)
            .peek(end + MINUTE, 4),
        case("a clock that goes back stays in the window", "3/1m")
            .decide(START + 90 * SECOND, 2)
            .decide(START + 30 * SECOND, 1)
            .decide(START, 1)
            .peek(START + 150 * SECOND, 1),
    ]
}
