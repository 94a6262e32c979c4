//! Deadlines, circuit breaker and recovery of a server.
//!
//! The breaker opens when requests get no reply in time, or when there is no connection. It closes
//! when a connection was opened, or when the server replies to a `PING` within the deadline. The
//! dispatcher sends that probe after a late reply, and otherwise at intervals. Recovery therefore
//! needs no requests.

use super::{
    Dispatcher, Duration, ErrorCause, QueuedCommand, QueuedRequest, RedisStoreError, State,
    Timestamp,
};
use crate::error::StoreErrorKind;
use crate::store::redis::slot_queues::Expired;

impl<F> Dispatcher<F> {
    /// Fails the requests whose time is over.
    pub(super) fn expire_overdue(&mut self, now: Timestamp) {
        while let Some(expired) = self.queues.expire(now) {
            let Expired {
                reply,
                within,
                is_probe,
                was_sent,
            } = expired;
            let (place, state) = (self.connection.place(), self.connection.state());
            let error = if was_sent {
                self.is_overdue = true;
                RedisStoreError::new(place, ErrorCause::Late(within))
            } else if matches!(state, State::Opening) {
                RedisStoreError::new(place, ErrorCause::NotConnected(within))
            } else {
                RedisStoreError::new(place, ErrorCause::Unsent(within))
            };
            if let Some(route) = &self.route {
                route.report(&error);
            }
            reply.send(Err(error.clone()));
            if is_probe {
                self.breaker.end_probe();
            }
            self.record_failure(&error, now);
        }
        if self.queues.calls_in_flight() == 0 {
            self.is_overdue = false;
        }
        if let State::Open(connection) = self.connection.state()
            && self.is_overdue
        {
            let error =
                RedisStoreError::new(self.connection.place(), ErrorCause::Late(self.deadline));
            connection.liveness.check(now, &error);
        }
    }

    /// Adapts queue and breaker to a new state of the connection.
    pub(super) fn follow_connection(&mut self, now: Timestamp) {
        let is_connected = match self.connection.state() {
            // The server has replied to the handshake.
            State::Open(_) => {
                self.is_proven &= self.breaker.failing().is_none();
                self.breaker.record_success();
                true
            }
            State::Opening => false,
            State::Closed(error) => {
                self.breaker.end_probe();
                self.breaker.trip(error.clone(), now, (self.random)());
                self.queues
                    .reject_unsent(&error.for_unsent(), Timestamp::MAX);
                if let Some(route) = &self.route {
                    route.report(error);
                }
                false
            }
        };
        self.status
            .send_modify(|status| status.is_connected = is_connected);
        self.publish();
    }

    /// Counts a request without a reply. If that opens the breaker, unsent requests fail as well.
    pub(super) fn record_failure(&mut self, error: &RedisStoreError, now: Timestamp) {
        if self
            .breaker
            .record_failure(error.clone(), now, (self.random)())
        {
            let urgent = now.saturating_add(self.deadline + Duration::from_micros(1));
            self.queues.reject_unsent(&error.for_unsent(), urgent);
            if std::mem::take(&mut self.is_proven) {
                self.breaker.probe_soon(now);
            }
        }
        self.publish();
    }

    /// Evaluates a reply. A reply in time to a decision closes the breaker. Any other reply shows that the
    /// server is reachable. An error reply makes the server degraded, and does not open the breaker.
    pub(super) fn record_reply(
        &mut self,
        is_decision_in_time: bool,
        error: Option<RedisStoreError>,
        now: Timestamp,
    ) {
        if !is_decision_in_time {
            self.breaker.probe_soon(now);
            return;
        }
        self.is_proven = true;
        match error.filter(|error| error.redirect().is_none()) {
            Some(error) => self.breaker.record_error_reply(error, now),
            None if self.breaker.failing().is_none() => return,
            None => self.breaker.record_success(),
        }
        self.publish();
    }

    /// Evaluates the reply to a probe that came in time. A permanent error, such as a missing
    /// permission for `PING`, means that the server responds.
    pub(super) fn end_probe(&mut self, error: Option<RedisStoreError>, now: Timestamp) {
        match error.filter(|error| error.kind() != StoreErrorKind::Permanent) {
            Some(error) => self.breaker.record_error_reply(error, now),
            None => self.breaker.record_probe_success(),
        }
        self.publish();
    }

    /// Queues a probe if one is due.
    pub(super) fn start_probe(&mut self, now: Timestamp) {
        if !matches!(self.connection.state(), State::Open(_))
            || self.breaker.probe_at().is_none_or(|at| at > now)
            || !self.breaker.start_probe(now, (self.random)())
        {
            return;
        }
        let due = now.saturating_add(self.deadline);
        let place = self.connection.place();
        let (probe, _) = QueuedRequest::new(QueuedCommand::Probe, 0, (due, self.deadline), place);
        self.queues.push(probe);
    }

    fn publish(&self) {
        let failing = self.breaker.failing();
        let failing = failing.map(|(since, error)| (since, error.clone()));
        self.status.send_modify(|status| status.failing = failing);
    }
}
