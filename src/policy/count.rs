//! Which outcomes count.

use std::fmt;

use http::StatusCode;

use crate::error::{ValidationError, ValidationErrors};

/// Which responses count against a rule: all of them, or some.
///
/// By outcome means: charged on entry, given back when the response turns out not to count. A
/// request that is dropped before its response stays charged, so nobody gets requests for free
/// by hanging up.
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
        /// The first digits that count, by number.
        classes: [bool; 10],
        codes: Box<[u16]>,
    },
}

impl Count {
    /// Every response counts. The default.
    #[must_use]
    pub const fn all() -> Self {
        Self(Which::All)
    }

    /// Only what went well: 2xx and 3xx, and 101, which opens a WebSocket.
    #[must_use]
    pub fn success() -> Self {
        Self::of(&[2, 3], &[101])
    }

    /// Only what failed: 4xx and 5xx. Also a service that returns an error instead of a
    /// response, and gRPC that says so at once: a `grpc-status` after the body comes too late.
    #[must_use]
    pub fn failure() -> Self {
        Self::of(&[4, 5], &[])
    }

    /// Only these: status codes (`404`) and classes (`4xx`).
    ///
    /// # Errors
    ///
    /// Every wrong status, each with its index as path: `[1]`.
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

    /// Whether a response with this status counts.
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

    /// Whether it depends on the response at all.
    pub(crate) const fn is_by_outcome(&self) -> bool {
        matches!(self.0, Which::Some { .. })
    }
}

/// In the words of policy files: `all`, `success`, `failure`, or statuses such as `2xx, 404`.
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
