//! Batches over several subjects in a cluster, whose keys are in different places.
//!
//! No script can decide about all of them at once. So they are charged one after the other, always
//! in the same order, and given back if a later one has no room. In between, others see charges that
//! are about to be given back, and may be denied for them; nobody is ever let in who should not be.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join, join_all};

use super::cluster::Cluster;
use super::error::RedisStoreError;
use super::queue::Reply;
use super::request::Request;
use super::script::Verb;
use super::slots::slot_of;
use crate::clock::Timestamp;

/// How long something may take to be given back. Nobody waits for it.
const TO_GIVE_BACK: Duration = Duration::from_secs(5);

/// Asks about a request of any number of keys. If there is but one, it is on its way when this
/// returns.
pub(super) fn ask(
    cluster: &Arc<Cluster>,
    request: Request,
    due: Timestamp,
) -> impl Future<Output = Reply> + Send + use<> {
    let whole = if request.keys.len() == 1 {
        Ok(cluster.ask(request, due))
    } else {
        Err(Parts {
            cluster: Arc::clone(cluster),
            verb: request.verb(),
            of_keys: request.by_key(),
            due,
        })
    };
    async move {
        match whole {
            Ok(answer) => answer.await,
            Err(parts) => parts.ask().await,
        }
    }
}

struct Parts {
    cluster: Arc<Cluster>,
    verb: Verb,
    /// One for each key, in the order of the request, which is that of the answer.
    of_keys: Vec<Request>,
    due: Timestamp,
}

impl Parts {
    async fn ask(self) -> Reply {
        let answers = match self.verb {
            Verb::Decide => self.charge().await?,
            // Each for itself: what one meets with is no reason to leave the others out.
            Verb::Peek | Verb::Record | Verb::Refund => {
                let parts = self.of_keys.iter();
                let asked = parts.map(|part| self.cluster.ask(part.clone(), self.due));
                let answers = join_all(asked).await;
                answers.into_iter().collect::<Result<Vec<_>, _>>()?
            }
        };
        Ok(Request::join_answers(&answers))
    }

    /// Charges one part after the other, all of them at the instant of the first if their counters
    /// have not seen a later one.
    async fn charge(&self) -> Result<Vec<Bytes>, RedisStoreError> {
        let mut answers = vec![Bytes::new(); self.of_keys.len()];
        let (order, mut at) = (self.order(), None);
        for (turn, place) in order.iter().copied().enumerate() {
            let mut request = self.of_keys[place].clone();
            if let Some(at) = at {
                request.set_clock(at);
            }
            let (earlier, later) = (&order[..turn], &order[turn + 1..]);
            match self.cluster.ask(request, self.due).await {
                Ok(answer) => {
                    at = at.or_else(|| Request::instant(&answer));
                    let is_denied = !Request::is_allowed(&answer);
                    answers[place] = answer;
                    if is_denied {
                        self.deny(place, (earlier, later), &mut answers).await;
                        break;
                    }
                }
                Err(trouble) => {
                    for place in earlier {
                        tokio::spawn(self.refund(*place, &answers[*place]));
                    }
                    return Err(trouble);
                }
            }
        }
        Ok(answers)
    }

    /// By slot, and by key: whoever wants the same counters wants them in the same order, so that
    /// of two who want the last of both, one gets them.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.of_keys.len()).collect();
        order.sort_by_cached_key(|place| {
            let key = self.of_keys[*place]
                .keys
                .first()
                .cloned()
                .unwrap_or_default();
            (slot_of(&key), key)
        });
        order
    }

    /// Gives back what was charged, and asks how all but the one that denied stand. It is denied
    /// whether they can say so or not.
    async fn deny(
        &self,
        denying: usize,
        (earlier, later): (&[usize], &[usize]),
        answers: &mut [Bytes],
    ) {
        let peek = |place: usize| {
            let request = self.of_keys[place].with_verb(Verb::Peek);
            let asked = self.cluster.ask(request, self.due);
            async move { (place, asked.await) }
        };
        let returned = earlier.iter().map(|place| {
            // It goes its way, and nobody has to wait for that. Both are in the same lane: the
            // second sees what the first has done.
            tokio::spawn(self.refund(*place, &answers[*place]));
            peek(*place)
        });
        let returned: Vec<_> = returned.collect();
        let looked_at = later.iter().map(|place| peek(*place));
        let (returned, looked_at) = join(join_all(returned), join_all(looked_at)).await;
        let at = Request::instant(&answers[denying]).unwrap_or(Timestamp::EPOCH);
        for (place, answer) in returned.into_iter().chain(looked_at) {
            match answer {
                Ok(answer) => answers[place] = answer,
                // What it said when it was charged will do.
                Err(_) if earlier.contains(&place) => {}
                Err(_) => answers[place] = self.of_keys[place].unanswered(at),
            }
        }
    }

    /// Gives a part back, at the instant that its answer says.
    fn refund(&self, place: usize, answer: &Bytes) -> impl Future<Output = Reply> + Send + use<> {
        let mut request = self.of_keys[place].with_verb(Verb::Refund);
        request.set_charged_at(Request::instant(answer).unwrap_or(Timestamp::EPOCH));
        let due = self.cluster.now().saturating_add(TO_GIVE_BACK);
        self.cluster.ask(request, due)
    }
}
