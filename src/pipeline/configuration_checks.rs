//! Warnings about settings that do not fit the requests: [`ConfigurationChecks`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::configuration_warning::configuration_warning;
use crate::head::RequestHead;
use crate::identity::ClientIp;

/// Checks of one layer. Each warning is logged once.
#[derive(Debug)]
pub(super) struct ConfigurationChecks {
    /// When headers are looked at again, in microseconds; [`DONE`](Self::DONE) after the warning.
    next_headers_at: AtomicU64,
    has_warned_of_networks: AtomicBool,
}

impl ConfigurationChecks {
    /// One request in this time is looked at: five look-ups of a header cost as much as a decision.
    const INTERVAL: Duration = Duration::from_secs(1);
    const DONE: u64 = u64::MAX;

    pub(super) const fn new() -> Self {
        Self {
            next_headers_at: AtomicU64::new(0),
            has_warned_of_networks: AtomicBool::new(false),
        }
    }

    /// Looks at the headers of one request per second.
    #[inline]
    pub(super) fn check_headers(
        &self,
        client_ip: &ClientIp,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) {
        if now.as_micros() >= self.next_headers_at.load(Ordering::Relaxed) {
            self.warn_of_ignored_header(client_ip, head, now);
        }
    }

    #[cold]
    fn warn_of_ignored_header(&self, client_ip: &ClientIp, head: &RequestHead<'_>, now: Timestamp) {
        let next = now.saturating_add(Self::INTERVAL).as_micros();
        let Some(header) = client_ip.ignored_header(head) else {
            // `DONE` is the maximum, so that a concurrent warning stays done.
            self.next_headers_at.fetch_max(next, Ordering::Relaxed);
            return;
        };
        if self.next_headers_at.swap(Self::DONE, Ordering::Relaxed) == Self::DONE {
            return;
        }
        let message = format!(
            "a request has the header `{header}`, but no proxy is trusted, so the header is ignored: if a proxy \
             sends it, all its clients share the limits of one address; set `trusted_proxies` to the networks of \
             the proxy"
        );
        configuration_warning("forwarding-header-ignored", &message);
    }

    /// Looks at the trusted networks of a new configuration.
    pub(super) fn check_networks(&self, client_ip: &ClientIp) {
        let Some(network) = client_ip.trusted_part_of_internet() else {
            return;
        };
        if !self.has_warned_of_networks.swap(true, Ordering::Relaxed) {
            let message = format!(
                "`trusted_proxies` has {network}, half of the internet or more: each client in it can choose its \
                 client IP, and with it a new counter; name only the networks of your proxies"
            );
            configuration_warning("trusted-proxies-cover-internet", &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_without_the_header_does_not_undo_a_concurrent_warning() {
        let checks = ConfigurationChecks::new();
        let request = http::Request::new(());
        let (client_ip, head) = (ClientIp::default(), RequestHead::of(&request));
        let next = || checks.next_headers_at.load(Ordering::Relaxed);
        let now = Timestamp::from_secs(1_735_689_600);
        checks.check_headers(&client_ip, &head, now);
        assert_eq!(next(), now.as_micros() + 1_000_000);
        // Another request has warned after this one had read that a check is due.
        checks
            .next_headers_at
            .store(ConfigurationChecks::DONE, Ordering::Relaxed);
        checks.warn_of_ignored_header(&client_ip, &head, now);
        assert_eq!(next(), ConfigurationChecks::DONE);
    }
}
