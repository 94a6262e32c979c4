//! How much is taken ahead: by how quickly it was spent.

/// How many blocks are kept ahead of what is hot, as long as they last for a round trip.
const HOT: u64 = 2;

/// How many blocks are kept ahead at most.
const MOST: u64 = 32;

/// More than two blocks are this part of what is left at most, so that near its end a limit is
/// shared as finely as without them.
const PART_OF_THE_REST: u64 = 16;

/// A block is this part of what is left at most, so that there is something for the others.
const PART_IN_A_BLOCK: u64 = 4;

/// What one kind of request has shown to need.
pub(super) struct PrefetchPolicy {
    /// The largest block there may be.
    block: u64,
    /// How many credits the next block is for. It doubles whenever one was used up in time, and is
    /// halved whenever one was not: only what is hot is leased.
    size: u64,
    /// How many blocks are kept ahead. One is taken when it is needed, and more before.
    blocks: u64,
    /// How many more credits there may be, by what the store has said last.
    room: u64,
    /// How many credits there were when the next were asked for.
    left_when_asked: u64,
    /// Whether somebody has had to wait since.
    ran_dry: bool,
    /// With how many credits left the next are asked for, and one more: nothing if they are asked
    /// for when they are needed.
    refill_below: u64,
}

impl PrefetchPolicy {
    pub(super) const fn new(block: u64) -> Self {
        Self {
            block,
            size: 0,
            blocks: 1,
            room: 0,
            left_when_asked: 0,
            ran_dry: false,
            refill_below: 0,
        }
    }

    /// Whether more is to be asked for, with so many credits left.
    #[inline]
    pub(super) const fn wants_more(&self, ahead: u64) -> bool {
        ahead < self.refill_below
    }

    /// How many credits are to be asked for, with so many left and so many who wait.
    pub(super) fn missing(&self, ahead: u64, waiting: u64) -> u64 {
        // Those who wait need theirs now.
        let most = self.block.saturating_mul(self.blocks.min(HOT));
        let wanted = self.to_hold().max(waiting.min(most));
        wanted
            .saturating_sub(ahead)
            .min(self.room / PART_IN_A_BLOCK)
    }

    /// How many credits are to be there, or on their way.
    fn to_hold(&self) -> u64 {
        let two = self.size.saturating_mul(self.blocks.min(HOT));
        let all = self.size.saturating_mul(self.blocks);
        all.min(two.max(self.room / PART_OF_THE_REST))
    }

    /// So many credits were asked for, and so many were left.
    pub(super) fn has_asked(&mut self, credits: u64, left: u64) {
        self.room -= credits;
        (self.left_when_asked, self.ran_dry) = (left, false);
        self.weigh();
    }

    /// Somebody has to wait for what was asked for. Of what is hot, that is because it takes more
    /// than what was there to last for a round trip.
    pub(super) fn has_run_dry(&mut self) {
        if self.blocks >= HOT && !self.ran_dry {
            self.blocks = self.blocks.saturating_mul(2).min(MOST);
            self.ran_dry = true;
            self.weigh();
        }
    }

    /// What was asked for has come, while so much was left of what there was; and so many more
    /// credits there may be.
    pub(super) fn has_come(&mut self, left: u64, room: u64) {
        self.room = room;
        // With half as much ahead, half of what was left would have lasted, too.
        let spent = self.left_when_asked.saturating_sub(left);
        if self.blocks > HOT && spent < self.left_when_asked / 4 {
            self.blocks = (self.blocks / 2).max(HOT);
        }
        self.weigh();
    }

    /// A block was spent, so quickly or not that the next ones are taken before they are needed.
    #[cold]
    pub(super) fn was_spent(&mut self, quickly: bool) {
        self.blocks = if quickly { self.blocks.max(HOT) } else { 1 };
        self.grow();
    }

    /// A block was not spent in time.
    pub(super) fn was_left_over(&mut self) {
        (self.size, self.blocks) = (self.size / 2, 1);
        self.weigh();
    }

    /// There is not as much any more, or nobody knows how much.
    pub(super) fn was_refused(&mut self) {
        (self.room, self.size, self.blocks) = (0, 1, 1);
        self.weigh();
    }

    /// What is taken ahead from now on is taken when it is needed.
    pub(super) fn has_lost_all(&mut self) {
        self.blocks = 1;
        self.weigh();
    }

    /// Somebody who was asked about by himself was admitted, and so many more credits there may be.
    pub(super) fn was_admitted(&mut self, room: u64) {
        self.room = room;
        self.size = self.size.max(1);
        self.grow();
    }

    /// Somebody who was asked about by himself was denied.
    pub(super) fn was_denied(&mut self) {
        (self.room, self.size) = (0, 1);
        self.weigh();
    }

    fn grow(&mut self) {
        self.size = self.size.saturating_mul(2).min(self.block);
        self.weigh();
    }

    fn weigh(&mut self) {
        self.refill_below = if self.blocks >= HOT {
            self.to_hold() / 2 + 1
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 10;

    /// Hot, with so many credits left in the store.
    fn hot(room: u64) -> PrefetchPolicy {
        let mut demand = PrefetchPolicy::new(BLOCK);
        demand.was_admitted(room);
        for _ in 0..5 {
            demand.was_spent(true);
        }
        demand
    }

    /// Spends what there is before the next comes.
    fn run_dry(demand: &mut PrefetchPolicy, room: u64) {
        demand.has_asked(demand.missing(0, 0), 0);
        demand.has_run_dry();
        demand.has_run_dry();
        demand.has_come(0, room);
    }

    #[test]
    fn blocks_grow_while_they_are_spent_and_two_of_what_is_hot_are_kept() {
        let mut demand = PrefetchPolicy::new(BLOCK);
        assert_eq!(demand.missing(0, 0), 0, "nobody has asked yet");
        let mut sizes = Vec::new();
        demand.was_admitted(1_000);
        for _ in 0..4 {
            sizes.push(demand.missing(0, 0));
            demand.was_spent(false);
        }
        assert_eq!(sizes, [2, 4, 8, 10]);
        assert!(!demand.wants_more(0), "it is asked for when it is needed");
        demand.was_spent(true);
        assert_eq!(demand.missing(10, 0), 10);
        assert!(demand.wants_more(10) && !demand.wants_more(11));
        demand.was_left_over();
        assert_eq!(demand.missing(0, 0), 5);
    }

    #[test]
    fn what_runs_dry_is_asked_for_twice_as_much_up_to_a_bound() {
        let mut demand = hot(1_000_000);
        let mut kept = Vec::new();
        for _ in 0..6 {
            kept.push(demand.missing(0, 0));
            run_dry(&mut demand, 1_000_000);
        }
        assert_eq!(
            kept,
            [20, 40, 80, 160, 320, 320],
            "once for each that comes"
        );
        assert!(demand.wants_more(160) && !demand.wants_more(161));
        // It lasts for more than four round trips.
        demand.has_asked(160, 160);
        demand.has_come(121, 1_000_000);
        assert_eq!(demand.missing(0, 0), 160);
        demand.has_asked(80, 80);
        demand.has_come(60, 1_000_000);
        assert_eq!(demand.missing(0, 0), 160, "and for no more than four");
    }

    #[test]
    fn near_the_end_of_a_limit_there_are_two_blocks_and_then_less() {
        let mut demand = hot(1_000_000);
        for _ in 0..6 {
            run_dry(&mut demand, 1_000_000);
        }
        for (room, kept) in [
            (5_120, 320),
            (5_119, 319),
            (1_600, 100),
            (336, 21),
            (320, 20),
            (80, 20),
            (79, 19),
            (8, 2),
        ] {
            demand.has_come(0, room);
            assert_eq!(demand.missing(0, 1_000), kept, "{room} are left");
        }
        demand.was_refused();
        assert_eq!(demand.missing(0, 1_000), 0);
    }
}
