//! Text form of enums: [`named!`](named).

/// Implements `name` and `Display` for an enum without fields.
///
/// With the name of a field, implements `FromStr` as well, whose errors name this field and list all
/// names. Conversions such as `trim` are applied to the text before it is compared.
macro_rules! named {
    ($type:ident { $($variant:ident => $name:literal,)+ }) => {
        impl $type {
            /// Returns the name in policy files, JSON, events and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
    ($type:ident, $field:literal$(, $clean:ident)* { $($variant:ident => $name:literal,)+ }) => {
        $crate::error::named!($type { $($variant => $name,)+ });

        impl $type {
            pub(crate) const NAMES: &'static [&'static str] = &[$($name),+];

            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::error::ValidationError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::from_name(&text$(.$clean())*)
                    .ok_or_else(|| $crate::error::unknown_name($field, text, Self::NAMES))
            }
        }
    };
}
pub(crate) use named;

use super::ValidationError;

/// Returns the error for a text that is none of these names.
pub(crate) fn unknown_name(field: &'static str, text: &str, names: &[&str]) -> ValidationError {
    let expected = match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        names => names.concat(),
    };
    ValidationError::new(field, text, expected)
}
