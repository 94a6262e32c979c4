//! Which responses count against a rule.

use std::fmt;

use http::StatusCode;

use crate::error::{ValidationError, ValidationErrors};

/// Which responses count against a rule: all of them, or some.
///
/// If only some responses count, a request is charged on entry, and refunded if its response does
/// not count. A request that is dropped before its response stays charged, so that a caller cannot
/// avoid charges by closing the connection.
///
/// ```
/// use http::StatusCode;
/// use tollgate::policy::Count;
///
/// assert!(Count::failure().includes(StatusCode::UNAUTHORIZED));
/// assert!(!Count::failure().includes(StatusCode::OK));
///
/// let some = Count::statuses(["2xx", "404"])?;
/// assert!(some.includes(StatusCode::NOT_FOUND));
/// assert!(!some.includes(StatusCode::BAD_REQUEST));
/// # Ok::<(), tollgate::ValidationErrors>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count(Which);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Which {
    #[default]
    All,
    Some {
        /// For each first digit of a status code, whether it counts.
        classes: [bool; 10],
        codes: Box<[u16]>,
    },
}

impl Count {
    /// Counts every response. This is the default.
    #[must_use]
    pub const fn all() -> Self {
        Self(Which::All)
    }

    /// Counts only successful responses: 2xx and 3xx, and 101, which opens a WebSocket.
    #[must_use]
    pub fn success() -> Self {
        Self::of(&[2, 3], &[101])
    }

    /// Counts only failures: 4xx and 5xx, errors that the service returns instead of a response, and
    /// gRPC errors with a `grpc-status` in the headers. A `grpc-status` in the trailers is not seen.
    #[must_use]
    pub fn failure() -> Self {
        Self::of(&[4, 5], &[])
    }

    /// Counts only these status codes (`404`) and classes (`4xx`).
    ///
    /// # Errors
    ///
    /// Returns every invalid status, each with its index as path: `[1]`.
    pub fn statuses<'a>(
        statuses: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ValidationErrors> {
        let (mut classes, mut codes) = (Vec::new(), Vec::new());
        let mut errors = ValidationErrors::default();
        for (index, status) in statuses.into_iter().enumerate() {
            let class = status.strip_suffix("xx").map(str::parse);
            match (class, status.parse()) {
                (Some(Ok(class @ 1..=5)), _) => classes.push(class),
                (None, Ok(code @ 100..=599)) => codes.push(code),
                _ => {
                    let expected = "status codes such as `404`, or classes such as `4xx`";
                    let error = ValidationError::new("counted status", status, expected);
                    errors.push(error.at(format!("[{index}]")));
                }
            }
        }
        if classes.is_empty() && codes.is_empty() && errors.iter().len() == 0 {
            let expected = "at least one status code or class";
            errors.push(ValidationError::new(
                "counted statuses",
                "nothing",
                expected,
            ));
        }
        errors.or(Self::of(&classes, &codes))
    }

    fn of(classes: &[usize], codes: &[u16]) -> Self {
        let classes = std::array::from_fn(|class| classes.contains(&class));
        let codes = codes.into();
        Self(Which::Some { classes, codes })
    }

    /// Returns whether a response with this status counts.
    #[must_use]
    pub fn includes(&self, status: StatusCode) -> bool {
        match &self.0 {
            Which::All => true,
            Which::Some { classes, codes } => {
                let code = status.as_u16();
                classes[usize::from(code / 100) % 10] || codes.contains(&code)
            }
        }
    }

    /// Returns whether the status of the response matters.
    pub(crate) const fn is_by_outcome(&self) -> bool {
        matches!(self.0, Which::Some { .. })
    }
}

/// Writes the value as in policy files: `all`, `success`, `failure`, or statuses such as `2xx, 404`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Which::Some { classes, codes } = &self.0 else {
            return f.write_str("all");
        };
        if *self == Self::success() {
            return f.write_str("success");
        }
        if *self == Self::failure() {
            return f.write_str("failure");
        }
        let classes = classes.iter().enumerate().filter(|(_, counts)| **counts);
        let classes = classes.map(|(class, _)| format!("{class}xx"));
        let statuses: Vec<String> = classes.chain(codes.iter().map(u16::to_string)).collect();
        f.write_str(&statuses.join(", "))
    }
}
