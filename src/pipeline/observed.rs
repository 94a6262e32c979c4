//! What those who watch are told of requests that go on, and what they ask.

use super::{Evaluation, RequestPipeline};
use crate::clock::Timestamp;
use crate::head::RequestHead;
use crate::headers::Label;
use crate::observe::{Allowed, Exceeded, Statistics, Tally, Watch};
use crate::policy::{Caller, Exemption};
use crate::store::StoreAdmin;

impl RequestPipeline {
    /// Not counted, because it need not be.
    pub(super) fn exempt(&self, why: Exemption, head: &RequestHead<'_>) -> Evaluation {
        self.watch.exempt(why.name(), why.is_audited(), head);
        Evaluation::Allowed(None)
    }

    /// Admits a request without counting it, because of maintenance.
    pub(super) fn exempt_by_maintenance(
        &self,
        head: &RequestHead<'_>,
        now: Timestamp,
    ) -> Evaluation {
        let why = Exemption::Maintenance.name();
        self.watch.exempt_by_maintenance(why, head, now);
        Evaluation::Allowed(None)
    }

    /// Not counted, because nothing is for it, or nothing can.
    pub(super) fn uncounted(&self) -> Evaluation {
        self.watch.uncounted();
        Evaluation::Allowed(None)
    }

    /// Counted, and goes on; the quota called `label` speaks for it. `counts` says of a counter
    /// whether it was asked. `caller` is who asks: put together only where somebody wants to know.
    #[inline]
    pub(super) fn tell_allowed<'a>(
        &self,
        allowed: &Allowed<'_>,
        label: &Label,
        caller: impl Fn() -> Caller<'a>,
        counts: impl FnOnce(u64) -> bool,
        head: &RequestHead<'_>,
    ) {
        let now = allowed.now;
        if self.watch.allowed(allowed) {
            self.watch.took(self.clock.now().duration_since(now), false);
        }
        if self.watch.waits_for_somebody() {
            self.watch.came_back(&caller().known_by(), counts, now);
        }
        if Watch::hears_of_allowed(allowed.warns) {
            // Copies, which nobody makes who is not heard: what is lent has to be in memory.
            let (allowed, caller) = (*allowed, caller());
            self.tell_in_words(&allowed, label, &caller, head);
        }
    }

    #[cold]
    fn tell_in_words(
        &self,
        allowed: &Allowed<'_>,
        label: &Label,
        caller: &Caller<'_>,
        head: &RequestHead<'_>,
    ) {
        let exceeded = Exceeded {
            head: *head,
            endpoint: path_of(allowed.endpoint, head),
            policy: label.as_str(),
            limit: allowed.usage.limit(),
            used: allowed.usage.used(),
            window: label.window().duration().as_secs(),
            retry_after: None,
            request_id: "",
        };
        self.watch
            .tell_allowed(allowed, &caller.known_by(), &exceeded);
    }

    /// Looks at everything, once a second.
    #[cold]
    pub(crate) fn look(&self, now: Timestamp) {
        self.watch.look(now);
        if cfg!(feature = "metrics") {
            let in_memory = self.store.admin().and_then(StoreAdmin::memory_stats);
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
        let offset = self.clock.wall_offset();
        self.watch.statistics(now).offset_by(offset)
    }
}

/// What an endpoint is called in events: the path of its route, so that lines can be put
/// together and ids do not show; or the path itself, where no route is for it.
pub(super) fn path_of<'a>(endpoint: &'a Tally, head: &RequestHead<'a>) -> &'a str {
    let name = &**endpoint.name();
    let route = name.split_once(' ').map_or(name, |(_, path)| path);
    if route.starts_with('/') {
        route
    } else {
        head.path()
    }
}
