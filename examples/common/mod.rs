//! Shared by the examples: settings from environment variables, the store, a port, shutdown.

#![allow(dead_code, reason = "each example uses a part of it")]

use std::env;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use tollgate::{
    Batch, Decision, Error, Limiter, MemoryStore, OverrideStore, Quota, Store, StoreFuture,
    Subject, Timestamp, Usages, ValidationErrors,
};

/// Returns the value of an environment variable, or its default. Exits with code 2 if `parse`
/// returns `None`.
pub(crate) fn setting<T>(
    name: &str,
    default: &str,
    allowed: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> T {
    let value = env::var_os(name).unwrap_or_else(|| default.into());
    let setting = value.to_str().and_then(parse);
    setting.unwrap_or_else(|| refuse(name, &value.to_string_lossy(), allowed))
}

/// Returns a whole number from the environment, or its default.
pub(crate) fn number(name: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
    let allowed = format!("a whole number from {} to {}", range.start(), range.end());
    setting(name, &default.to_string(), &allowed, |text| {
        text.parse().ok().filter(|number| range.contains(number))
    })
}

/// Exits with code 2 because of a setting. Does not print secrets, because logs keep the message.
pub(crate) fn refuse(name: &str, value: &str, allowed: &str) -> ! {
    let secrets = ["_SECRET", "_TOKEN", "_TOKENS", "_KEY", "_WEBHOOK_URL"];
    let is_secret = secrets.iter().any(|end| name.ends_with(end));
    let value = if is_secret { "…" } else { value };
    eprintln!("{name}={value:?} cannot be used. Allowed: {allowed}.");
    process::exit(2)
}

/// Binds the port in `PORT` and prints the address. Returns the listener and the signal to stop.
///
/// Signals are handled before the address is printed, so that a program that reads the address can
/// stop the server at once.
pub(crate) async fn listen() -> (TcpListener, StopSignal) {
    const ALLOWED: &str = "a number from 0 to 65535, where 0 is any free port";
    let port: u16 = setting("PORT", "3000", ALLOWED, |text| text.parse().ok());
    let stop = StopSignal::handle();
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    match listener.and_then(|listener| Ok((listener.local_addr()?, listener))) {
        Ok((address, listener)) => {
            print(&format!("listening on http://{address}\n"));
            (listener, stop)
        }
        Err(error) => {
            let allowed = format!("{ALLOWED}, that is not in use ({error})");
            refuse("PORT", &port.to_string(), &allowed)
        }
    }
}

/// Writes to standard output. Ignores errors, for example if the reader has closed the pipe.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Returns the Redis store of `REDIS_URL`, or a memory store if it is not set. Processes with the
/// same prefix share counters.
pub(crate) async fn store(prefix: &str, deadline: Duration) -> Arc<dyn Store> {
    store_or(MemoryStore::new(), prefix, deadline).await
}

/// Returns the Redis store of `REDIS_URL`, or this memory store if it is not set.
pub(crate) async fn store_or(
    memory: MemoryStore,
    prefix: &str,
    deadline: Duration,
) -> Arc<dyn Store> {
    match env::var_os("REDIS_URL") {
        Some(url) => redis_store(&url.to_string_lossy(), prefix, deadline).await,
        None => Arc::new(memory),
    }
}

/// A Redis that is down is no reason to exit: the program starts without it. A wrong URL, password or
/// TLS setting is.
#[cfg(feature = "redis")]
async fn redis_store(url: &str, prefix: &str, deadline: Duration) -> Arc<dyn Store> {
    let store = tollgate::RedisStore::builder(url)
        .prefix(prefix)
        .deadline(deadline)
        .connect_and_verify()
        .await;
    store.unwrap_or_else(|error| match error {
        Error::Invalid(error) => refuse("REDIS_URL", without_password(url), error.expected()),
        error => {
            eprintln!(
                "REDIS_URL={:?} cannot be used: {error}.",
                without_password(url)
            );
            process::exit(2)
        }
    })
}

#[cfg(not(feature = "redis"))]
#[allow(clippy::unused_async, reason = "with the feature, it waits")]
async fn redis_store(url: &str, _: &str, _: Duration) -> Arc<dyn Store> {
    let allowed = "nothing, because this program was built without the feature `redis`";
    refuse("REDIS_URL", without_password(url), allowed)
}

fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, server)| server)
}

/// A limit that counts locally while the store is unavailable.
///
/// A `RateLimitLayer` does this by itself. A `Limiter` returns the error of the store, and the
/// program decides.
#[derive(Clone)]
pub(crate) struct LimiterWithFallback {
    pub(crate) shared: Limiter,
    local: Limiter,
}

impl LimiterWithFallback {
    pub(crate) fn new(
        rule: &str,
        quota: Quota,
        store: Arc<dyn Store>,
    ) -> Result<Self, ValidationErrors> {
        let limiter = || Limiter::builder().name(rule).quota(quota);
        let local = LocalStore {
            counters: MemoryStore::new(),
            shared: Arc::clone(&store),
        };
        Ok(Self {
            shared: limiter().store(store).build()?,
            local: limiter().store(local).build()?,
        })
    }

    pub(crate) async fn check<'a>(
        &self,
        subject: impl Into<Subject<'a>>,
    ) -> Result<Decision, Error> {
        let subject = subject.into();
        match self.shared.check(subject).await {
            Err(Error::Store(error)) => {
                tracing::error!(%error, "store unavailable, counting locally");
                self.local.check(subject).await
            }
            result => result,
        }
    }
}

/// Counts in the memory of this process, with the overrides of the shared store.
#[derive(Debug)]
struct LocalStore {
    counters: MemoryStore,
    shared: Arc<dyn Store>,
}

impl Store for LocalStore {
    fn decide(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.counters.decide(batch, now)
    }

    fn peek(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.counters.peek(batch, now)
    }

    fn record(&self, batch: &Batch<'_>, now: Timestamp) -> StoreFuture<Usages> {
        self.counters.record(batch, now)
    }

    fn refund(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) -> StoreFuture<()> {
        self.counters.refund(batch, charged_at, now)
    }

    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.counters)
    }

    /// The process has a copy of the overrides, also while the shared store is unavailable. A copy that
    /// has not been loaded is not used, because checks would wait for the shared store.
    fn overrides(&self) -> Option<&dyn OverrideStore> {
        let overrides = self.shared.overrides()?;
        (!overrides.table().is_loading()).then_some(overrides)
    }
}

/// SIGTERM or Ctrl-C.
#[derive(Clone)]
pub(crate) struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    /// Time for the requests in progress.
    const GRACE_PERIOD: Duration = Duration::from_secs(3);

    /// Handles the signals from now on.
    fn handle() -> Self {
        let (sender, receiver) = watch::channel(false);
        let signal = signal();
        tokio::spawn(async move {
            signal.await;
            sender.send_replace(true);
        });
        Self(receiver)
    }

    /// Completes on the signal.
    pub(crate) fn received(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut received = self.0.clone();
        async move {
            let _ = received.wait_for(|received| *received).await;
        }
    }

    /// Runs a server until it has ended, at most three seconds after the signal. Then calls
    /// `shutdown`, which refunds what the store has charged in advance.
    pub(crate) async fn run<E>(
        self,
        server: impl Future<Output = Result<(), E>>,
        shutdown: impl FnOnce(Duration) -> StoreFuture<(), Error>,
    ) -> Result<(), E> {
        let grace_period = async {
            self.received().await;
            sleep(Self::GRACE_PERIOD).await;
        };
        tokio::select! {
            ended = server => ended?,
            () = grace_period => {}
        }
        if let Err(error) = shutdown(Duration::from_secs(1)).await {
            eprintln!("not everything was refunded: {error}");
        }
        Ok(())
    }
}

#[cfg(unix)]
fn signal() -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{SignalKind, signal};

    let handle = |kind| signal(kind).expect("signal handlers can be installed");
    let mut terminate = handle(SignalKind::terminate());
    let mut interrupt = handle(SignalKind::interrupt());
    async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
fn signal() -> impl Future<Output = ()> + Send + 'static {
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}
