//! Who is asking: [`Identity`], verified facts only.

use std::fmt;

/// Verified facts about a caller: named dimensions, a tier, roles.
///
/// The first dimension is the primary one: quotas count per its value, unless a rule says
/// otherwise. An [`unauthenticated`](Self::unauthenticated) identity has no primary dimension:
/// such a caller is limited by client IP.
///
/// ```
/// use tollgate::Identity;
///
/// let alice = Identity::user("alice").tenant("acme").tier("team").role("editor");
/// assert_eq!(alice.get("tenant"), Some("acme"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Identity {
    /// If `is_authenticated`, the first is the primary one, and there is at least one.
    dimensions: Vec<(Box<str>, Box<str>)>,
    is_authenticated: bool,
    /// The name of the first together with the issuer: what counters know it by.
    issued: Option<Box<str>>,
    tier: Option<Box<str>>,
    roles: Vec<Box<str>>,
}

impl Identity {
    /// The dimension of users.
    pub const USER: &'static str = "user";
    /// The dimension of tenants.
    pub const TENANT: &'static str = "tenant";
    /// The dimension of API keys.
    pub const API_KEY: &'static str = "api-key";
    /// The dimension of client addresses, which every caller has anyway.
    pub const IP: &'static str = "ip";

    /// A user.
    pub fn user(id: impl Into<String>) -> Self {
        Self::new(Self::USER, id)
    }

    /// A caller who is no user: known by `dimension` (`device`, `api-key`, …), which is what
    /// quotas count per where a rule does not say otherwise.
    pub fn new(dimension: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            dimensions: vec![(dimension.into().into(), value.into().into())],
            is_authenticated: true,
            issued: None,
            tier: None,
            roles: Vec::new(),
        }
    }

    /// An unauthenticated caller with verified facts, such as the tenant and the roles of a
    /// token that names no user.
    ///
    /// The caller gets the plan of unauthenticated callers and is limited by client IP.
    /// Exemptions by role and rules per tenant apply. The tier does not: it is always the
    /// default tier.
    ///
    /// ```
    /// use tollgate::Identity;
    ///
    /// let service = Identity::unauthenticated().role("service_role");
    /// assert!(!service.is_authenticated());
    /// assert_eq!(service.primary(), None);
    /// ```
    pub const fn unauthenticated() -> Self {
        Self {
            dimensions: Vec::new(),
            is_authenticated: false,
            issued: None,
            tier: None,
            roles: Vec::new(),
        }
    }

    /// One more dimension, which rules can count per; the same name again replaces the value.
    pub fn with(mut self, dimension: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (dimension.into(), value.into().into());
        match self
            .dimensions
            .iter_mut()
            .find(|(known, _)| **known == name)
        {
            Some((_, place)) => *place = value,
            None => self.dimensions.push((name.into(), value)),
        }
        self
    }

    /// The tenant that the caller belongs to.
    pub fn tenant(self, id: impl Into<String>) -> Self {
        self.with(Self::TENANT, id)
    }

    /// Who has named the caller, where that could be several: the same name from two issuers
    /// is two callers.
    ///
    /// They are counted apart, and so are their looked-up tiers; the subject of their counters
    /// is `("user@https://id.acme.dev", "alice")`. [`get`](Self::get) and
    /// [`primary`](Self::primary) give the bare name, and exemptions and tiers that a policy
    /// gives to it are for all who have it.
    ///
    /// ```
    /// use tollgate::Identity;
    ///
    /// let alice = Identity::user("alice").of_issuer("https://id.acme.dev");
    /// assert_eq!(alice.get("user"), Some("alice"));
    /// assert_eq!(alice.issuer(), Some("https://id.acme.dev"));
    /// ```
    ///
    /// Without effect on an [`unauthenticated`](Self::unauthenticated) identity.
    pub fn of_issuer(mut self, issuer: impl AsRef<str>) -> Self {
        if let Some((name, _)) = self.primary() {
            // Rules cannot name a dimension with an `@`, so none is ever taken for this one.
            let name = format!("{name}@{}", issuer.as_ref());
            self.issued = Some(name.into());
        }
        self
    }

    /// The subscription tier.
    pub fn tier(mut self, name: impl Into<String>) -> Self {
        self.tier = Some(name.into().into());
        self
    }

    /// One more role.
    pub fn role(mut self, name: impl Into<String>) -> Self {
        self.roles.push(name.into().into());
        self
    }

    /// Returns the dimension that the caller is known by and its value; `None` if the caller is
    /// [unauthenticated](Self::unauthenticated).
    #[inline]
    #[must_use]
    pub fn primary(&self) -> Option<(&str, &str)> {
        if !self.is_authenticated {
            return None;
        }
        let (name, value) = self.dimensions.first()?;
        Some((name, value))
    }

    /// Whether there is a [primary](Self::primary) dimension that quotas count per.
    #[inline]
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// Who has named the caller, where that [could be several](Self::of_issuer).
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        let after = self.primary()?.0.len() + 1;
        self.issued.as_deref()?.get(after..)
    }

    /// Like [`primary`](Self::primary), with the issuer: what tells callers apart.
    #[inline]
    pub(crate) fn told_apart_by(&self) -> Option<(&str, &str)> {
        let (name, value) = self.primary()?;
        Some((self.issued.as_deref().unwrap_or(name), value))
    }

    /// What counters know a dimension by, and its value.
    #[inline]
    pub(crate) fn counted<'a>(&'a self, dimension: &'a str) -> Option<(&'a str, &'a str)> {
        if self.primary().is_some_and(|(name, _)| name == dimension) {
            return self.told_apart_by();
        }
        self.get(dimension).map(|value| (dimension, value))
    }

    /// The value of a dimension.
    #[must_use]
    pub fn get(&self, dimension: &str) -> Option<&str> {
        let mut known = self.dimensions.iter();
        known
            .find(|(name, _)| **name == *dimension)
            .map(|(_, value)| &**value)
    }

    /// All dimensions, the one that the caller is known by first.
    pub fn dimensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.dimensions
            .iter()
            .map(|(name, value)| (&**name, &**value))
    }

    /// The name of the tier, if one is known.
    #[must_use]
    pub fn tier_name(&self) -> Option<&str> {
        self.tier.as_deref()
    }

    /// The roles.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().map(|role| &**role)
    }
}

/// Shows which dimensions there are, and not whose they are.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.dimensions().map(|(name, _)| name).collect();
        f.debug_struct("Identity")
            .field("dimensions", &names)
            .field("is_authenticated", &self.is_authenticated)
            .field("issued", &self.issued)
            .field("tier", &self.tier)
            .field("roles", &self.roles)
            .finish()
    }
}
