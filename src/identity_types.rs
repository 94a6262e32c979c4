//! Verified facts about a caller: [`Identity`].

use std::fmt;

/// Verified facts about a caller: named dimensions, a tier, roles.
///
/// The first dimension is the primary one: quotas count per its value, unless a rule names other
/// dimensions. An [`unauthenticated`](Self::unauthenticated) identity has no primary dimension:
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
    /// Name of the primary dimension with the issuer, as counters use it: `user@https://id.acme.dev`.
    qualified_name: Option<Box<str>>,
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

    /// Creates the identity of a user.
    pub fn user(id: impl Into<String>) -> Self {
        Self::new(Self::USER, id)
    }

    /// Creates the identity of a caller with another primary dimension than `user`: `device`, `api-key`,
    /// …
    pub fn new(dimension: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            dimensions: vec![(dimension.into().into(), value.into().into())],
            is_authenticated: true,
            ..Self::unauthenticated()
        }
    }

    /// Creates an unauthenticated identity with verified facts, such as the tenant and the roles of a
    /// token without a user.
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
            qualified_name: None,
            tier: None,
            roles: Vec::new(),
        }
    }

    /// Adds a dimension, or replaces its value.
    pub fn with(mut self, dimension: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (dimension.into(), value.into().into());
        match self
            .dimensions
            .iter_mut()
            .find(|(known, _)| **known == name)
        {
            Some((_, current)) => *current = value,
            None => self.dimensions.push((name.into(), value)),
        }
        self
    }

    /// Sets the tenant of the caller.
    pub fn tenant(self, id: impl Into<String>) -> Self {
        self.with(Self::TENANT, id)
    }

    /// Sets the issuer that has named the caller, if there are several: one name from two issuers is
    /// two callers.
    ///
    /// They have separate counters and separate cached tiers. The subject of their counters is
    /// `("user@https://id.acme.dev", "alice")`. [`get`](Self::get) and [`primary`](Self::primary)
    /// return the bare name. Exemptions and tiers in a policy apply to the bare name, for every
    /// issuer.
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
            self.qualified_name = Some(name.into());
        }
        self
    }

    /// Sets the subscription tier.
    pub fn tier(mut self, name: impl Into<String>) -> Self {
        self.tier = Some(name.into().into());
        self
    }

    /// Adds a role.
    pub fn role(mut self, name: impl Into<String>) -> Self {
        self.roles.push(name.into().into());
        self
    }

    /// Returns the primary dimension and its value; `None` if the caller is
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

    /// Returns the issuer, if one [was set](Self::of_issuer).
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        let after = self.primary()?.0.len() + 1;
        self.qualified_name.as_deref()?.get(after..)
    }

    /// Returns the primary dimension, qualified by the issuer, and its value: the key of counters and
    /// caches.
    #[inline]
    pub(crate) fn counter_key(&self) -> Option<(&str, &str)> {
        let (name, value) = self.primary()?;
        Some((self.qualified_name.as_deref().unwrap_or(name), value))
    }

    /// Returns a dimension as counters use it, and its value.
    #[inline]
    pub(crate) fn counter_key_of<'a>(&'a self, dimension: &'a str) -> Option<(&'a str, &'a str)> {
        if self.primary().is_some_and(|(name, _)| name == dimension) {
            return self.counter_key();
        }
        self.get(dimension).map(|value| (dimension, value))
    }

    /// Returns the value of a dimension.
    #[must_use]
    pub fn get(&self, dimension: &str) -> Option<&str> {
        let mut known = self.dimensions.iter();
        known
            .find(|(name, _)| **name == *dimension)
            .map(|(_, value)| &**value)
    }

    /// Returns all dimensions, the primary one first.
    pub fn dimensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.dimensions
            .iter()
            .map(|(name, value)| (&**name, &**value))
    }

    /// Returns the name of the tier, if it is set.
    #[must_use]
    pub fn tier_name(&self) -> Option<&str> {
        self.tier.as_deref()
    }

    /// Returns the roles.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().map(|role| &**role)
    }
}

/// Shows the names of the dimensions. Hides their values.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.dimensions().map(|(name, _)| name).collect();
        f.debug_struct("Identity")
            .field("dimensions", &names)
            .field("is_authenticated", &self.is_authenticated)
            .field("qualified_name", &self.qualified_name)
            .field("tier", &self.tier)
            .field("roles", &self.roles)
            .finish()
    }
}
