//! One call of the user's closure, with a deadline, and safe from its panics.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::streak::Streak;
use super::{Failure, Find, Finding};
use crate::clock::Sleep;
use crate::identity_types::Identity;

/// What a lookup came to: a tier or none, or a failure that has been reported.
pub(super) type Outcome = Result<Option<Arc<str>>, Failed>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Failed;

pub(super) struct Lookup {
    stage: Stage,
    deadline: Sleep,
    streak: Arc<Streak>,
}

enum Stage {
    /// The closure is called when somebody waits, not before.
    Asked(Arc<Find>, Identity),
    Finding(Finding),
}

impl Lookup {
    pub(super) const fn new(
        find: Arc<Find>,
        who: Identity,
        deadline: Sleep,
        streak: Arc<Streak>,
    ) -> Self {
        Self {
            stage: Stage::Asked(find, who),
            deadline,
            streak,
        }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<String>, Failure>> {
        if let Stage::Asked(find, who) = &self.stage {
            self.stage = Stage::Finding(find(who.clone()));
        }
        match &mut self.stage {
            Stage::Finding(finding) => finding.as_mut().poll(cx),
            Stage::Asked(..) => Poll::Pending,
        }
    }
}

impl Future for Lookup {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let lookup = self.get_mut();
        // A future that has panicked is not polled again, so nothing half done is seen.
        let advanced = catch_unwind(AssertUnwindSafe(|| lookup.advance(cx)));
        Poll::Ready(match advanced {
            Ok(Poll::Ready(Ok(tier))) => {
                lookup.streak.succeeded();
                Ok(tier.filter(|name| !name.is_empty()).map(Arc::from))
            }
            Ok(Poll::Ready(Err(error))) => {
                lookup.streak.failed(error);
                Err(Failed)
            }
            Err(_) => {
                lookup.streak.failed("it panicked");
                Err(Failed)
            }
            Ok(Poll::Pending) => {
                if lookup.deadline.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                lookup.streak.failed("it took longer than its deadline");
                Err(Failed)
            }
        })
    }
}
