use super::*;

/// A simulated machine: its time in nanoseconds, and a counter of any speed.
struct Machine {
    nanos: u64,
    ticks: u64,
    /// Ticks per second.
    speed: u64,
    counter: Option<TickCounter>,
}

impl Machine {
    fn new(ticks: u64, speed: u64) -> Self {
        let mut machine = Self {
            nanos: 0,
            ticks,
            speed,
            counter: None,
        };
        machine.counter = Some(TickCounter::new(machine.read(100)));
        machine
    }

    fn pass(&mut self, nanos: u64) {
        self.nanos += nanos;
        let ticks = u128::from(nanos) * u128::from(self.speed) / 1_000_000_000;
        self.ticks = self.ticks.wrapping_add(u64::try_from(ticks).unwrap());
    }

    /// Reads the clock and the counter. `pause` nanoseconds pass between the two readings of the counter.
    fn read(&mut self, pause: u64) -> ClockReading {
        let (before, micros) = (self.ticks, self.nanos / 1_000);
        self.pass(pause);
        let after = self.ticks;
        ClockReading {
            before,
            micros,
            after,
        }
    }

    /// Returns the time as the counter computes it, and the true time before the call.
    fn now(&mut self, pause: u64) -> (u64, u64) {
        let true_micros = self.nanos / 1_000;
        let counter = self.counter.take().unwrap();
        let time = counter.now(self.ticks, || self.read(pause));
        self.counter = Some(counter);
        (time, true_micros)
    }

    fn counter(&self) -> &TickCounter {
        self.counter.as_ref().unwrap()
    }

    /// Lets time pass until the rate is known.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.pass(1_000_000);
            self.now(50);
            if self.counter().time_at(self.ticks).is_some() {
                return;
            }
        }
        panic!("rate never known: {:?}", self.counter);
    }
}

/// At any counter speed, after any pause and while the system clock is slewed: ahead only by
/// rounding, behind by a few microseconds, and never backwards. Each step is a time that passes,
/// a pause within the reading, and what happens (see the `match`).
fn check_steps(start: u64, speed: u64, steps: &[(u64, u64, u32)]) {
    let mut machine = Machine::new(start, speed);
    let mut last = 0;
    for (nanos, pause, kind) in steps {
        match kind {
            0 => machine.pass(nanos * 5_000), // no reading for seconds
            1 => machine.speed = speed - speed / 2_000 + speed / 1_000 * (nanos % 2),
            2..8 => machine.pass(nanos / 1_000),
            _ => machine.pass(*nanos),
        }
        let (time, true_micros) = machine.now(*pause);
        let case = || format!("start {start}, speed {speed}, steps {steps:?}");
        assert!(
            time <= true_micros + 1,
            "{time} is ahead of {true_micros}: {}",
            case()
        );
        assert!(
            time + 25 >= true_micros,
            "{time} is behind {true_micros}: {}",
            case()
        );
        assert!(time >= last, "{time} after {last}: {}", case());
        last = time;
    }
    assert!(!machine.counter().is_lost.load(Ordering::Relaxed));
}

#[test]
fn time_is_never_ahead_and_at_most_25_micros_behind() {
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let start = random.u64(..);
        let speed = random.u64(20_000_000..6_000_000_000);
        let count = random.usize(1..400);
        let step = |_| {
            (
                random.u64(..2_000_000),
                random.u64(..40_000),
                random.u32(..20),
            )
        };
        let steps: Vec<_> = (0..count).map(step).collect();
        check_steps(start, speed, &steps);
    }
}

/// Steps that an earlier version failed.
#[test]
fn time_is_right_after_changes_of_speed_and_long_pauses() {
    #[rustfmt::skip]
    const STEPS: &[(u64, u64, u32)] = &[
        (184_000, 4_233, 2), (1_236_000, 21_445, 2), (61_552, 5_511, 8), (805_081, 25_446, 8),
        (1_148_522, 32_313, 0), (608_964, 22_521, 8), (1_283_331, 1_140, 8), (328_546, 0, 8),
        (1_192_246, 12_763, 8), (1_180_893, 6_571, 8), (756_138, 9_345, 8), (1_226_000, 0, 2),
        (1_436_436, 13_253, 8), (320_000, 0, 2), (465_335, 0, 2), (298_000, 0, 2),
        (690_577, 22_548, 8), (521_771, 20_391, 8), (1_736_295, 5_618, 8),
        (649_768, 14_172, 8), (115_506, 0, 1), (1_006_078, 37_716, 8), (1_656_000, 21_507, 2),
        (1_200_958, 29_985, 8), (557_397, 35_141, 8), (1_303_989, 10_437, 8),
        (1_305_000, 0, 2), (845_000, 0, 2), (1_705_649, 15_054, 8), (1_849_940, 19_857, 1),
        (46_567, 0, 8), (527_000, 0, 2), (960_662, 6_591, 8), (931_000, 0, 0),
        (255_883, 0, 8), (480_457, 12_069, 8), (1_917_296, 12_478, 1), (123_000, 0, 2),
        (1_573_055, 434, 0), (216_251, 0, 8), (414_000, 0, 2), (877_000, 0, 2),
        (494_129, 9_212, 2), (896_827, 20_048, 2), (784_486, 7_659, 5),
        (1_911_710, 18_427, 11), (500_991, 9_726, 9), (740_234, 24_828, 0),
        (598_069, 30_173, 6), (546_526, 38_518, 11), (1_342_541, 30_152, 3),
        (182_048, 4_173, 0), (1_498_920, 24_448, 8), (592_864, 33_218, 9),
        (286_933, 21_775, 8), (558_644, 24_245, 18), (632_134, 14_082, 2),
        (504_633, 21_077, 18), (807_161, 14_346, 18), (1_485_303, 17_405, 8),
        (1_774_956, 15_678, 8), (1_370_725, 33_851, 13), (686_611, 26_582, 18),
        (1_398_370, 1_575, 1), (819_806, 25_723, 11), (688_954, 3_902, 11),
        (207_754, 13_728, 2), (1_798_360, 35_983, 7), (1_233_641, 30_403, 6),
        (1_643_120, 1_369, 14), (1_341_396, 31_628, 16), (615_026, 1_234, 10),
        (1_301_604, 26_592, 17), (836_764, 25_441, 3), (50_430, 22_763, 7),
        (1_274_453, 24_546, 1), (1_898_089, 22_419, 10), (1_972_889, 29_496, 16),
        (608_780, 135, 4), (535_466, 36_582, 3),
    ];
    check_steps(0, 322_204_586, STEPS);
}

#[test]
fn counter_is_used_between_two_readings() {
    let mut machine = Machine::new(u64::MAX - 5, 2_450_000_000);
    machine.settle();
    for micros in 0..400 {
        machine.pass(1_000);
        assert!(
            machine.counter().time_at(machine.ticks).is_some(),
            "{micros}"
        );
    }
    machine.pass(200_000);
    assert!(machine.counter().time_at(machine.ticks).is_none());
}

/// Migration to another machine, whose counter has another value.
#[test]
fn counter_that_jumps_is_not_used_again() {
    for jump in [1 << 30, 1 << 60, u64::MAX / 2, u64::MAX - (1 << 30)] {
        let mut machine = Machine::new(1 << 50, 3_000_000_000);
        machine.settle();
        machine.ticks = machine.ticks.wrapping_add(jump);
        for _ in 0..10_000 {
            let (time, true_micros) = machine.now(50);
            assert!(
                time <= true_micros + 1 && time + 25 >= true_micros,
                "{jump}"
            );
            machine.pass(100_000);
        }
    }
}

/// With a rate that was measured across the jump, time would slow down or stand still, and the next
/// reading of the system clock would not become due.
#[test]
fn jump_during_the_measurement_does_not_stop_time() {
    for jump in [
        1 << 30,
        1 << 40,
        1 << 60,
        u64::MAX / 2,
        u64::MAX - (1 << 30),
    ] {
        let mut machine = Machine::new(1 << 50, 3_000_000_000);
        machine.pass(20_000_000);
        machine.ticks = machine.ticks.wrapping_add(jump);
        for _ in 0..10_000 {
            machine.pass(100_000);
            let (time, true_micros) = machine.now(50);
            assert!(
                time <= true_micros + 1 && time + 25 >= true_micros,
                "{time} instead of {true_micros} after {jump}"
            );
        }
    }
}

/// A thread that is preempted after it has read the system clock, while others continue.
#[test]
fn preempted_thread_does_not_discard_the_counter() {
    let mut machine = Machine::new(0, 3_000_000_000);
    machine.settle();
    machine.pass(1_000_000);
    let counter = machine.counter.take().unwrap();
    let time = counter.now(machine.ticks, || {
        let reading = machine.read(50);
        machine.pass(100_000_000);
        counter.now(machine.ticks, || machine.read(50));
        reading
    });
    assert!(!counter.is_lost.load(Ordering::Relaxed));
    assert!(time <= machine.nanos / 1_000 - 100_000);
}

/// Two cores whose counters differ by less than a reading is valid for.
#[test]
fn counters_that_differ_between_cores_are_discarded() {
    let mut machine = Machine::new(0, 1_000_000_000);
    machine.settle();
    for call in 0..10_000_u64 {
        machine.pass(200_000);
        let apart = if call % 2 == 0 { 100_000 } else { 0 };
        machine.ticks += apart;
        let (time, true_micros) = machine.now(50);
        machine.ticks -= apart;
        assert!(time <= true_micros + 100 + MAX_AHEAD);
    }
    assert!(machine.counter().is_lost.load(Ordering::Relaxed));
}

/// A counter that stops or is slower than 1 MHz.
#[test]
fn counter_that_is_too_slow_is_never_used() {
    for speed in [0, 1_000, 900_000] {
        let mut machine = Machine::new(7, speed);
        for _ in 0..1_000 {
            machine.pass(777_000);
            let (time, true_micros) = machine.now(50);
            assert_eq!(time, true_micros);
        }
    }
}
