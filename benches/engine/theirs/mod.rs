//! The peers' side.

mod axum_gcra;
mod governor;
mod pingora_limits;
mod rate_net;

pub use self::axum_gcra::AxumGcra;
pub use self::governor::{Governor, ThreeGovernors};
pub use self::pingora_limits::PingoraLimits;
pub use self::rate_net::RateNet;
