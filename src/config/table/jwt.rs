//! `[identity.jwt]`

use std::path::{Path, PathBuf};

use super::{PolicyReader, TableSpec, ValueKind, keys};
#[cfg(feature = "jwt")]
use super::{parse_duration, set_if};
use crate::config::tree::Setting;
#[cfg(feature = "jwt")]
use crate::identity::{Jwt, JwtAlgorithm, JwtBuilder, JwtKeys, KeySet};

const ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256",
    "ES384", "EdDSA",
];
const CLAIM: ValueKind = ValueKind::Text("the path of a claim such as `\"app_metadata.plan\"`");

pub(super) static JWT: TableSpec = TableSpec::new(keys! {
    /// Accepted algorithms.
    "algorithms": ValueKind::Choices(ALGORITHMS), aliases ["algorithm", "alg"];
    /// Environment variable with the shared secret.
    "secret_env": ValueKind::Text("the name of a variable such as `\"JWT_SECRET\"`");
    /// File with the shared secret. White space at its end is ignored.
    "secret_file": ValueKind::Text("the path of a file");
    /// File with the public key.
    "public_key_file": ValueKind::Text("the path of a PEM file");
    /// File with a JWK set.
    "jwks_file": ValueKind::Text("the path of a JSON file");
    /// Accepted values of `iss`. Default: any.
    "issuer": ValueKind::TextOrTexts("the name of an issuer"), aliases ["iss", "issuers"];
    /// Accepted values of `aud`. Default: any.
    "audience": ValueKind::TextOrTexts("the name of an audience"), aliases ["aud", "audiences"];
    /// Allowed difference between clocks. Set it to the leeway of the application.
    "leeway": ValueKind::Text("a length of time such as `\"30s\"`"), default "\"60s\"";
    /// Cookie with the token, instead of `Authorization: Bearer`.
    "cookie": ValueKind::Text("the name of a cookie");
    /// Claim with the user.
    "user": CLAIM, default "\"sub\"", aliases ["subject", "sub"];
    /// Claim with the tier.
    "tier": CLAIM, aliases ["plan"];
    /// Claim with the tenant.
    "tenant": CLAIM;
    /// Claim with the roles.
    "roles": CLAIM, aliases ["role"];
    /// More dimensions that rules can count per, each with its claim.
    "dimensions": ValueKind::Table(&DIMENSIONS);
    /// Number of verified tokens that are cached.
    "cache_capacity": ValueKind::Whole("a whole number such as `10000`"),
        default "10000";
    /// Largest token that is verified. A request with a larger one gets 401.
    "max_token_bytes": ValueKind::Whole("1 to 1048576 bytes"), default "16384";
})
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

#[cfg(all(test, feature = "jwt"))]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_those_of_the_model() {
        assert_eq!(ALGORITHMS, JwtAlgorithm::NAMES);
    }
}
