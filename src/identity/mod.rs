//! Who is asking: from a request's head to an [`Identity`], by verified facts only.

mod source;

pub use self::source::{Asking, Identified, Identify};
