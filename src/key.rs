//! Whose counter: [`Subject`], and which one: [`Counter`].

use std::fmt;
use std::hash::Hasher as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use crate::error::Invalid;
use crate::quota::Quota;

/// The most dimensions that a subject can have.
pub const MAX_DIMENSIONS: usize = 4;

/// Whose counters are meant: one or more named dimensions, such as a user, or a user in a
/// group. No dimension at all means the whole instance.
///
/// Strings, numbers and addresses are subjects as they are:
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
/// It is borrowed and lives on the stack; stores keep a fingerprint of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    dimensions: [Dimension<'a>; MAX_DIMENSIONS],
    len: u8,
}

/// One dimension of a [`Subject`]: a name and a value.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Dimension<'a> {
    name: &'a str,
    value: Value<'a>,
}

/// A value of one dimension: text, a number or an address.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Text, taken byte by byte.
    Text(&'a str),
    /// A number.
    Number(u64),
    /// An address. One mapped into IPv6 is the same as its IPv4 form.
    Address(IpAddr),
}

impl Default for Value<'_> {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl<'a> Subject<'a> {
    /// The whole instance: everybody shares the counter.
    #[must_use]
    pub fn all() -> Self {
        Self {
            dimensions: [Dimension::default(); MAX_DIMENSIONS],
            len: 0,
        }
    }

    /// A subject of up to [`MAX_DIMENSIONS`] named dimensions.
    pub fn from_dimensions(dimensions: &[(&'a str, Value<'a>)]) -> Result<Self, Invalid> {
        let mut subject = Self::all();
        for (name, value) in dimensions {
            let Some(free) = subject.dimensions.get_mut(usize::from(subject.len)) else {
                return Err(Invalid::new(
                    "subject dimensions",
                    dimensions.len(),
                    format!("at most {MAX_DIMENSIONS}"),
                ));
            };
            *free = Dimension {
                name,
                value: *value,
            };
            subject.len += 1;
        }
        Ok(subject)
    }

    /// The names and values of its dimensions.
    pub fn dimensions(&self) -> impl ExactSizeIterator<Item = (&'a str, Value<'a>)> {
        let used = self.dimensions.iter().take(usize::from(self.len));
        used.map(|dimension| (dimension.name, dimension.value))
    }

    /// Feeds everything that tells this subject from others into `sink`, each dimension with
    /// its lengths first. The bytes are the same on every machine and in every version.
    pub fn encode(&self, mut sink: impl FnMut(&[u8])) {
        for dimension in self.dimensions.iter().take(usize::from(self.len)) {
            dimension.encode(&mut sink);
        }
    }

    fn push(&mut self, name: &'a str, value: Value<'a>) {
        // The callers are fixed-size conversions, none larger than the array.
        self.dimensions[usize::from(self.len)] = Dimension { name, value };
        self.len += 1;
    }
}

impl Dimension<'_> {
    #[inline]
    fn encode(&self, sink: &mut impl FnMut(&[u8])) {
        const TEXT: u8 = 1;
        const NUMBER: u8 = 2;
        const V4: u8 = 4;
        const V6: u8 = 6;
        // Kind, length of the name and length of the value come first and have a fixed size.
        let mut head = |kind: u8, value: usize| {
            let mut lengths = [0; 13];
            lengths[0] = kind;
            lengths[1..5].copy_from_slice(&length(self.name.len()).to_le_bytes());
            lengths[5..13].copy_from_slice(&(value as u64).to_le_bytes());
            sink(&lengths);
            sink(self.name.as_bytes());
        };
        match self.value {
            Value::Text(text) => {
                head(TEXT, text.len());
                sink(text.as_bytes());
            }
            Value::Number(number) => {
                head(NUMBER, 8);
                sink(&number.to_le_bytes());
            }
            Value::Address(address) => match address.to_canonical() {
                IpAddr::V4(v4) => {
                    head(V4, 4);
                    sink(&v4.octets());
                }
                IpAddr::V6(v6) => {
                    head(V6, 16);
                    sink(&v6.octets());
                }
            },
        }
    }
}

fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Shows which dimensions there are, and not whose they are.
impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.dimensions().map(|(name, _)| name);
        f.write_str("Subject")?;
        f.debug_list().entries(names).finish()
    }
}

/// Shows what kind of value it is, and not which.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(…)",
            Self::Number(_) => "Number(…)",
            Self::Address(_) => "Address(…)",
        })
    }
}

macro_rules! value_from {
    ($($from:ty => |$value:ident| $into:expr;)*) => {$(
        impl<'a> From<$from> for Value<'a> {
            fn from($value: $from) -> Self {
                $into
            }
        }
    )*};
}

value_from! {
    &'a str => |text| Self::Text(text);
    &'a String => |text| Self::Text(text);
    u32 => |number| Self::Number(u64::from(number));
    u64 => |number| Self::Number(number);
    IpAddr => |address| Self::Address(address);
    Ipv4Addr => |address| Self::Address(IpAddr::V4(address));
    Ipv6Addr => |address| Self::Address(IpAddr::V6(address));
}

/// One unnamed dimension.
impl<'a, V: Into<Value<'a>>> From<V> for Subject<'a> {
    fn from(value: V) -> Self {
        let mut subject = Self::all();
        subject.push("", value.into());
        subject
    }
}

macro_rules! subject_from {
    ($(($($name:ident),+) $count:literal;)*) => {$(
        /// Unnamed dimensions, told apart by their place.
        impl<'a, $($name: Into<Value<'a>>),+> From<($($name,)+)> for Subject<'a> {
            fn from(values: ($($name,)+)) -> Self {
                #[expect(non_snake_case, reason = "one name serves for type and value")]
                let ($($name,)+) = values;
                let mut subject = Self::all();
                $(subject.push("", $name.into());)+
                subject
            }
        }

        /// Named dimensions.
        impl<'a, V: Into<Value<'a>>> From<[(&'a str, V); $count]> for Subject<'a> {
            fn from(dimensions: [(&'a str, V); $count]) -> Self {
                let mut subject = Self::all();
                for (name, value) in dimensions {
                    subject.push(name, value.into());
                }
                subject
            }
        }
    )*};
}

subject_from! {
    (A) 1;
    (A, B) 2;
    (A, B, C) 3;
    (A, B, C, D) 4;
}

/// A quota under the name of its rule: what is counted per subject.
///
/// The counter of a subject is found by rule, window and algorithm, not by the amount and not
/// by its place in a list: a limit can change, and rules can be reordered, without losing a
/// count.
///
/// ```
/// use tollgate::{Counter, Quota};
///
/// let counter = Counter::new("secrets", Quota::per_hour(500)?)?;
/// assert_eq!(counter.to_string(), "secrets:1h");
/// # Ok::<(), tollgate::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    rule: Arc<str>,
    quota: Quota,
    id: u64,
}

impl Counter {
    const MAX_NAME: usize = 128;

    /// A counter for `quota` under the rule's name: 1 to 128 visible ASCII characters without
    /// quotes and backslashes, because names go into headers.
    pub fn new(rule: &str, quota: Quota) -> Result<Self, Invalid> {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if rule.is_empty() || rule.len() > Self::MAX_NAME || !rule.bytes().all(plain) {
            let shown: String = rule.chars().take(Self::MAX_NAME).collect();
            return Err(Invalid::new(
                "rule name",
                shown.escape_debug(),
                "1 to 128 visible ASCII characters, without quotes and backslashes",
            ));
        }
        // Not keyed: names are the operator's, and the same on every machine.
        let mut hasher = SipHasher13::new();
        hasher.write(rule.as_bytes());
        hasher.write(&[0]);
        hasher.write_u64(quota.window_micros());
        hasher.write(quota.window().to_string().as_bytes());
        hasher.write(quota.algorithm().name().as_bytes());
        hasher.write_u32(quota.buckets());
        Ok(Self {
            rule: rule.into(),
            quota,
            id: hasher.finish(),
        })
    }

    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// A number that is the same wherever rule, window and algorithm are, and nowhere else.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }
}

/// Rule and window: `secrets:1h`.
impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rule, self.quota.window())
    }
}
