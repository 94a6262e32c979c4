//! Subscription tiers and their multipliers.

use std::collections::HashMap;

use crate::error::{ValidationError, ValidationErrors};
use crate::identity_types::Identity;
use crate::quota::Quota;

/// Subscription tiers of a policy, with the multiplier of each.
///
/// ```
/// use tollgate::policy::Tiers;
///
/// let tiers = Tiers::new("free").tier("team", 5).tier("enterprise", 10).assign("user", "ada", "team");
/// # let _ = tiers;
/// ```
///
/// A caller has the tier that was [assigned](Tiers::assign) to it, or else the tier of its
/// identity, or else the default tier. A tier name that is not listed means the default tier.
#[derive(Clone, Debug)]
#[must_use]
pub struct Tiers {
    pub(crate) tiers: Vec<(String, f64)>,
    pub(crate) assigned: Vec<(String, String, String)>,
}

impl Default for Tiers {
    /// Creates one tier, `default`.
    fn default() -> Self {
        Self::new("default")
    }
}

/// Maximum number of tiers. Every quota is compiled for each tier.
const MOST_TIERS: usize = 256;

impl Tiers {
    /// Creates a list with the default tier. Its multiplier is 1 unless [`tier`](Self::tier) sets
    /// another.
    pub fn new(default: impl Into<String>) -> Self {
        Self {
            tiers: vec![(default.into(), 1.0)],
            assigned: Vec::new(),
        }
    }

    /// Adds a tier, or sets its multiplier. Multipliers are rounded to three decimals.
    pub fn tier(mut self, name: impl Into<String>, multiplier: impl Into<f64>) -> Self {
        // `compile` reports the error; one tier above the maximum is enough for that.
        if self.tiers.len() > MOST_TIERS {
            return self;
        }
        let (name, multiplier) = (name.into(), multiplier.into());
        match self.tiers.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = multiplier,
            None => self.tiers.push((name, multiplier)),
        }
        self
    }

    /// Assigns a tier to callers with this value of a dimension: one user, or all users of a tenant.
    /// It replaces the tier of their identity.
    pub fn assign(
        mut self,
        dimension: impl Into<String>,
        value: impl Into<String>,
        tier: impl Into<String>,
    ) -> Self {
        self.assigned
            .push((dimension.into(), value.into(), tier.into()));
        self
    }

    /// Compiles the tiers, and adds their errors to `problems`.
    pub(super) fn compile(mut self, problems: &mut ValidationErrors) -> TierTable {
        if self.tiers.len() > MOST_TIERS {
            let found = format!("more than {MOST_TIERS}");
            let expected = format!("at most {MOST_TIERS} tiers");
            problems.push(ValidationError::new("number of tiers", found, expected).at("tiers"));
            self.tiers.truncate(1);
        }
        let mut thousandths = Vec::with_capacity(self.tiers.len());
        for (name, multiplier) in &self.tiers {
            let scaled = multiplier * 1_000.0;
            if !(1.0..=1e9).contains(&scaled) {
                let expected = "a number from 0.001 to 1000000";
                let error = ValidationError::new("multiplier", multiplier, expected);
                let error = error.within(&format!("tier `{name}`"));
                problems.push(error.at(format!("tiers.{name}")));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "within these bounds, or refused"
            )]
            thousandths.push(scaled.round() as u64);
        }
        let names: Box<[Box<str>]> = self
            .tiers
            .into_iter()
            .map(|(name, _)| name.into())
            .collect();
        let mut assigned = HashMap::new();
        for (dimension, value, tier) in self.assigned {
            if *dimension == *Identity::IP {
                let expected = "a dimension of an identity, such as `user`";
                let error = ValidationError::new("assigned dimension", dimension, expected);
                problems.push(error.at("tiers.assign.ip"));
                continue;
            }
            let Some(index) = names.iter().position(|name| **name == *tier) else {
                let unknown = unknown_tier(&tier, &names).within(&dimension);
                problems.push(unknown.at(format!("tiers.assign.{dimension}.{value}")));
                continue;
            };
            let of_dimension: &mut HashMap<_, _> = assigned.entry(dimension.into()).or_default();
            of_dimension.insert(value.into(), index);
        }
        TierTable {
            names,
            thousandths: thousandths.into(),
            assigned,
        }
    }
}

/// Compiled tiers of a policy. Tiers are referred to by index; index 0 is the default tier.
#[derive(Debug)]
pub(crate) struct TierTable {
    names: Box<[Box<str>]>,
    thousandths: Box<[u64]>,
    assigned: HashMap<Box<str>, HashMap<Box<str>, usize>>,
}

/// Tier of a caller, and where it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TierOf<'i> {
    /// Assigned by the policy.
    Assigned(usize),
    /// Named by the identity.
    FromIdentity(usize),
    /// The identity names a tier that the policy does not list.
    Unknown(&'i str),
    /// Neither the policy nor the identity names a tier.
    NotNamed,
    /// The caller is unauthenticated.
    Anonymous,
}

impl TierTable {
    /// Index of the default tier.
    pub(crate) const DEFAULT: usize = 0;

    pub(crate) const fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", |name| name)
    }

    /// Returns the index of a tier.
    #[inline]
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| **known == *name)
    }

    /// Returns the tier that the policy assigns to a caller.
    #[inline]
    fn assigned(&self, identity: &Identity) -> Option<usize> {
        if self.assigned.is_empty() {
            return None;
        }
        let mut dimensions = identity.dimensions();
        dimensions.find_map(|(name, value)| self.assigned.get(name)?.get(value).copied())
    }

    /// Returns the tier that the policy assigns to a caller, or else the tier of its identity. Does
    /// not call the tier resolver.
    #[inline]
    pub(crate) fn of<'i>(&self, identity: Option<&'i Identity>) -> TierOf<'i> {
        // Neither the token nor the table gives a tier to a caller without a subject.
        let Some(identity) = identity.filter(|identity| identity.is_authenticated()) else {
            return TierOf::Anonymous;
        };
        if let Some(tier) = self.assigned(identity) {
            return TierOf::Assigned(tier);
        }
        match identity.tier_name() {
            None => TierOf::NotNamed,
            Some(name) => self
                .index(name)
                .map_or(TierOf::Unknown(name), TierOf::FromIdentity),
        }
    }

    /// Returns the multiplier of a tier.
    pub(super) fn multiplier(&self, index: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "at most 10^9")]
        let thousandths = self.thousandths[index] as f64;
        thousandths / 1_000.0
    }

    /// Returns a quota multiplied for a tier, at least 1.
    pub(super) fn scale(&self, quota: &Quota, index: usize) -> Result<Quota, ValidationError> {
        let thousandths = u128::from(self.thousandths[index]);
        if quota.counts_nothing() || thousandths == 1_000 {
            return Ok(*quota);
        }
        let amount = (u128::from(quota.amount()) * thousandths / 1_000).max(1);
        quota.with_amount(u64::try_from(amount).unwrap_or(u64::MAX))
    }

    /// Returns the error for a tier that a rule names and the policy does not list.
    pub(super) fn unknown(&self, name: &str) -> ValidationError {
        unknown_tier(name, &self.names)
    }
}

fn unknown_tier(name: &str, known: &[Box<str>]) -> ValidationError {
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let expected = format!("one of the tiers: {}", known.join(", "));
    ValidationError::new("tier", name, expected)
}
