//! The calendar in UTC.
//!
//! Calendar windows use integers only, because the Redis scripts compute the same.

pub(crate) const DAY: u64 = 24 * 60 * 60 * 1_000_000;

/// Returns the end of the aligned block of `count` calendar months that contains `now`.
///
/// Blocks are aligned to January 1970: one month ends with the month, three with the quarter,
/// twelve with the year.
pub(crate) const fn months_end(now: u64, count: u32) -> u64 {
    let count = count as u64;
    let month = month_of_day(now / DAY);
    first_day_of_month((month / count + 1) * count) * DAY
}

/// Returns the months since January 1970 of a day counted from 1970-01-01.
///
/// The computation starts years in March, so that the leap day is the last day of its year.
const fn month_of_day(day: u64) -> u64 {
    let shifted = day + 719_468; // days since 0000-03-01
    let era = shifted / 146_097; // 400 years
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    (era * 400 + year_of_era) * 12 + months_since_march + 2 - 1_970 * 12
}

/// Returns the first day, counted from 1970-01-01, of a month counted from January 1970.
const fn first_day_of_month(month: u64) -> u64 {
    let since_march = month + 1_970 * 12 - 2; // months since 0000-03
    let year = since_march / 12;
    let days_of_full_months = (153 * (since_march % 12) + 2) / 5;
    year * 365 + year / 4 - year / 100 + year / 400 + days_of_full_months - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    #[test]
    fn agrees_with_jiff_on_every_day_until_2219() {
        let mut day = date(1970, 1, 1);
        let mut number = 0;
        while day.year() < 2220 {
            let month =
                u64::try_from(i64::from(day.year() - 1970) * 12 + i64::from(day.month() - 1))
                    .expect("not before 1970");
            assert_eq!(month_of_day(number), month, "{day}");
            if day.day() == 1 {
                assert_eq!(first_day_of_month(month), number, "{day}");
            }
            day = day.tomorrow().expect("in range");
            number += 1;
        }
    }

    #[test]
    fn blocks_end_with_months_quarters_and_years() {
        let at = |y, m, d| {
            let zoned = date(y, m, d).to_zoned(TimeZone::UTC).expect("valid");
            u64::try_from(zoned.timestamp().as_microsecond()).expect("after 1970")
        };
        let leap_day = at(2024, 2, 29) + DAY - 1;
        assert_eq!(months_end(leap_day, 1), at(2024, 3, 1));
        assert_eq!(months_end(leap_day, 3), at(2024, 4, 1));
        assert_eq!(months_end(leap_day, 12), at(2025, 1, 1));
        assert_eq!(months_end(at(2025, 1, 1), 1), at(2025, 2, 1));
        assert_eq!(months_end(at(2025, 12, 31), 1), at(2026, 1, 1));
    }
}
