//! Keys of counters: [`Subject`] and [`Counter`].

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::ValidationError;
use crate::quota::Quota;

/// Maximum number of dimensions of a subject.
pub const MAX_DIMENSIONS: usize = 4;

/// What a counter counts per: one or more named dimensions, such as a user, or a user in a group. Without
/// a dimension, all callers share the counter.
///
/// Strings, numbers and addresses convert to subjects:
///
/// ```
/// use std::net::Ipv4Addr;
/// use tollgate::Subject;
///
/// let user = Subject::from("alice");
/// let address = Subject::from(Ipv4Addr::new(203, 0, 113, 9));
/// let member = Subject::from([("group", "slack:C123"), ("user", "slack:U456")]);
/// let everyone = Subject::all();
///
/// // Dimensions are kept apart by name and by length, never by a separator.
/// assert_ne!(Subject::from(("a:b", "c")), Subject::from(("a", "b:c")));
/// assert_ne!(Subject::from([("user", "1.2.3.4")]), Subject::from([("ip", "1.2.3.4")]));
/// ```
///
/// It borrows its values; stores keep a fingerprint of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    dimensions: [Option<Dimension<'a>>; MAX_DIMENSIONS],
}

/// One dimension of a [`Subject`]: a name and a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Dimension<'a> {
    name: &'a str,
    value: Value<'a>,
}

/// A value of one dimension: text, a number or an address.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Text, taken byte by byte.
    Text(&'a str),
    /// A number that is not negative.
    Number(u64),
    /// A negative number.
    Negative(i64),
    /// An address. One mapped into IPv6 is the same as its IPv4 form.
    Address(IpAddr),
}

impl<'a> Subject<'a> {
    /// Returns the subject without dimensions, which all callers share.
    #[inline]
    #[must_use]
    pub const fn all() -> Self {
        Self {
            dimensions: [None; MAX_DIMENSIONS],
        }
    }

    /// Returns a subject of up to [`MAX_DIMENSIONS`] named dimensions.
    pub fn from_dimensions(dimensions: &[(&'a str, Value<'a>)]) -> Result<Self, ValidationError> {
        if dimensions.len() > MAX_DIMENSIONS {
            return Err(ValidationError::new(
                "subject dimensions",
                dimensions.len(),
                format!("at most {MAX_DIMENSIONS}"),
            ));
        }
        let mut subject = Self::all();
        for (place, (name, value)) in subject.dimensions.iter_mut().zip(dimensions) {
            *place = Some(Dimension {
                name,
                value: *value,
            });
        }
        Ok(subject)
    }

    /// Returns a subject with one named dimension.
    #[inline]
    pub(crate) const fn named((name, value): (&'a str, Value<'a>)) -> Self {
        Self {
            dimensions: [Some(Dimension { name, value }), None, None, None],
        }
    }

    /// Converts the text of a dimension `ip` to an address, if it is one.
    pub(crate) fn with_addresses(mut self) -> Self {
        for Dimension { name, value } in self.dimensions.iter_mut().flatten() {
            if let ("ip", Value::Text(text)) = (*name, *value)
                && let Ok(address) = text.parse::<IpAddr>()
            {
                *value = Value::Address(address);
            }
        }
        self
    }

    /// Returns the names and values of the dimensions.
    #[inline]
    pub fn dimensions(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.known()
            .map(|dimension| (dimension.name, dimension.value))
    }

    /// Returns name and value of the only dimension; `None` if there are several or none.
    #[inline]
    pub(crate) const fn only(&self) -> Option<(&'a str, Value<'a>)> {
        match &self.dimensions {
            [Some(Dimension { name, value }), None, ..] => Some((name, *value)),
            _ => None,
        }
    }

    /// Returns the subject as text for operators: `user=alice, tenant=acme`. Do not log it.
    pub(crate) fn to_text(self) -> String {
        let named = self
            .dimensions()
            .map(|(name, value)| format!("{name}={}", ValueText(value)));
        let named: Vec<String> = named.collect();
        if named.is_empty() {
            "all callers".to_owned()
        } else {
            named.join(", ")
        }
    }

    #[inline]
    fn known(&self) -> impl Iterator<Item = &Dimension<'a>> {
        self.dimensions.iter().map_while(Option::as_ref)
    }
}

/// A [`Subject`] that owns its names and values.
///
/// `Debug` does not show the values. `Serialize` does, as a map from names to text.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnedSubject(Box<[(Box<str>, OwnedValue)]>);

#[derive(Clone, PartialEq, Eq)]
enum OwnedValue {
    Text(Box<str>),
    Number(u64),
    Negative(i64),
    Address(IpAddr),
}

impl From<&Subject<'_>> for OwnedSubject {
    fn from(subject: &Subject<'_>) -> Self {
        let owned = subject.dimensions().map(|(name, value)| {
            let value = match value {
                Value::Text(text) => OwnedValue::Text(text.into()),
                Value::Number(number) => OwnedValue::Number(number),
                Value::Negative(number) => OwnedValue::Negative(number),
                Value::Address(address) => OwnedValue::Address(address.to_canonical()),
            };
            (name.into(), value)
        });
        Self(owned.collect())
    }
}

impl OwnedSubject {
    /// Replaces each address.
    pub(crate) fn change_addresses(&mut self, change: impl Fn(IpAddr) -> IpAddr) {
        for (_, value) in &mut self.0 {
            if let OwnedValue::Address(address) = value {
                *address = change(*address);
            }
        }
    }

    /// Returns the subject, borrowed.
    #[must_use]
    pub fn as_subject(&self) -> Subject<'_> {
        let mut subject = Subject::all();
        for (place, (name, value)) in subject.dimensions.iter_mut().zip(&self.0) {
            let value = match value {
                OwnedValue::Text(text) => Value::Text(text),
                OwnedValue::Number(number) => Value::Number(*number),
                OwnedValue::Negative(number) => Value::Negative(*number),
                OwnedValue::Address(address) => Value::Address(*address),
            };
            *place = Some(Dimension { name, value });
        }
        subject
    }
}

impl fmt::Debug for OwnedSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_subject().fmt(f)
    }
}

impl Serialize for OwnedSubject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.as_subject().dimensions() {
            map.serialize_entry(name, &ValueText(value).to_string())?;
        }
        map.end()
    }
}

impl Hash for Subject<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (name, value) in self.dimensions() {
            name.hash(state);
            match value {
                Value::Text(text) => (0_u8, text).hash(state),
                Value::Number(number) => (1_u8, number).hash(state),
                Value::Negative(number) => (2_u8, number).hash(state),
                Value::Address(address) => (3_u8, address.to_canonical()).hash(state),
            }
        }
    }
}

/// Shows the names of the dimensions, without the values.
impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.dimensions().map(|(name, _)| name);
        f.write_str("Subject")?;
        f.debug_list().entries(names).finish()
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => one == other,
            (Self::Negative(one), Self::Negative(other)) => one == other,
            (Self::Address(one), Self::Address(other)) => {
                one.to_canonical() == other.to_canonical()
            }
            _ => false,
        }
    }
}

impl Eq for Value<'_> {}

/// Shows a value. `Value` itself has no `Display`, so that no log shows one by accident.
pub(crate) struct ValueText<'a>(pub(crate) Value<'a>);

impl fmt::Display for ValueText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Text(text) => f.write_str(text),
            Value::Number(number) => number.fmt(f),
            Value::Negative(number) => number.fmt(f),
            Value::Address(address) => address.to_canonical().fmt(f),
        }
    }
}

/// Shows the kind of the value, without the value.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(…)",
            Self::Number(_) => "Number(…)",
            Self::Negative(_) => "Negative(…)",
            Self::Address(_) => "Address(…)",
        })
    }
}

macro_rules! value_from {
    ($($from:ty => |$value:ident| $into:expr;)*) => {$(
        impl<'a> From<$from> for Value<'a> {
            #[inline]
            fn from($value: $from) -> Self {
                $into
            }
        }
    )*};
}

value_from! {
    &'a str => |text| Self::Text(text);
    &'a String => |text| Self::Text(text);
    u8 => |number| Self::Number(u64::from(number));
    u16 => |number| Self::Number(u64::from(number));
    u32 => |number| Self::Number(u64::from(number));
    u64 => |number| Self::Number(number);
    usize => |number| Self::Number(number as u64);
    i32 => |number| Self::from(i64::from(number));
    i64 => |number| u64::try_from(number).map_or(Self::Negative(number), Self::Number);
    IpAddr => |address| Self::Address(address);
    Ipv4Addr => |address| Self::Address(IpAddr::V4(address));
    Ipv6Addr => |address| Self::Address(IpAddr::V6(address));
}

/// One unnamed dimension.
impl<'a, V: Into<Value<'a>>> From<V> for Subject<'a> {
    #[inline]
    fn from(value: V) -> Self {
        Self::from([("", value)])
    }
}

macro_rules! subject_from {
    ($($count:literal: $($name:ident)+, $($none:ident)*;)*) => {$(
        /// Unnamed dimensions, distinguished by their position.
        impl<'a, $($name: Into<Value<'a>>),+> From<($($name,)+)> for Subject<'a> {
            #[inline]
            fn from(values: ($($name,)+)) -> Self {
                #[expect(non_snake_case, reason = "one identifier is type and value")]
                let ($($name,)+) = values;
                Self {
                    dimensions: [
                        $(Some(Dimension { name: "", value: $name.into() }),)+
                        $($none,)*
                    ],
                }
            }
        }

        /// Named dimensions.
        impl<'a, V: Into<Value<'a>>> From<[(&'a str, V); $count]> for Subject<'a> {
            #[inline]
            fn from(dimensions: [(&'a str, V); $count]) -> Self {
                #[expect(non_snake_case, reason = "the same names as above")]
                let [$($name,)+] = dimensions;
                Self {
                    dimensions: [
                        $(Some(Dimension { name: $name.0, value: $name.1.into() }),)+
                        $($none,)*
                    ],
                }
            }
        }
    )*};
}

subject_from! {
    1: A, None None None;
    2: A B, None None;
    3: A B C, None;
    4: A B C D, ;
}

/// A quota under the name of its rule. Each subject has one count of it.
///
/// Rule, window and algorithm identify the counter; the amount and the position in a list do not. Limits
/// can change and rules can be reordered without losing a count.
///
/// ```
/// use tollgate::{Counter, Quota};
///
/// let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
/// assert_eq!(counter.to_string(), "secrets:1h");
/// # Ok::<(), tollgate::ValidationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    rule: Arc<str>,
    quota: Quota,
    id: u64,
}

impl Counter {
    const MAX_NAME: usize = 128;

    /// Returns a counter for `quota` under the rule's name: 1 to 128 visible ASCII characters without
    /// quotes and backslashes, because names go into headers.
    pub fn new(rule: &str, quota: Quota) -> Result<Self, ValidationError> {
        if !is_plain(rule, Self::MAX_NAME) {
            let shown: String = rule.chars().take(Self::MAX_NAME).collect();
            return Err(ValidationError::new(
                "rule name",
                shown.escape_debug(),
                "1 to 128 visible ASCII characters, without quotes and backslashes",
            ));
        }
        let (window, algorithm, buckets) = (quota.window(), quota.algorithm(), quota.buckets());
        let name = if quota.counts_nothing() {
            format!("{rule}\0{quota}")
        } else {
            format!("{rule}\0{window}\0{algorithm}\0{buckets}")
        };
        Ok(Self {
            rule: rule.into(),
            quota,
            id: name_hash(name.as_bytes()),
        })
    }

    /// Returns the rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns a hash of rule, window and algorithm, equal in all processes.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the part of the id that Redis stores. Two counters of one policy must differ in it.
    pub(crate) const fn short_id(&self) -> [u8; 5] {
        let id = self.id.to_le_bytes();
        [id[0], id[1], id[2], id[3], id[4]]
    }
}

/// Rule and window: `secrets:1h`; or `secrets:blocked`, where there is no window.
impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quota.counts_nothing() {
            return write!(f, "{}:{}", self.rule, self.quota);
        }
        write!(f, "{}:{}", self.rule, self.quota.window())
    }
}

/// Maximum length of the first part of a [policy name](policy_name).
pub(crate) const MAX_WHO: usize = 64;

/// Returns the policy name of a quota: `user:secrets:1h` (subject kind, rule, window), or
/// `user:secrets:blocked` without a window.
pub(crate) fn policy_name(who: &str, rule: &str, quota: &Quota) -> String {
    if quota.counts_nothing() {
        return format!("{who}:{rule}:{quota}");
    }
    format!("{who}:{rule}:{}", quota.window())
}

/// Returns whether a name can be used in a header, quoted or not: 1 to `longest` visible ASCII characters
/// without quotes and backslashes.
pub(crate) fn is_plain(name: &str, longest: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (1..=longest).contains(&name.len()) && name.bytes().all(plain)
}

/// Returns a hash that is equal on all machines: FNV-1a. Not keyed, because operators choose the names,
/// and the fingerprint of the subject is keyed.
fn name_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    // Mixed once more, so that names that differ only at the end differ in all bits.
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}
