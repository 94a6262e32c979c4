//! Time per decision, by algorithm, quotas, keys, order and threads.

use std::io;
use std::net::Ipv4Addr;

use tollgate::Algorithm::{self, TokenBucket};
use tollgate_bench::Order::{self, Uniform, Zipf};
use tollgate_bench::{Report, Row, Target, duel, pass};

use super::Size::{self, K1, K100, M1, M10};
use super::{GOVERNOR, allowed};
use crate::ours;
use crate::theirs::{AxumGcra, Governor, PingoraLimits, RateNet, ThreeGovernors};
use crate::work::{Allowance, Key, User};

use self::Kind::{Ip, Text};
use self::Quotas::{One, Three};

/// How many quotas a request has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotas {
    One,
    Three,
}

/// What keys are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Ip,
}

/// A row of times: algorithm, quotas, keys, how many of them, their order, threads.
pub(super) struct Timed(
    pub(super) Algorithm,
    pub(super) Quotas,
    pub(super) Kind,
    pub(super) Size,
    pub(super) Order,
    pub(super) usize,
);

impl Timed {
    pub(super) fn id(&self) -> String {
        let Self(algorithm, quotas, kind, size, order, threads) = self;
        let quotas = if *quotas == One { "one" } else { "three" };
        let kind = if *kind == Text { "string" } else { "ip" };
        format!(
            "{algorithm}/{quotas}/{kind}/{size}/{}/{threads}t",
            order.name()
        )
    }

    fn target(&self) -> Option<Target> {
        let (at_most, stretch) = match self {
            Self(_, One, Text, size, Uniform, 1) => {
                let at_most = match size {
                    K1 => 1.3,
                    K100 => 0.45,
                    M1 => 0.55,
                    M10 => 0.6,
                };
                (at_most, Some(0.35))
            }
            Self(_, Three, Text, K1, Uniform, 1) => (1.2, None),
            Self(_, Three, Text, K100 | M1, Uniform, 1) => (0.35, None),
            _ => return None,
        };
        Some(Target { at_most, stretch })
    }

    pub(super) fn measure(&self, id: &str, report: &mut Report) -> io::Result<()> {
        match (self.1, self.2) {
            (One, Text) => {
                let work = self.one::<String>(id, report)?;
                if matches!(self, Self(TokenBucket, _, _, K100 | M1, Uniform, 1)) {
                    work.others(id, self.3, report)?;
                }
                Ok(())
            }
            (One, Ip) => self.one::<Ipv4Addr>(id, report).map(drop),
            (Three, Text) => self.three::<String>(id, report),
            (Three, Ip) => self.three::<Ipv4Addr>(id, report),
        }
    }

    fn one<K: Key>(&self, id: &str, report: &mut Report) -> io::Result<Work<K>> {
        let Self(algorithm, _, _, size, order, threads) = *self;
        let allowance = match order {
            Uniform => Allowance::USER,
            Zipf => Allowance::AMPLE,
        };
        let keys = K::all(size.keys());
        let requests = order.requests(&keys, size.decisions());
        let ours = ours::One::new(&keys, allowance, algorithm);
        let theirs = Governor::new(&keys, allowance);
        let duel = duel(
            size.rounds(),
            || allowed(&requests, threads, |key| ours.decide(key)),
            || allowed(&requests, threads, |key| theirs.decide(key)),
        );
        report.add(Row::new(id, GOVERNOR, "ns", duel).with_target(self.target()))?;
        Ok(Work {
            keys,
            requests,
            ours,
        })
    }

    fn three<K: Key>(&self, id: &str, report: &mut Report) -> io::Result<()> {
        let Self(algorithm, _, _, size, order, threads) = *self;
        let allowances = match order {
            Uniform => Allowance::THREE,
            Zipf => Allowance::AMPLE_THREE,
        };
        let users = User::<K>::all(size.keys());
        let requests = order.requests(&users, size.decisions());
        let ours = ours::Three::new(&users, allowances, algorithm);
        let theirs = ThreeGovernors::new(&users, allowances);
        let duel = duel(
            size.rounds(),
            || allowed(&requests, threads, |user| ours.decide(user)),
            || allowed(&requests, threads, |user| theirs.decide(user)),
        );
        report.note(ThreeGovernors::<K>::NOTE);
        report.add(Row::new(id, GOVERNOR, "ns", duel).with_target(self.target()))
    }
}

/// What was measured against governor, once more for the others.
struct Work<K> {
    keys: Vec<K>,
    requests: Vec<K>,
    ours: ours::One,
}

impl Work<String> {
    fn others(&self, id: &str, size: Size, report: &mut Report) -> io::Result<()> {
        let Self {
            keys,
            requests,
            ours,
        } = self;
        let mut against = |peer, theirs: &dyn Fn() -> f64| {
            let ours = || allowed(requests, 1, |key| ours.decide(key));
            report.add(Row::new(id, peer, "ns", duel(size.rounds(), ours, theirs)))
        };

        let theirs = RateNet::new(keys, Allowance::USER);
        against(RateNet::NAME, &|| {
            allowed(requests, 1, |key| theirs.decide(key))
        })?;
        drop(theirs);

        let theirs = AxumGcra::new(keys.iter().map(String::as_str), Allowance::USER);
        against(AxumGcra::<&str>::NAME, &|| {
            allowed(requests, 1, |key| theirs.decide(key))
        })?;
        drop(theirs);

        let theirs = PingoraLimits::new(Allowance::USER);
        against(PingoraLimits::NAME, &|| {
            pass(requests, 1, |key| theirs.decide(key)).nanos
        })?;

        report.note(RateNet::NOTE);
        report.note(AxumGcra::<&str>::NOTE);
        report.note(PingoraLimits::NOTE);
        Ok(())
    }
}
