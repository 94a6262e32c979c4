//! Settings of a [`RedisStore`].

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::key::Prefix;
use super::overrides::OverrideCopy;
use super::queue::QueueSettings;
use super::refunds::PendingRefunds;
use super::servers::Servers;
use super::slot_queues::CoalescingLimits;
use super::tls::Tls;
use super::url::RedisTarget;
use super::{RedisStore, Shared};
use crate::clock::{Clock as _, SystemClock};
use crate::error::{ValidationError, ValidationErrors};
use crate::store::Overrides;
use crate::store::chance::chance;
use crate::store::epoch::Epoch;
use crate::store::wall::WallTime;

/// Settings of a [`RedisStore`]. [`build`](RedisStoreBuilder::build) validates them.
///
/// # Requirements of the server
///
/// Under a `maxmemory` with an eviction policy, counters are lost when the server is full, and their
/// callers start again at zero. A failover may lose writes that were not replicated.
///
/// After it has connected, the store logs `rate_limit_configuration_warning` for settings of the server
/// that are probably a mistake: see the [guide](crate::docs::operations#configuration-warnings). Without
/// `+info` and `+scan`, some of these checks are skipped.
///
/// The user needs `+eval +evalsha +time +get +set +setrange +hget +hmget +hset +hdel +hgetall +hscan +pttl
/// +pexpire +persist +type +del +unlink` on `~prefix:*`, and `+scan` for
/// [`clear`](crate::StoreAdmin::clear) and [`len`](crate::StoreAdmin::len); in a cluster `+cluster|slots +asking`,
/// behind sentinels `+role`.
#[derive(Clone)]
#[must_use]
pub struct RedisStoreBuilder {
    url: String,
    prefix: String,
    deadline: Duration,
    use_client_clock: bool,
    coalescing: bool,
    max_overrides: usize,
    #[cfg(feature = "redis-tls")]
    roots: Option<Vec<u8>>,
}

/// The script counts the requests of a call with one byte.
const _: () = assert!(RedisStoreBuilder::COALESCED.per_call <= 255);

impl RedisStoreBuilder {
    const LONGEST_DEADLINE: Duration = Duration::from_mins(1);
    /// A connection that is silent for this many deadlines while a reply is due is closed.
    const SILENT_DEADLINES: u32 = 10;
    const MIN_SILENCE: Duration = Duration::from_millis(250);
    const MAX_SILENCE: Duration = Duration::from_secs(1);
    /// Two calls in flight per slot: one that the server runs, one on the wire. More would only make
    /// each smaller. 64 decisions take the server less than a millisecond.
    const COALESCED: CoalescingLimits = CoalescingLimits {
        per_call: 64,
        per_slot: 2,
        in_all: 512,
    };
    const UNCOALESCED: CoalescingLimits = CoalescingLimits {
        per_call: 1,
        per_slot: 512,
        in_all: 512,
    };

    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: Prefix::DEFAULT.to_owned(),
            deadline: Duration::from_millis(50),
            use_client_clock: false,
            coalescing: true,
            max_overrides: 100_000,
            #[cfg(feature = "redis-tls")]
            roots: None,
        }
    }

    /// Sets the prefix of all keys. Default: `tollgate`. Applications that share a server need
    /// different prefixes: stores with the same prefix share their counters.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Sets the deadline of a decision. Default: 50 ms. After that the result is an error, and it is
    /// unknown whether the decision was charged, unless the message states that it was not sent.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Uses the clocks of the callers instead of the server's `TIME`.
    ///
    /// For tests that move time with a [`ManualClock`](crate::ManualClock), and for servers on which
    /// a script must not call `TIME`. All windows, rate windows included, then follow the wall
    /// clocks of the processes, because monotonic time cannot be compared between machines. The
    /// clocks of the processes have to agree: a counter uses the one that is furthest ahead, and a
    /// key is deleted a minute after its last window ends.
    pub fn use_client_clock(mut self) -> Self {
        self.use_client_clock = true;
        self
    }

    /// Sets whether decisions that wait at the same time share a call of the script. Default: on.
    ///
    /// Two calls are in flight at once. Decisions that arrive meanwhile share the next one, up to 64.
    /// Each is decided on its own, in the order of arrival, and none waits while the server keeps up.
    /// Under load the server decides two to three times as much. When this is off, every decision has
    /// a call of its own, up to 512 at once: for servers shared with applications that cannot wait
    /// for scripts of a quarter of a millisecond.
    pub fn coalescing(mut self, on: bool) -> Self {
        self.coalescing = on;
        self
    }

    /// Sets the maximum number of [overrides](crate::Override). Default: 100,000. Another one is
    /// rejected with an error. Every process keeps a copy, of about 300 bytes each.
    ///
    /// A process that finds more at its start has no complete list of blocked callers. Its requests
    /// follow the failure mode of their rules, and [`Store::health`](crate::Store::health) is degraded.
    pub fn max_overrides(mut self, max: usize) -> Self {
        self.max_overrides = max;
        self
    }

    /// Sets the trusted root certificates, in PEM, for `rediss://`. Default: those of the system.
    #[cfg(feature = "redis-tls")]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// Validates the settings, and starts to connect.
    ///
    /// Must be called on a tokio runtime, which runs the tasks of the store. Redis may be down: the
    /// store connects when it is up.
    ///
    /// # Errors
    ///
    /// All wrong settings, each with its path: `url`, `root_certificates`, `prefix`, `deadline`; and
    /// `runtime` without a tokio runtime.
    pub fn build(self) -> Result<RedisStore, ValidationErrors> {
        let mut errors = ValidationErrors::default();
        let target = errors.note(self.target());
        let prefix = Prefix::new(&self.prefix).map_err(|error| error.at("prefix"));
        let prefix = errors.note(prefix);
        if self.deadline.is_zero() || self.deadline > Self::LONGEST_DEADLINE {
            let found = format!("{:?}", self.deadline);
            let error = ValidationError::new("redis deadline", found, "up to 60 seconds");
            errors.push(error.at("deadline"));
        }
        let runtime = errors.note(Handle::try_current().map_err(|_| {
            let expected =
                "a tokio runtime: build the store in `#[tokio::main]`, or in `Runtime::block_on`";
            ValidationError::new("runtime", "none", expected).at("runtime")
        }));
        let (Some(target), Some(prefix), Some(runtime), true) =
            (target, prefix, runtime, errors.iter().next().is_none())
        else {
            return Err(errors);
        };
        let max_silence =
            (self.deadline * Self::SILENT_DEADLINES).clamp(Self::MIN_SILENCE, Self::MAX_SILENCE);
        let limits = if self.coalescing {
            Self::COALESCED
        } else {
            Self::UNCOALESCED
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
        let started_at = clock.now();
        let shared = Arc::new(Shared {
            servers: Servers::start(target, settings),
            clock,
            prefix,
            deadline: self.deadline,
            use_client_clock: self.use_client_clock,
            wall: WallTime::default(),
            overrides: Overrides::loading(),
            epoch: Epoch::default(),
            copy: OverrideCopy::new(started_at, self.max_overrides),
            refunds: PendingRefunds::new(),
        });
        runtime.spawn(Shared::follow_overrides(Arc::downgrade(&shared)));
        Ok(RedisStore { shared, runtime })
    }

    /// Returns the servers of the URL, with the certificates that they are verified with.
    fn target(&self) -> Result<RedisTarget, ValidationError> {
        let mut target = RedisTarget::parse(&self.url).map_err(|error| error.at("url"))?;
        if target.is_tls() {
            #[cfg(feature = "redis-tls")]
            let (roots, path) = (self.roots.as_deref(), "root_certificates");
            // The URL requires the feature.
            #[cfg(not(feature = "redis-tls"))]
            let (roots, path) = (None, "url");
            target.secure(&Tls::new(roots).map_err(|error| error.at(path))?);
        }
        Ok(target)
    }
}

/// Without the URL, which may contain a password.
impl std::fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("prefix", &self.prefix)
            .field("deadline", &self.deadline)
            .field("use_client_clock", &self.use_client_clock)
            .field("coalescing", &self.coalescing)
            .finish_non_exhaustive()
    }
}
