//! Settings of a [`RedisStore`].

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::key::Prefix;
use super::overrides::Seen;
use super::queue::QueueSettings;
use super::servers::Servers;
use super::slot_queues::CoalescingLimits;
use super::tls::Tls;
use super::url::Target;
use super::{RedisStore, Shared};
use crate::clock::SystemClock;
use crate::error::Invalid;
use crate::store::Overrides;
use crate::store::chance::chance;
use crate::store::epoch::Epoch;
use crate::store::wall::WallTime;

/// Settings of a [`RedisStore`]; nothing is checked before [`build`](RedisStoreBuilder::build).
#[derive(Clone)]
#[must_use]
pub struct RedisStoreBuilder {
    url: String,
    prefix: String,
    deadline: Duration,
    by_callers_clock: bool,
    coalescing: bool,
    #[cfg(feature = "redis-tls")]
    roots: Option<Vec<u8>>,
}

/// Those who travel together are counted by a byte.
const _: () = assert!(RedisStoreBuilder::TOGETHER.per_call <= 255);

impl RedisStoreBuilder {
    const LONGEST_DEADLINE: Duration = Duration::from_mins(1);
    /// A connection on which nothing is heard for as long as so many deadlines is given up.
    const SILENT_DEADLINES: u32 = 10;
    const SHORTEST_PATIENCE: Duration = Duration::from_millis(250);
    const LONGEST_PATIENCE: Duration = Duration::from_secs(1);
    /// Two calls: one that the server works at, one that is on its way to or from it. More would
    /// only make each smaller. And no call so long that others wait for it for a millisecond.
    const TOGETHER: CoalescingLimits = CoalescingLimits {
        per_call: 64,
        per_slot: 2,
        in_all: 512,
    };
    const EACH_ALONE: CoalescingLimits = CoalescingLimits {
        per_call: 1,
        per_slot: 512,
        in_all: 512,
    };

    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: "tollgate".to_owned(),
            deadline: Duration::from_millis(50),
            by_callers_clock: false,
            coalescing: true,
            #[cfg(feature = "redis-tls")]
            roots: None,
        }
    }

    /// What all keys begin with; `tollgate` by default. Applications that share a server need one
    /// each: whoever has the same prefix shares the counters.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// How long an answer may take, 50 milliseconds by default. After that the answer is an error,
    /// and whether it was charged is not known.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Decides by the callers' clocks instead of the server's `TIME`.
    ///
    /// For tests that move time with a [`ManualClock`](crate::ManualClock), and for services on
    /// which a script must not call `TIME`. All windows, rate windows included, then follow the wall
    /// clocks of the processes, because monotonic time cannot be compared between machines. The
    /// clocks of a fleet have to agree: a counter goes by the one that is furthest ahead, and a key
    /// is deleted a minute after the last clock needs it.
    pub fn by_callers_clock(mut self) -> Self {
        self.by_callers_clock = true;
        self
    }

    /// Whether decisions that wait together travel in one call of the script, as they do by
    /// default.
    ///
    /// Two calls are under way at once; what comes meanwhile takes the next one, up to 64 decisions
    /// together. Each is decided for itself, in the order in which they came, and nobody waits as
    /// long as the server keeps up. Under load it can decide two or three times as much. Without
    /// it, every decision has a call of its own, up to 512 at once: for servers that are shared with
    /// others, who would notice scripts of a quarter of a millisecond.
    pub fn coalescing(mut self, on: bool) -> Self {
        self.coalescing = on;
        self
    }

    /// Trusts servers whose certificate was signed with one of these, which are in PEM, and no others;
    /// by default those that the system trusts. For `rediss://`.
    #[cfg(feature = "redis-tls")]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Checks the settings, and starts to connect.
    ///
    /// Has to be called on a tokio runtime, whose tasks keep the connection from then on. Whether
    /// Redis can be reached is no matter: the store comes up without it, and finds it when it is
    /// there.
    pub fn build(self) -> Result<RedisStore, Invalid> {
        let mut target = Target::parse(&self.url)?;
        if target.is_tls() {
            #[cfg(feature = "redis-tls")]
            let roots = self.roots.as_deref();
            #[cfg(not(feature = "redis-tls"))]
            let roots = None;
            target.secure(&Tls::new(roots)?);
        }
        let prefix = Prefix::new(&self.prefix)?;
        if self.deadline.is_zero() || self.deadline > Self::LONGEST_DEADLINE {
            let found = format!("{:?}", self.deadline);
            return Err(Invalid::new("redis deadline", found, "up to 60 seconds"));
        }
        let runtime = Handle::try_current().map_err(|_| {
            Invalid::new(
                "runtime",
                "none",
                "a tokio runtime: build the store in `#[tokio::main]`, or in `Runtime::block_on`",
            )
        })?;
        let max_silence = (self.deadline * Self::SILENT_DEADLINES)
            .clamp(Self::SHORTEST_PATIENCE, Self::LONGEST_PATIENCE);
        let limits = if self.coalescing {
            Self::TOGETHER
        } else {
            Self::EACH_ALONE
        };
        let clock = SystemClock::new();
        let settings = QueueSettings {
            limits,
            max_silence,
            deadline: self.deadline,
            runtime: runtime.clone(),
            clock: clock.clone(),
            random: chance,
        };
        let shared = Arc::new(Shared {
            servers: Servers::start(target, settings),
            clock,
            prefix,
            deadline: self.deadline,
            by_callers_clock: self.by_callers_clock,
            wall: WallTime::default(),
            overrides: Overrides::new(),
            epoch: Epoch::default(),
            seen: Seen::default(),
        });
        runtime.spawn(Shared::follow_overrides(Arc::downgrade(&shared)));
        Ok(RedisStore { shared, runtime })
    }
}

/// Without the URL, which may have a password in it.
impl std::fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("prefix", &self.prefix)
            .field("deadline", &self.deadline)
            .field("by_callers_clock", &self.by_callers_clock)
            .field("coalescing", &self.coalescing)
            .finish_non_exhaustive()
    }
}
