//! Figures for the `metrics` facade. Without that feature, nobody is told.

mod list;
#[cfg(not(feature = "metrics"))]
mod silent;
#[cfg(feature = "metrics")]
mod told;

pub use self::list::{METRICS, Metric, MetricKind};
#[cfg(not(feature = "metrics"))]
pub(super) use self::silent::*;
#[cfg(feature = "metrics")]
pub(super) use self::told::*;

/// What became of somebody who was told to wait.
#[derive(Clone, Copy)]
pub(super) enum Retried {
    /// Came back in time, and was let in.
    Admitted,
    /// Came back in time, and in vain.
    DeniedAgain,
    /// Did not wait.
    TooSoon,
}
