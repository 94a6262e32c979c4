//! What those who watch are told of requests that go on, and what they ask.

use std::ops::Deref;

use super::case::Case;
use super::{Asked, Gate, Rules};
use crate::clock::Timestamp;
use crate::decision::Decision;
use crate::head::Head;
use crate::observe::{Allowed, Exceeded, Statistics, Tally, Watch};
use crate::policy::{Entry, Exemption};

impl Gate {
    /// Not counted, because it need not be.
    pub(super) fn exempt(&self, why: Exemption, head: &Head<'_>) -> Asked {
        self.watch.exempt(why.name(), why.is_audited(), head);
        Asked::Allowed(None)
    }

    /// Not counted, because nothing is for it, or nothing can.
    pub(super) fn uncounted(&self) -> Asked {
        self.watch.uncounted();
        Asked::Allowed(None)
    }

    /// Counted, and goes on; `binding` speaks for it.
    #[inline]
    pub(super) fn tell_allowed<R: Deref<Target = Rules>>(
        &self,
        case: &Case<R>,
        binding: &Entry,
        decision: &Decision,
        head: &Head<'_>,
        now: Timestamp,
    ) {
        let Ok(named) = case.named(binding) else {
            return self.watch.uncounted();
        };
        let usage = decision.usage();
        let allowed = Allowed {
            endpoint: case.endpoint(),
            policy: &named.tally,
            usage,
            warns: case.rules().policy.warns(usage),
            now,
        };
        if self.watch.allowed(&allowed) {
            self.watch.took(self.clock.now().duration_since(now), false);
        }
        if self.watch.waits_for_somebody() {
            let caller = case.caller().known_by();
            let counts = |counter| case.counts_on(counter);
            self.watch.came_back(&caller, counts, now);
        }
        if Watch::hears_of_allowed(allowed.warns) {
            let exceeded = Exceeded {
                head: *head,
                endpoint: path_of(allowed.endpoint, head),
                policy: named.label.as_str(),
                limit: usage.limit(),
                used: usage.used(),
                window: named.label.window().duration().as_secs(),
                retry_after: None,
                request_id: "",
            };
            let caller = case.caller().known_by();
            self.watch.tell_allowed(&allowed, &caller, &exceeded);
        }
    }

    /// Looks at everything, once a second.
    #[cold]
    pub(crate) fn look(&self, now: Timestamp) {
        self.watch.look(now);
        if cfg!(feature = "metrics") {
            let in_memory = self.store.in_memory();
            self.watch.look_around(
                self.store.health().is_healthy(),
                in_memory.map(|figures| figures.counters()),
                in_memory.map(|figures| figures.evicted()),
                self.policy_version(),
            );
        }
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let now = self.clock.now();
        self.look(now);
        self.watch.statistics(now)
    }
}

/// What an endpoint is called in events: the path of its route, so that lines can be put
/// together and ids do not show; or the path itself, where no route is for it.
pub(super) fn path_of<'a>(endpoint: &'a Tally, head: &Head<'a>) -> &'a str {
    let name = &**endpoint.name();
    let route = name.split_once(' ').map_or(name, |(_, path)| path);
    if route.starts_with('/') {
        route
    } else {
        head.path()
    }
}
