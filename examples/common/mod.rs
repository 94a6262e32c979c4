//! Shared by the examples: settings from environment variables, the store, a port, shutdown.

#![allow(dead_code, reason = "each example uses a part of it")]

use std::env;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::sleep;
use tollgate::{Decision, Error, Limiter, MemoryStore, Quota, Store, Subject, ValidationError};

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
    let is_secret = name.ends_with("_SECRET") || name.ends_with("_TOKEN");
    let value = if is_secret { "…" } else { value };
    eprintln!("{name}={value:?} cannot be used. Allowed: {allowed}.");
    process::exit(2)
}

/// Binds the port in `PORT` and prints the address. Returns the listener and a future that
/// completes when the server should shut down.
///
/// Signals are handled before the address is printed, so that a program that reads the address can
/// stop the server at once.
pub(crate) async fn listen() -> (TcpListener, impl Future<Output = ()> + Send + 'static) {
    const ALLOWED: &str = "a number from 0 to 65535, where 0 is any free port";
    let port: u16 = setting("PORT", "3000", ALLOWED, |text| text.parse().ok());
    let stopped = stopped();
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    match listener.and_then(|listener| Ok((listener.local_addr()?, listener))) {
        Ok((address, listener)) => {
            print(&format!("listening on http://{address}\n"));
            (listener, stopped)
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
    match env::var_os("REDIS_URL") {
        Some(url) => redis_store(&url.to_string_lossy(), prefix, deadline).await,
        None => Arc::new(MemoryStore::new()),
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
    ) -> Result<Self, ValidationError> {
        let limiter = || Limiter::builder().name(rule).quota(quota);
        Ok(Self {
            shared: limiter().store(store).build()?,
            local: limiter().build()?,
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
                // The process has a copy of the overrides, also while the store is unavailable.
                for set in self.shared.overrides() {
                    self.local.set_override(set).await?;
                }
                self.local.check(subject).await
            }
            result => result,
        }
    }
}

/// Completes on SIGTERM or Ctrl-C. Requests in progress then have three seconds.
#[cfg(unix)]
fn stopped() -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{SignalKind, signal};

    let handle = |kind| signal(kind).expect("signal handlers can be installed");
    let mut terminate = handle(SignalKind::terminate());
    let mut interrupt = handle(SignalKind::interrupt());
    async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        exit_after_grace_period();
    }
}

#[cfg(not(unix))]
fn stopped() -> impl Future<Output = ()> + Send + 'static {
    async {
        let _ = tokio::signal::ctrl_c().await;
        exit_after_grace_period();
    }
}

fn exit_after_grace_period() {
    tokio::spawn(async {
        sleep(Duration::from_secs(3)).await;
        process::exit(0)
    });
}
