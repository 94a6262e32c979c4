//! One batch: look at every counter, then write all or nothing.

use super::MemoryStore;
use super::locked::{Locked, Tables};
use super::room::NoRoom;
use super::several::Way;
use super::table::Place;
use super::weigh::{Mode, Write, look_at, new_words, refund, weigh, write};
use crate::batch::{Batch, Check, MAX_CHECKS};
use crate::clock::Timestamp;
use crate::store::fingerprint::{Fingerprint, Tag};
use crate::sync::Ordering;
use crate::usage::Usages;

/// How much more sweeping is owed for a check that brings a new counter.
const WORK_OF_A_NEWCOMER: u32 = 16;

/// What is to be done for one check.
#[derive(Clone, Copy, Default)]
pub(super) struct Plan {
    pub(super) tag: Tag,
    /// Where the counter is; a newcomer is nowhere yet.
    place: Option<Place>,
    write: Write,
}

impl Plan {
    #[inline]
    pub(super) fn is_newcomer(&self) -> bool {
        self.place.is_none() && !matches!(self.write, Write::Nothing)
    }
}

impl MemoryStore {
    /// Fills in the verdict where it lies: it is large, and copying it about costs more than
    /// deciding it. That is also why this is not inlined: what it returns is then written where the
    /// caller wants to have it.
    #[inline(never)]
    pub(super) fn charge(&self, batch: &Batch<'_>, now: Timestamp, mode: Mode) -> Usages {
        let mut verdict = Usages::new(batch, now);
        let known = match mode {
            Mode::IfRoom => self.charge_known(batch.checks(), now, &mut verdict),
            Mode::Always => Way::Long(None),
        };
        match known {
            Way::Done => {}
            Way::Long(None) => self.charge_many(batch, now, mode, &mut verdict),
            Way::Long(Some(prints)) => self.charge_all(batch, prints, now, mode, &mut verdict),
        }
        verdict
    }

    /// The long way, from the beginning.
    #[inline(never)]
    fn charge_many(&self, batch: &Batch<'_>, now: Timestamp, mode: Mode, verdict: &mut Usages) {
        let prints = self.secret.fingerprints(batch.checks());
        self.charge_all(batch, prints, now, mode, verdict);
    }

    #[inline(never)]
    fn charge_all(
        &self,
        batch: &Batch<'_>,
        mut prints: [Fingerprint; MAX_CHECKS],
        now: Timestamp,
        mode: Mode,
        verdict: &mut Usages,
    ) {
        // If there is no room, nothing was written. Next time around that check is on a
        // shared counter, whose place is never refused, so this ends.
        while let Err(NoRoom(index)) = self.try_charge(batch, &prints, now, mode, verdict) {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            prints[index] = self.shared_counter(batch, &prints, index);
        }
    }

    #[inline]
    fn try_charge(
        &self,
        batch: &Batch<'_>,
        prints: &[Fingerprint; MAX_CHECKS],
        now: Timestamp,
        mode: Mode,
        verdict: &mut Usages,
    ) -> Result<(), NoRoom> {
        let checks = batch.checks();
        let mut locked = Locked::none();
        locked.lock(self, &prints[..checks.len()]);
        let now = locked.instant(now.as_micros());
        *verdict = Usages::new(batch, Timestamp::from_micros(now));
        let mut plans = [Plan::default(); MAX_CHECKS];
        let mut newcomers = 0;
        for (index, check) in checks.iter().enumerate() {
            let table = locked.table(index);
            let plan = &mut plans[index];
            plan.tag = prints[index].tag(check.counter());
            plan.place = table.find(plan.tag);
            let usage = weigh(table, plan.place, check, now, mode, &mut plan.write);
            newcomers += usize::from(plan.is_newcomer());
            verdict.push(usage);
        }
        let plans = &plans[..checks.len()];
        if mode == Mode::IfRoom && !verdict.is_allowed() {
            self.turn_away(&mut locked, checks, prints, verdict);
            return Ok(());
        }
        self.commit(&mut locked, checks, plans, now, newcomers)?;
        if mode == Mode::Always {
            let none = checks.iter().map(|check| check.with_cost(0));
            Self::say_how_they_stand(&mut locked, none, prints, verdict);
        }
        self.sweep_a_little(&mut locked, checks.len());
        Ok(())
    }

    /// Denied: every counter says how it stands, whoever had room without the charge. Nothing
    /// is charged, but those who are denied pay for sweeping as well.
    pub(super) fn turn_away(
        &self,
        locked: &mut impl Tables,
        checks: &[Check<'_>],
        prints: &[Fingerprint],
        verdict: &mut Usages,
    ) {
        Self::say_how_they_stand(locked, checks.iter().copied(), prints, verdict);
        self.sweep_a_little(locked, checks.len());
    }

    /// Every counter says how it stands, and what it would say to the check.
    fn say_how_they_stand<'c>(
        locked: &mut impl Tables,
        checks: impl Iterator<Item = Check<'c>>,
        prints: &[Fingerprint],
        verdict: &mut Usages,
    ) {
        let now = verdict.at();
        *verdict = Usages::with_live(checks.size_hint().0, now);
        for (index, check) in checks.enumerate() {
            let table = locked.table(index);
            let place = table.find(prints[index].tag(check.counter()));
            let usage = look_at(table, place, &check, now.as_micros());
            if let Some(place) = place.filter(|_| !usage.is_allowed()) {
                let (used, limit) = (usage.used(), usage.limit());
                table.cell_mut(place).note_denial(used, limit);
            }
            verdict.push(usage);
        }
    }

    /// Only when all is written: sweeping may move others about.
    #[inline]
    fn sweep_a_little(&self, locked: &mut impl Tables, checks: usize) {
        let mut due = false;
        for index in 0..checks {
            due |= locked.table(index).owes_a_share(1);
        }
        if due {
            self.sweep_due(locked, checks);
        }
    }

    #[cold]
    pub(super) fn sweep_due(&self, locked: &mut impl Tables, checks: usize) {
        for index in 0..checks {
            let table = locked.table(index);
            if table.is_due() {
                self.sweep_shares(table);
            }
        }
    }

    fn commit(
        &self,
        locked: &mut Locked<'_>,
        checks: &[Check<'_>],
        plans: &[Plan],
        now: u64,
        newcomers: usize,
    ) -> Result<(), NoRoom> {
        let victims = self.make_room(locked, plans, newcomers)?;
        // Those that have a place first: newcomers and sweeping may move others about.
        for (index, (check, plan)) in checks.iter().zip(plans).enumerate() {
            if let Some(place) = plan.place {
                write(locked.table(index), place, check, now, plan.write);
            }
        }
        for (index, (check, plan)) in checks.iter().zip(plans).enumerate() {
            let table = locked.table(index);
            if plan.is_newcomer()
                && let Some(words) = new_words(table, check, now, plan.write)
            {
                self.settle_in(table, plan.tag, words, victims[index]);
                table.owe(WORK_OF_A_NEWCOMER);
            }
        }
        Ok(())
    }

    pub(super) fn look(&self, batch: &Batch<'_>, now: Timestamp) -> Usages {
        let mut prints = self.secret.fingerprints(batch.checks());
        loop {
            match self.try_look(batch, &prints, now) {
                Ok(verdict) => return verdict,
                Err(NoRoom(index)) => prints[index] = self.shared_counter(batch, &prints, index),
            }
        }
    }

    fn try_look(
        &self,
        batch: &Batch<'_>,
        prints: &[Fingerprint; MAX_CHECKS],
        now: Timestamp,
    ) -> Result<Usages, NoRoom> {
        let checks = batch.checks();
        let mut locked = Locked::none();
        locked.lock(self, &prints[..checks.len()]);
        // Looking must not move the tables' clock: somebody may look ahead.
        let now = locked.present(now.as_micros());
        let mut verdict = Usages::new(batch, Timestamp::from_micros(now));
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let table = locked.table(index);
            let place = table.find(print.tag(check.counter()));
            if place.is_none() && !self.is_shared(print.place) && !self.has_room(table, *print, now)
            {
                return Err(NoRoom(index));
            }
            verdict.push(look_at(table, place, check, now));
        }
        Ok(verdict)
    }

    pub(super) fn discharge(&self, batch: &Batch<'_>, charged_at: Timestamp, now: Timestamp) {
        let prints = self.secret.fingerprints(batch.checks());
        let checks = batch.checks();
        let mut locked = Locked::none();
        locked.lock(self, &prints[..checks.len()]);
        let now = locked.instant(now.as_micros());
        for (index, (check, print)) in checks.iter().zip(prints).enumerate() {
            let table = locked.table(index);
            if let Some(place) = table.find(print.tag(check.counter())) {
                refund(table, place, check, charged_at.as_micros(), now);
            }
        }
    }
}
