//! `[identity.jwt]`

use std::path::{Path, PathBuf};
#[cfg(feature = "jwt")]
use std::time::Duration;

#[cfg(feature = "jwt")]
use super::set_if;
use super::{KeySpec, PolicyReader, TableSpec, ValueKind};
use crate::config::tree::Setting;
#[cfg(feature = "jwt")]
use crate::error::ValidationError;
#[cfg(feature = "jwt")]
use crate::identity::{Jwt, JwtAlgorithm, JwtBuilder, JwtKeys, KeySet};
#[cfg(feature = "jwt")]
use crate::quota::Window;

const ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "EdDSA",
];
const CLAIM: ValueKind = ValueKind::Text("the path of a claim such as `\"app_metadata.plan\"`");

pub(super) static JWT: TableSpec = TableSpec::new(&[
    KeySpec::new(
        "algorithms",
        ValueKind::Choices(ALGORITHMS),
        "Accepted algorithms.",
    )
    .aliases(&["algorithm", "alg"]),
    KeySpec::new(
        "secret_env",
        ValueKind::Text("the name of a variable such as `\"JWT_SECRET\"`"),
        "Environment variable with the shared secret.",
    ),
    KeySpec::new(
        "secret_file",
        ValueKind::Text("the path of a file"),
        "File with the shared secret. White space at its end is ignored.",
    ),
    KeySpec::new(
        "public_key_file",
        ValueKind::Text("the path of a PEM file"),
        "File with the public key.",
    ),
    KeySpec::new(
        "jwks_file",
        ValueKind::Text("the path of a JSON file"),
        "File with a JWK set.",
    ),
    KeySpec::new(
        "issuer",
        ValueKind::TextOrTexts("the name of an issuer"),
        "Accepted values of `iss`. Default: any.",
    )
    .aliases(&["iss", "issuers"]),
    KeySpec::new(
        "audience",
        ValueKind::TextOrTexts("the name of an audience"),
        "Accepted values of `aud`. Default: any.",
    )
    .aliases(&["aud", "audiences"]),
    KeySpec::new(
        "leeway",
        ValueKind::Text("a length of time such as `\"30s\"`"),
        "Allowed difference between clocks. Set it to the leeway of the application.",
    )
    .default("\"60s\""),
    KeySpec::new(
        "cookie",
        ValueKind::Text("the name of a cookie"),
        "Cookie with the token, instead of `Authorization: Bearer`.",
    ),
    KeySpec::new("user", CLAIM, "Claim with the user.")
        .default("\"sub\"")
        .aliases(&["subject", "sub"]),
    KeySpec::new("tier", CLAIM, "Claim with the tier.").aliases(&["plan"]),
    KeySpec::new("tenant", CLAIM, "Claim with the tenant."),
    KeySpec::new("roles", CLAIM, "Claim with the roles.").aliases(&["role"]),
    KeySpec::new(
        "dimensions",
        ValueKind::Table(&DIMENSIONS),
        "More dimensions that rules can count per, each with its claim.",
    ),
    KeySpec::new(
        "cache_capacity",
        ValueKind::Whole("a whole number such as `10000`"),
        "Number of verified tokens that are cached.",
    )
    .default("10000")
    .aliases(&["remember"]),
    KeySpec::new(
        "max_token_bytes",
        ValueKind::Whole("1 to 1048576 bytes"),
        "Largest token that is verified. A request with a larger one gets 401.",
    )
    .default("16384"),
])
.require(&["algorithms"]);

static DIMENSIONS: TableSpec =
    TableSpec::chosen("dimension", CLAIM, "Claim with the value of the dimension.");

/// Returns the files with keys. They may change while the policy does not.
pub(super) fn key_files(identity: Option<&Setting<'_>>, base: &Path) -> Vec<PathBuf> {
    let jwt = identity.and_then(|identity| identity.get("jwt"));
    let entries = jwt.iter().flat_map(Setting::entries);
    let files = entries.filter(|(key, _)| key.name.ends_with("_file"));
    files
        .filter_map(|(_, file)| Some(base.join(file.text()?)))
        .collect()
}

#[cfg(not(feature = "jwt"))]
impl PolicyReader<'_> {
    pub(super) fn report_missing_jwt(&mut self, table: &Setting<'_>) {
        use crate::config::problem::ConfigProblem;
        if self.context.with_keys {
            let problem = ConfigProblem::at(table, "this program cannot read tokens")
                .with_expected("a program that was built with the feature `jwt` of tollgate");
            self.report.push(problem);
        }
    }
}

#[cfg(feature = "jwt")]
impl PolicyReader<'_> {
    pub(super) fn jwt(&mut self, table: &Setting<'_>) -> Option<Jwt> {
        let algorithms = table.texts_of("algorithms").into_iter();
        let algorithms = algorithms.filter_map(|name| name.parse::<JwtAlgorithm>().ok());
        let mut builder = Jwt::builder().algorithms(algorithms);
        for issuer in table.texts_of("issuer") {
            builder = builder.issuer(issuer);
        }
        for audience in table.texts_of("audience") {
            builder = builder.audience(audience);
        }
        builder = set_if(builder, table.text_of("cookie"), JwtBuilder::cookie);
        builder = set_if(builder, table.text_of("user"), JwtBuilder::user);
        builder = set_if(builder, table.text_of("tier"), JwtBuilder::tier);
        builder = set_if(builder, table.text_of("tenant"), JwtBuilder::tenant);
        builder = set_if(builder, table.text_of("roles"), JwtBuilder::roles);
        let dimensions = table.get("dimensions");
        for (name, claim) in dimensions.iter().flat_map(Setting::entries) {
            let claim = claim.text();
            builder = set_if(builder, claim, |jwt, claim| {
                jwt.dimension(&name.name, claim)
            });
        }
        let size = |key| {
            let size = table.get(key).and_then(|value| value.whole());
            size.map(|size| usize::try_from(size).unwrap_or(usize::MAX))
        };
        builder = set_if(builder, size("cache_capacity"), JwtBuilder::cache_capacity);
        builder = set_if(
            builder,
            size("max_token_bytes"),
            JwtBuilder::max_token_bytes,
        );
        let leeway = table
            .get("leeway")
            .and_then(|value| self.report.check(&value, parse_duration(value.text()?)));
        builder = set_if(builder, leeway, JwtBuilder::leeway);
        // The other settings are checked even if the keys cannot be read. Problems of the keys are
        // added last: one at the table as a whole would hide those of its settings.
        let keys = self.jwt_keys(table);
        let (keys, problems) = match keys {
            Ok(keys) => (keys, None),
            Err(problems) => (JwtKeys::none(), Some(problems)),
        };
        let jwt = builder.key_set(&KeySet::new(keys)).build();
        let jwt = self.report.check_all(table, jwt);
        match problems {
            None => jwt,
            Some(problems) => {
                self.report.extend(problems);
                None
            }
        }
    }
}

#[cfg(feature = "jwt")]
fn parse_duration(text: &str) -> Result<Duration, ValidationError> {
    if matches!(text.trim(), "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    let window: Result<Window, ValidationError> = text.parse();
    window
        .map(Window::duration)
        .map_err(|_| ValidationError::new("length of time", text, "such as `30s` or `2 minutes`"))
}

#[cfg(all(test, feature = "jwt"))]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_one_of_the_model() {
        for name in ALGORITHMS {
            assert_eq!(name.parse::<JwtAlgorithm>().unwrap().as_str(), *name);
        }
    }
}
