//! Identity from a header of a trusted gateway: [`UserIdHeader`].

use http::HeaderName;

use super::invalid_reason::InvalidReason;
use super::single_header::{SingleHeader, header_name};
use super::source::{Identified, Identify, IdentifyContext};
use crate::error::ValidationError;
use crate::identity_types::Identity;

/// Identifies the user by a header that a gateway sets after it has verified the user.
///
/// **A client that can send this header directly can claim any user.** Use it only if all requests
/// come through the gateway, and the gateway removes the header from the requests of clients.
///
/// ```
/// use tollgate::identity::UserIdHeader;
///
/// let source = UserIdHeader::trusted("x-user-id")?;
/// # let _ = source;
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

    /// Trusts the header `name`.
    pub fn trusted(name: &str) -> Result<Self, ValidationError> {
        Ok(Self {
            name: header_name("user id header", name)?,
        })
    }
}

impl Identify for UserIdHeader {
    fn identify(&self, context: &IdentifyContext<'_>) -> Identified {
        let id = match SingleHeader::of(&context.head(), &self.name) {
            SingleHeader::Absent => return Identified::Absent,
            SingleHeader::Different => return Identified::Ambiguous,
            SingleHeader::Only(line) | SingleHeader::Identical(line) => line,
        };
        let is_valid =
            !id.is_empty() && id.len() <= Self::MAX_LENGTH && id.iter().all(u8::is_ascii_graphic);
        match str::from_utf8(id) {
            Ok(id) if is_valid => Identified::known(Identity::user(id)),
            _ => Identified::Invalid(InvalidReason::Custom),
        }
    }

    fn description(&self) -> String {
        format!("user in `{}`, set by a gateway", self.name)
    }
}
