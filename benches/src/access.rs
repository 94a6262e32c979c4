//! Sequences of callers, generated before the measurement.
//!
//! The keys of the requests are contiguous in memory, and each request has its own copy, as in a
//! server, where the key has just been read from the request. A look-up in a list of all keys would
//! cost more than some decisions.

use std::net::Ipv4Addr;

/// `user:0000000`, `user:0000001`, …
#[must_use]
pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("user:{n:07}")).collect()
}

/// `tenant:00000`, …: one for every `users` users.
#[must_use]
pub fn tenants(count: usize, users: usize) -> Vec<String> {
    let tenants = count.div_ceil(users);
    (0..tenants).map(|n| format!("tenant:{n:05}")).collect()
}

/// As many addresses, spread over the private network 10.0.0.0/8.
#[must_use]
pub fn addresses(count: usize) -> Vec<Ipv4Addr> {
    const NET: u32 = 0x0a00_0000;
    const HOSTS: u32 = 0x00ff_ffff;
    // Odd, so that no two numbers below 2^24 meet.
    const STRIDE: u32 = 0x9e_3779;
    let numbers = (0..=HOSTS).take(count);
    numbers
        .map(|n| Ipv4Addr::from(NET | (n.wrapping_mul(STRIDE) & HOSTS)))
        .collect()
}

/// Distribution of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Every key as often as any other.
    Uniform,
    /// The n-th key 1/n times as often as the first.
    Zipf,
}

impl Order {
    /// `uniform` or `zipf`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }

    /// `count` requests of `keys`, the same in every run.
    #[must_use]
    pub fn requests<K: Clone>(self, keys: &[K], count: usize) -> Vec<K> {
        let indexes = self.indexes(keys.len(), count);
        indexes
            .into_iter()
            .map(|index| keys[index as usize].clone())
            .collect()
    }

    /// The indexes of their keys.
    #[must_use]
    pub fn indexes(self, keys: usize, len: usize) -> Vec<u32> {
        let mut random = Random(0x1234_5678_9abc_def1);
        match self {
            Self::Uniform => (0..len).map(|_| random.below(keys)).collect(),
            Self::Zipf => {
                let zipf = Zipf::new(keys);
                // The popular keys must not be neighbours in memory.
                let places = random.permutation(keys);
                (0..len)
                    .map(|_| places[zipf.rank(random.fraction())])
                    .collect()
            }
        }
    }
}

/// Zipf's law with exponent 1, by its distribution function.
struct Zipf {
    up_to: Vec<f64>,
}

impl Zipf {
    fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=keys)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|part| *part /= sum);
        Self { up_to }
    }

    fn rank(&self, fraction: f64) -> usize {
        let rank = self.up_to.partition_point(|part| *part < fraction);
        rank.min(self.up_to.len() - 1)
    }
}

/// `SplitMix64`: small, and good enough to choose keys.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> u32 {
        ((u128::from(self.next()) * end as u128) >> 64) as u32
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn permutation(&mut self, len: usize) -> Vec<u32> {
        let mut places: Vec<u32> = (0..len as u32).collect();
        for end in (1..len).rev() {
            places.swap(end, self.below(end + 1) as usize);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_comes_twice() {
        let addresses: HashSet<_> = addresses(100_000).into_iter().collect();
        assert_eq!(addresses.len(), 100_000);
        let names: HashSet<_> = names(1_000).into_iter().collect();
        assert_eq!(names.len(), 1_000);
        assert_eq!(tenants(1_001, 100).len(), 11);
    }

    #[test]
    fn the_first_of_a_thousand_comes_every_seventh_or_eighth_time() {
        let mut counts = vec![0; 1_000];
        for index in Order::Zipf.indexes(1_000, 100_000) {
            counts[index as usize] += 1;
        }
        counts.sort_unstable();
        // 1 / (1 + 1/2 + … + 1/1000) = 0.1336
        assert!((13_000..13_700).contains(&counts[999]), "{}", counts[999]);
        assert!((6_400..7_000).contains(&counts[998]), "{}", counts[998]);
    }

    #[test]
    fn uniform_uses_every_key() {
        let seen: HashSet<_> = Order::Uniform.indexes(1_000, 100_000).into_iter().collect();
        assert_eq!(seen.len(), 1_000);
    }
}
