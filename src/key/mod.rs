//! Keys of counters: [`Subject`] and [`Counter`].

mod counter;
mod owned;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use self::counter::Counter;
pub(crate) use self::counter::{MAX_LABEL, UNNAMED_LABEL, is_plain, plain_label, policy_name};
pub use self::owned::OwnedSubject;
use crate::error::ValidationError;

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
/// // One pair is a list of one pair. Values of several types are pairs in a tuple.
/// assert_eq!(Subject::from(("user", "alice")), Subject::from([("user", "alice")]));
/// let member = Subject::from((("group", 17), ("user", "alice")));
///
/// // Dimensions are kept apart by name and by length, never by a separator.
/// assert_ne!(Subject::from(("a:b", "c")), Subject::from(("a", "b:c")));
/// assert_ne!(Subject::from([("user", "1.2.3.4")]), Subject::from([("ip", "1.2.3.4")]));
/// ```
///
/// Two values without names do not compile: `limiter.check((group, user))` would count another subject
/// than a policy rule per group and user.
///
/// ```compile_fail
/// # use tollgate::Subject;
/// fn member<'a>(group: &'a str, user: &'a str) -> Subject<'a> {
///     Subject::from((group, user))
/// }
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
        for (slot, (name, value)) in subject.dimensions.iter_mut().zip(dimensions) {
            *slot = Some(Dimension {
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

    #[cfg(feature = "admin")]
    pub(crate) fn has_dimension(&self, name: &str) -> bool {
        self.known().any(|dimension| dimension.name == name)
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

/// One named dimension, equal to a list of one pair. The name is fixed in the program, so that
/// `(group, user)`, two values of a request, does not compile.
impl<'a, V: Into<Value<'a>>> From<(&'static str, V)> for Subject<'a> {
    #[inline]
    fn from((name, value): (&'static str, V)) -> Self {
        Self::named((name, value.into()))
    }
}

macro_rules! subject_from_array {
    ($($count:literal: $($name:ident)+, $($none:ident)*;)*) => {$(
        /// Named dimensions.
        impl<'a, V: Into<Value<'a>>> From<[(&'a str, V); $count]> for Subject<'a> {
            #[inline]
            fn from(dimensions: [(&'a str, V); $count]) -> Self {
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

subject_from_array! {
    1: a, None None None;
    2: a b, None None;
    3: a b c, None;
    4: a b c d, ;
}

macro_rules! subject_from_pairs {
    ($($($name:ident: $value:ident)+, $($none:ident)*;)*) => {$(
        /// Named dimensions with values of several types.
        impl<'a, $($value: Into<Value<'a>>),+> From<($((&'static str, $value),)+)> for Subject<'a> {
            #[inline]
            fn from(($($name,)+): ($((&'static str, $value),)+)) -> Self {
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

subject_from_pairs! {
    a: A b: B, None None;
    a: A b: B c: C, None;
    a: A b: B c: C d: D, ;
}
