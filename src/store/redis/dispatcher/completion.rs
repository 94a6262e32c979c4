//! Completion of calls: replies, missing scripts and redirects.

use super::{
    Dispatcher, EndedCall, Future, QueuedCommand, QueuedRequest, RedisStoreError, Response,
    ScriptRef, Timestamp, call, call_codec,
};

impl<F: Future<Output = EndedCall> + Send> Dispatcher<F> {
    /// Passes the replies of a call to its requests.
    pub(super) fn complete_call(&mut self, ended: EndedCall, now: Timestamp) {
        let EndedCall {
            mut call,
            known,
            result,
            connection,
        } = ended;
        let place = self.connection.place();
        let is_reply = result
            .as_ref()
            .err()
            .is_none_or(|error| !error.is_io_error());
        if is_reply {
            connection.liveness.replied(now);
            self.is_overdue = false;
        }
        let is_in_time = call.members.iter().any(|key| self.queues.is_pending(*key));
        let command = self.queues.command(call.members[0]);
        let is_decision = matches!(command, QueuedCommand::Decide(_));
        let is_probe = matches!(command, QueuedCommand::Probe);
        let replies: Vec<Result<Response, RedisStoreError>> = match result {
            // Nothing has run: the server restarted, or its scripts were flushed. EVAL makes the
            // script known again. It is not sent for requests that have expired.
            Err(error) if known == ScriptRef::Hash && call::is_unknown_script(&error) => {
                let queues = &mut self.queues;
                call.members.retain(|key| {
                    let is_pending = queues.is_pending(*key);
                    if !is_pending {
                        queues.complete(*key);
                    }
                    is_pending
                });
                if call.members.is_empty() {
                    self.queues.end(&call);
                } else {
                    self.send(call, ScriptRef::Text, connection, now);
                }
                return;
            }
            Ok(value) if is_decision => {
                let replies = call_codec::unpack(self.queues.decisions(&call), value, place);
                let replies = replies
                    .into_iter()
                    .map(|reply| reply.map(Response::Decision));
                replies.collect()
            }
            Ok(value) => vec![Ok(Response::Value(value))],
            Err(error) => {
                let error = RedisStoreError::calling(place, error);
                call.members.iter().map(|_| Err(error.clone())).collect()
            }
        };
        self.queues.end(&call);
        let error = replies
            .iter()
            .find_map(|reply| reply.as_ref().err())
            .cloned();
        if let Some(error) = error
            .as_ref()
            .filter(|error| error.needs_other_connection())
        {
            connection.liveness.give_up(error);
        }
        // Before the replies, so that a caller with a reply finds the health that follows from it.
        // A late reply to a probe changes nothing: the next probe comes after its interval.
        if is_reply && is_probe && is_in_time {
            self.end_probe(error, now);
        } else if is_reply && !is_probe {
            self.record_reply(is_in_time && is_decision, error, now);
        }
        for (key, reply) in call.members.iter().zip(replies) {
            if let Some(request) = self.queues.complete(*key) {
                if !is_reply && let Err(error) = &reply {
                    self.record_failure(error, now);
                }
                self.finish(request, reply);
            }
        }
    }

    /// Completes a request, unless the server redirects it to another one.
    pub(super) fn finish(
        &self,
        mut request: QueuedRequest,
        reply: Result<Response, RedisStoreError>,
    ) {
        let Some(route) = &self.route else {
            return request.complete(reply.map_err(RedisStoreError::without_cluster));
        };
        if let Err(error) = &reply {
            if let Some(redirect) = error.redirect() {
                return route.follow(request, redirect);
            }
            route.report(error);
        }
        request.complete(reply);
    }
}
