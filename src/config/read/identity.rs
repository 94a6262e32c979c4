//! How callers are known.

use std::path::{Path, PathBuf};

use super::rule::text;
use super::{PolicyReader, choice};
use crate::config::problem::ProblemReport;
use crate::config::tree::Setting;
use crate::error::ValidationError;
use crate::identity::{Chain, ClientIp, ForwardedHeader, UserIdHeader};
use crate::pipeline::{LayerOverrides, OnInvalid};

impl PolicyReader<'_> {
    /// All but the headers of responses.
    pub(super) fn around(&mut self, root: &Setting<'_>) -> LayerOverrides {
        let Some(identity) = root.get("identity") else {
            return LayerOverrides::default();
        };
        let mut chain = Chain::new();
        #[cfg(feature = "jwt")]
        if let Some(jwt) = identity.get("jwt").and_then(|jwt| self.jwt(&jwt)) {
            chain = chain.then(jwt);
        }
        #[cfg(not(feature = "jwt"))]
        if let Some(jwt) = identity.get("jwt") {
            without_jwt(&jwt, self);
        }
        let header = identity.get("trusted_user_header").and_then(|setting| {
            let name = setting.text()?;
            self.report.note(&setting, UserIdHeader::trusted(name))
        });
        if let Some(header) = header {
            chain = chain.then(header);
        }
        let failed_auth = identity.get("failed_auth_quota");
        LayerOverrides {
            chain,
            client_ip: identity
                .get("ip")
                .and_then(|ip| client_ip(&ip, self.report)),
            failed_auth_quota: failed_auth.and_then(|quota| self.quota(&quota, self.algorithm)),
            on_invalid: match text(&identity, "on_invalid") {
                Some("reject") => Some(OnInvalid::Reject),
                Some("anonymous") => Some(OnInvalid::Anonymous),
                _ => None,
            },
            style: None,
        }
    }
}

/// The files with keys that a policy names. They may change while the policy does not.
pub(super) fn key_files(root: &Setting<'_>, base: &Path) -> Vec<PathBuf> {
    let identity = root.get("identity");
    let jwt = identity.and_then(|identity| identity.get("jwt"));
    let entries = jwt.iter().flat_map(Setting::entries);
    let files = entries.filter(|(key, _)| key.name.ends_with("_file"));
    files
        .filter_map(|(_, file)| Some(base.join(file.text()?)))
        .collect()
}

#[cfg(not(feature = "jwt"))]
fn without_jwt(setting: &Setting<'_>, reader: &mut PolicyReader<'_>) {
    use crate::config::problem::{ConfigProblem, Told};
    if !reader.context.with_keys {
        return;
    }
    reader.report.push(ConfigProblem::new(Told {
        path: setting.path.clone(),
        message: "this program cannot read tokens".to_owned(),
        expected: Some("a program that was built with the feature `jwt` of tollgate".to_owned()),
        span: Some(setting.node.span.clone()),
        ..Told::default()
    }));
}

fn client_ip(setting: &Setting<'_>, report: &mut ProblemReport) -> Option<ClientIp> {
    let mut builder = ClientIp::builder();
    let mut is_fine = true;
    let proxies = setting.get("trusted_proxies");
    for proxy in proxies.iter().flat_map(Setting::items) {
        let Some(network) = proxy.text() else {
            continue;
        };
        // One at a time, to know which one is wrong.
        let alone = ClientIp::builder().trusted_proxies([network]).build();
        is_fine &= report.note(&proxy, alone).is_some();
        builder = builder.trusted_proxies([network]);
    }
    let prefixes = setting.get("nat64_prefixes");
    for prefix in prefixes.iter().flat_map(Setting::items) {
        let Some(text) = prefix.text() else {
            continue;
        };
        let alone = ClientIp::builder().nat64_prefixes([text]).build();
        is_fine &= report.note(&prefix, alone).is_some();
        builder = builder.nat64_prefixes([text]);
    }
    if let Some(header) = choice::<ForwardedHeader>(setting, "header") {
        builder = builder.header(header);
    }
    if let Some(prefix) = setting.get("ipv6_prefix")
        && let Some(bits) = prefix.whole()
    {
        let fits = u8::try_from(bits)
            .ok()
            .filter(|bits| (1..=128).contains(bits));
        let fits = fits.ok_or_else(|| ValidationError::new("IPv6 prefix", bits, "1 to 128 bits"));
        match report.note(&prefix, fits) {
            Some(bits) => builder = builder.ipv6_prefix(bits),
            None => is_fine = false,
        }
    }
    let built = is_fine.then(|| builder.build())?;
    report.note(setting, built)
}
