//! The user whom a gateway names: [`UserIdHeader`].

use http::HeaderName;

use super::invalid_reason::InvalidReason;
use super::line::{Line, header_name};
use super::source::{Identified, Identify, IdentifyContext};
use crate::error::ValidationError;
use crate::identity_types::Identity;

/// The user that a header names, set by a gateway that has verified it.
///
/// **Whoever can reach this server with a header of their own can be anybody.** It is for
/// servers that only the gateway reaches, and only where the gateway removes the header from
/// what clients send.
///
/// ```
/// use tollgate::identity::UserIdHeader;
///
/// let who = UserIdHeader::trusted("x-user-id")?;
/// # let _ = who;
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
///
/// The value is 1 to 256 visible ASCII characters; anything else is invalid. Lines that differ
/// are [ambiguous](Identified::Ambiguous): the request gets 401. Identical lines count as one.
#[derive(Clone, Debug)]
pub struct UserIdHeader {
    name: HeaderName,
}

impl UserIdHeader {
    const MAX_LENGTH: usize = 256;

    /// Believes the header `name`.
    pub fn trusted(name: &str) -> Result<Self, ValidationError> {
        Ok(Self {
            name: header_name("user id header", name)?,
        })
    }
}

impl Identify for UserIdHeader {
    fn identify(&self, asking: &IdentifyContext<'_>) -> Identified {
        let id = match Line::of(&asking.head(), &self.name) {
            Line::Absent => return Identified::Absent,
            Line::Different => return Identified::Ambiguous,
            Line::Only(line) | Line::Identical(line) => line,
        };
        let fine =
            !id.is_empty() && id.len() <= Self::MAX_LENGTH && id.iter().all(u8::is_ascii_graphic);
        match str::from_utf8(id) {
            Ok(id) if fine => Identified::known(Identity::user(id)),
            _ => Identified::Invalid(InvalidReason::Custom),
        }
    }
}
