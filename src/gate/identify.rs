//! Who asks, and what becomes of those who lie.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use super::wrongs::Tab;
use super::{Gate, OnInvalid, Rules};
use crate::calm::calmly;
use crate::clock::Timestamp;
use crate::head::Head;
use crate::headers::Standing;
use crate::identity::{Asking, Budget, ClientAddress, Identified, Identify};
use crate::observe::Denied;
use crate::policy::Caller;
use crate::response::Denial;
use crate::who::Identity;

impl Gate {
    /// Who asks: somebody verified, or nobody that is known. Or a refusal.
    #[inline]
    pub(super) fn identify(
        &self,
        rules: &Rules,
        endpoint: usize,
        head: &Head<'_>,
        address: Option<ClientAddress>,
        now: Timestamp,
    ) -> Result<Option<Arc<Identity>>, Box<Response<Bytes>>> {
        if rules.chain().is_empty() {
            return Ok(None);
        }
        let tab = rules
            .wrongs
            .tab(address.map(|address| address.group()), now);
        let ip = address.map(|address| address.ip());
        let asking = Asking::new(*head, ip, self.wall(now), &tab);
        // Whoever can make a source panic is not to get its work for nothing.
        let identified = calmly(|| rules.chain().identify(&asking)).unwrap_or(Identified::Invalid);
        if matches!(identified, Identified::Invalid | Identified::Throttled) {
            self.watch.invalid_credentials();
        }
        match identified {
            Identified::Known(identity) => Ok(Some(identity)),
            Identified::Absent => Ok(None),
            // Also those count that were too wrong to be looked at closely.
            Identified::Invalid if tab.is_charged() || tab.charge() => match rules.on_invalid() {
                OnInvalid::Anonymous => Ok(None),
                OnInvalid::Reject => {
                    let denial = Denial::unauthorized(*head, self.wall(now));
                    Err(Box::new(self.render(&denial, rules.style())))
                }
            },
            Identified::Invalid | Identified::Throttled => {
                let ip = address.map(|address| address.group());
                let caller = Caller { identity: None, ip };
                let denied = Denied {
                    endpoint: &rules.endpoints[endpoint],
                    policy: &rules.wrongs_tally,
                    caller: caller.known_by(),
                    address: ip,
                    counter: rules.wrongs.counter(),
                    until: None,
                    now,
                };
                Err(Box::new(self.too_many_wrongs(rules, head, &tab, &denied)))
            }
        }
    }

    #[cold]
    fn too_many_wrongs(
        &self,
        rules: &Rules,
        head: &Head<'_>,
        tab: &Tab<'_>,
        denied: &Denied<'_>,
    ) -> Response<Bytes> {
        let usage = tab.denied().unwrap_or_default();
        let usage = usage.offset_by(self.clock.wall_offset());
        let standing = Standing::new(rules.wrongs.label(), usage);
        let denial = Denial::limited(*head, standing, self.wall(denied.now));
        self.turn_away(&denial, denied, rules.style())
    }
}
