//! The desk of one server: decisions that wait together travel in one call.
//!
//! A script that decides about many requests costs Redis less than half of what it costs to be
//! called for each. So at most a few calls are under way at once, and whatever comes meanwhile
//! takes the next one together. On a line that is idle nobody waits for anybody.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use redis::{RedisError, Value};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Sleep, sleep};

use super::call;
use super::call_codec::{self, ScriptRef};
use super::lanes::{Call, Lanes, Manner, Overdue, Pace, Reply, Ticket};
use super::link::{Line, Link, State};
use super::request::Request;
use super::source::Source;
use super::trouble::Trouble;
use crate::clock::{Clock as _, SystemClock, Timestamp};

/// Where requests are handed in.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    inbox: mpsc::Sender<Ticket>,
    link: Link,
}

/// What all desks of a store have in common.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) pace: Pace,
    /// How long a connection may be silent while it owes an answer.
    pub(super) patience: Duration,
    pub(super) deadline: Duration,
    pub(super) runtime: Handle,
    pub(super) clock: SystemClock,
}

impl Setup {
    /// Opens a desk. It closes when the last of its kind is dropped and everybody was answered.
    pub(super) fn desk(&self, source: Source) -> Desk {
        let link = Link::start(source, self.patience, &self.runtime);
        let (inbox, arrivals) = mpsc::channel(Lanes::MOST);
        let clerk = Clerk {
            link: link.clone(),
            arrivals,
            is_open: true,
            lanes: Lanes::new(self.pace),
            under_way: FuturesUnordered::new(),
            waits_for_line: false,
            line: None,
            turn: Turn::default(),
            is_overdue: false,
            deadline: self.deadline,
            clock: self.clock.clone(),
        };
        self.runtime.spawn(clerk.serve());
        Desk { inbox, link }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Desk {
    /// Hands in a request. It is on its way when this returns, whatever becomes of the answer.
    pub(super) fn hand_in(
        &self,
        request: Request,
        (lane, manner): (u16, Manner),
        due: Timestamp,
    ) -> oneshot::Receiver<Reply> {
        let (reply, answer) = oneshot::channel();
        let ticket = Ticket {
            request,
            lane,
            manner,
            due,
            reply,
        };
        if let Err(mpsc::error::TrySendError::Full(ticket)) = self.inbox.try_send(ticket) {
            let _ = ticket.reply.send(Err(Trouble::crowded(self.link.place())));
        }
        answer
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }
}

/// What may happen while the clerk waits.
enum Event {
    Answered(Call, ScriptRef, Result<Value, RedisError>, Line),
    /// There is a line now, or there is none.
    LineSettled,
    /// The time is up for somebody.
    Rang,
}

/// Whether the next call may be made.
///
/// Two calls that are written together are read together by the server, which answers none of them
/// before it has decided both. Then both answers come together, and so would the next two calls:
/// from then on the server has nothing to do while we have, and we while it has. So whoever has made
/// a call lets the connection have a turn, which writes it, before he makes another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Ours,
    /// A call was made.
    Over,
    /// The connection has its turn.
    Theirs,
}

type UnderWay = Pin<Box<dyn Future<Output = Event> + Send>>;

/// Who serves at the desk, in a task of his own.
struct Clerk {
    link: Link,
    arrivals: mpsc::Receiver<Ticket>,
    /// Whether somebody may still come.
    is_open: bool,
    lanes: Lanes,
    under_way: FuturesUnordered<UnderWay>,
    /// Whether one of those under way is not a call, but waits for the line.
    waits_for_line: bool,
    /// That of the last call.
    line: Option<Line>,
    turn: Turn,
    /// Whether somebody has waited for too long for a call that is under way.
    is_overdue: bool,
    deadline: Duration,
    clock: SystemClock,
}

impl Clerk {
    /// How many arrivals are taken in one go.
    const PAGE: usize = 512;
    /// How often a line is looked at that owes an answer.
    const LOOK_EVERY: Duration = Duration::from_millis(50);

    async fn serve(mut self) {
        let mut arrived = Vec::new();
        let (mut timer, mut rings_at) = (pin!(sleep(Duration::ZERO)), None);
        while self.is_open || !self.lanes.is_empty() {
            self.set(timer.as_mut(), &mut rings_at);
            let event = poll_fn(|cx| {
                let rings = rings_at.map(|_| timer.as_mut());
                self.poll_event(cx, &mut arrived, rings)
            });
            match event.await {
                Some(Event::Answered(call, known, answer, line)) => {
                    self.pass_on(call, known, answer, &line);
                }
                Some(Event::LineSettled) => self.waits_for_line = false,
                Some(Event::Rang) => rings_at = None,
                None => {}
            }
            for ticket in arrived.drain(..) {
                if let Err(ticket) = self.lanes.enter(ticket) {
                    let crowded = Trouble::crowded(self.link.place());
                    let _ = ticket.reply.send(Err(crowded));
                }
            }
            self.send_home();
            self.send_off();
        }
    }

    /// Sets the timer, unless it rings early enough as it is.
    fn set(&self, timer: Pin<&mut Sleep>, rings_at: &mut Option<Timestamp>) {
        let now = self.clock.now();
        let look = self
            .is_overdue
            .then(|| now.saturating_add(Self::LOOK_EVERY));
        let Some(next) = self.lanes.next_due().into_iter().chain(look).min() else {
            return;
        };
        if rings_at.is_none_or(|at| next < at) {
            let mut timer = timer;
            timer.set(sleep(next.duration_since(now)));
            *rings_at = Some(next);
        }
    }

    /// Whether something has happened; somebody's arrival is none of the events.
    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        arrived: &mut Vec<Ticket>,
        timer: Option<Pin<&mut Sleep>>,
    ) -> Poll<Option<Event>> {
        let mut goes_on = self.turn == Turn::Theirs;
        if goes_on {
            self.turn = Turn::Ours;
        }
        if self.is_open
            && let Poll::Ready(count) = self.arrivals.poll_recv_many(cx, arrived, Self::PAGE)
        {
            self.is_open = count > 0;
            goes_on = true;
        }
        if let Poll::Ready(Some(event)) = self.under_way.poll_next_unpin(cx) {
            return Poll::Ready(Some(event));
        }
        if timer.is_some_and(|timer| timer.poll(cx).is_ready()) {
            return Poll::Ready(Some(Event::Rang));
        }
        if goes_on {
            return Poll::Ready(None);
        }
        if self.turn == Turn::Over {
            self.turn = Turn::Theirs;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Makes as many calls as there can be.
    fn send_off(&mut self) {
        while self.lanes.has_next() && self.turn == Turn::Ours {
            match self.link.state() {
                State::Open(line) => {
                    let Some(call) = self.lanes.next() else {
                        return;
                    };
                    self.send(call, ScriptRef::Hash, line);
                    if self.lanes.travel_together() {
                        self.turn = Turn::Over;
                    }
                }
                State::Opening => {
                    if !self.waits_for_line {
                        self.waits_for_line = true;
                        let settled = self.link.clone().settled();
                        let event = async move {
                            settled.await;
                            Event::LineSettled
                        };
                        self.under_way.push(Box::pin(event));
                    }
                    return;
                }
                State::Closed(trouble) => self.lanes.turn_away(&trouble),
            }
        }
    }

    fn send(&mut self, call: Call, known: ScriptRef, line: Line) {
        let requests = call.members.iter().map(|member| &member.request);
        let command = call_codec::command(requests, known);
        line.health.asked();
        self.line = Some(line.clone());
        self.under_way.push(Box::pin(async move {
            let mut line = line;
            let answer = call::ask(&mut line, &command, call.manner).await;
            Event::Answered(call, known, answer, line)
        }));
    }

    /// Tells everybody in a call what has come of it.
    fn pass_on(
        &mut self,
        mut call: Call,
        known: ScriptRef,
        answer: Result<Value, RedisError>,
        line: &Line,
    ) {
        let answers = match answer {
            // Nothing has run: a server that has restarted, or whose scripts were flushed. Whoever
            // sends the text makes it known again. It is not sent for those who have given up.
            Err(error) if known == ScriptRef::Hash && call::is_unknown_script(&error) => {
                line.health.answered();
                call.members
                    .retain(|member| self.lanes.is_waited_for(member));
                if call.members.is_empty() {
                    self.lanes.end(call.lane);
                } else {
                    self.send(call, ScriptRef::Text, line.clone());
                }
                return;
            }
            Ok(answer) => {
                line.health.answered();
                self.is_overdue = false;
                let requests = call.members.iter().map(|member| &member.request);
                call_codec::unpack(requests, answer, self.link.place())
            }
            Err(error) => {
                let trouble = Trouble::calling(self.link.place(), error);
                if trouble.is_answer() {
                    line.health.answered();
                }
                vec![Err(trouble); call.members.len()]
            }
        };
        self.lanes.end(call.lane);
        for (member, answer) in call.members.iter().zip(answers) {
            if let Err(trouble) = &answer
                && trouble.calls_for_another_connection()
            {
                line.health.condemn(trouble);
            }
            self.lanes.answer(member, answer);
        }
    }

    /// Tells those who have waited for too long that it has been too long.
    fn send_home(&mut self) {
        let (now, place) = (self.clock.now(), self.link.place());
        while let Some(Overdue { reply, sent }) = self.lanes.overdue(now) {
            let _ = reply.send(Err(if sent {
                self.is_overdue = true;
                Trouble::late(place, self.deadline)
            } else if self.waits_for_line {
                Trouble::not_yet(place, self.deadline)
            } else {
                Trouble::unsent(place, self.deadline)
            }));
        }
        if self.lanes.calls_in_flight() == 0 {
            self.is_overdue = false;
        }
        if let Some(line) = self.line.as_ref().filter(|_| self.is_overdue) {
            line.health.look(&Trouble::late(place, self.deadline));
        }
    }
}
