//! Text form of quotas: `500/hour`, `10 per 15 minutes, token-bucket, burst 20`.

use std::str::FromStr;

use super::builder::MAX_BUCKETS;
use super::{Algorithm, Quota, Window};
use crate::error::{ValidationError, ValidationErrors};

const EXPECTED: &str =
    "a quota such as `500/hour`, `10/15m`, `50 per 10 seconds`, `unlimited` or `blocked`";

/// Reads `N/second|minute|hour|day|week|month`, short forms (`N/s`, `N/15m`), `N per 10 seconds`,
/// `unlimited` and `blocked`; then, each after a comma, an algorithm, `burst N`, `buckets N`. Returns
/// the first error; a policy file and [`QuotaBuilder`](super::QuotaBuilder) report all.
///
/// ```
/// use tollgate::Quota;
///
/// for text in ["500/hour", "500/h", "500 per hour", "500 / 1 hour", "500/60m"] {
///     assert_eq!(text.parse::<Quota>()?, Quota::per_hour(500)?);
/// }
/// let error = "10/fortnight".parse::<Quota>().unwrap_err();
/// assert!(error.to_string().contains("second, minute, hour, day, week or month"));
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
impl FromStr for Quota {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        Self::parse_as(text, Algorithm::default()).map_err(ValidationErrors::into_first)
    }
}

impl Quota {
    /// Parses a quota. Default of its algorithm: `algorithm`.
    pub(crate) fn parse_as(text: &str, algorithm: Algorithm) -> Result<Self, ValidationErrors> {
        let mut parts = text.split(',').map(str::trim);
        let rate = parts.next().unwrap_or_default();
        match rate {
            "unlimited" | "blocked" => {
                if let Some(extra) = parts.next() {
                    let expected = format!("nothing after `{rate}`");
                    return Err(ValidationError::new("quota", extra, expected).into());
                }
                return Ok(match rate {
                    "blocked" => Self::blocked(),
                    _ => Self::unlimited(),
                });
            }
            "0" => {
                let expected = "\"blocked\" to deny everything, or \"unlimited\" to allow it";
                return Err(ValidationError::new("quota", "0", expected).into());
            }
            _ => {}
        }
        let (amount, window) = rate
            .split_once('/')
            .or_else(|| rate.split_once(" per "))
            .ok_or_else(|| ValidationError::new("quota", text, EXPECTED))?;
        let mut builder = Self::builder(whole_number("quota limit", amount)?, window.parse()?)
            .algorithm(algorithm);
        let mut seen = Vec::new();
        for part in parts {
            let (setting, found) = match part.split_once(' ') {
                Some((setting @ ("burst" | "buckets"), number)) => (setting, number),
                _ => ("algorithm", part),
            };
            if seen.contains(&setting) {
                let expected = format!("the {setting} of a quota just once");
                return Err(ValidationError::new("quota", text, expected).into());
            }
            seen.push(setting);
            builder = match setting {
                "burst" => builder.burst(whole_number("quota burst", found)?),
                "buckets" => {
                    let buckets = whole_number("quota buckets", found)?;
                    let fits = u32::try_from(buckets).map_err(|_| {
                        ValidationError::new(
                            "quota buckets",
                            buckets,
                            format!("1 to {MAX_BUCKETS}"),
                        )
                    });
                    builder.buckets(fits?)
                }
                _ => builder.algorithm(found.parse()?),
            };
        }
        builder.build()
    }
}

/// Parses digits, with `_` between them where it helps reading.
fn whole_number(field: &'static str, text: &str) -> Result<u64, ValidationError> {
    let text = text.trim();
    let digits = text.replace('_', "");
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(number) if plain && !text.starts_with('_') && !text.ends_with('_') => Ok(number),
        _ => Err(ValidationError::new(
            field,
            text,
            "a whole number such as 500 or 1_000_000",
        )),
    }
}

/// Reads what a quota has after its slash: `hour`, `15m`, `10 seconds`.
///
/// ```
/// use tollgate::Window;
///
/// assert_eq!("15 minutes".parse::<Window>()?.to_string(), "15m");
/// assert_eq!("hour".parse::<Window>()?, Window::HOUR);
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
impl FromStr for Window {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let text = text.trim();
        let unit_at = text
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(text.len());
        let (count, unit) = text.split_at(unit_at);
        let count = match count {
            "" => 1,
            digits => whole_number("quota window", digits)?,
        };
        Self::from_unit(count, unit.trim()).unwrap_or_else(|| {
            Err(ValidationError::new(
                "quota window",
                text,
                "second, minute, hour, day, week or month, or a number of them such as `15m`",
            ))
        })
    }
}
