//! `[identity]`

use super::ip::IP;
use super::jwt::JWT;
use super::{PolicyReader, TableSpec, ValueKind, keys};
use crate::config::tree::Setting;
use crate::identity::{Chain, OnInvalidCredentials, UserIdHeader};
use crate::pipeline::LayerOverrides;

pub(super) static IDENTITY: TableSpec = TableSpec::new(keys! {
    /// Callers identified by a JSON Web Token.
    "jwt": ValueKind::Table(&JWT), aliases ["token", "bearer"];
    /// How the client IP is found.
    "ip": ValueKind::Table(&IP), aliases ["client_ip"];
    /// Header that names the user. A client that can send it can choose any user: use it only
    /// behind a gateway that sets it.
    "trusted_user_header": ValueKind::Text("the name of a header such as `\"x-user-id\"`"),
        aliases ["user_header"];
    /// Requests with wrong credentials that one client IP may send. Further wrong ones get 429;
    /// valid ones are not affected.
    "failed_auth_quota": ValueKind::Quota, default "\"60/minute\"", aliases ["invalid_credentials"];
    /// Whether callers with wrong credentials are unauthenticated, or get 401.
    "on_invalid_credentials": ValueKind::Choice(OnInvalidCredentials::NAMES),
        default "\"anonymous\"", aliases ["on_invalid"];
});

impl PolicyReader<'_> {
    /// Reads the identity sources.
    pub(super) fn identity(&mut self, table: &Setting<'_>) -> LayerOverrides {
        let mut chain = Chain::new();
        #[cfg(feature = "jwt")]
        if let Some(jwt) = table.get("jwt").and_then(|jwt| self.jwt(&jwt)) {
            chain = chain.then(jwt);
        }
        #[cfg(not(feature = "jwt"))]
        if let Some(jwt) = table.get("jwt") {
            self.report_missing_jwt(&jwt);
        }
        let header = table.get("trusted_user_header").and_then(|value| {
            let header = UserIdHeader::trusted(value.text()?);
            self.report.check(&value, header)
        });
        if let Some(header) = header {
            chain = chain.then(header);
        }
        let quota = table.get("failed_auth_quota");
        LayerOverrides {
            chain,
            client_ip: table.get("ip").and_then(|ip| self.client_ip(&ip)),
            failed_auth_quota: quota.and_then(|quota| self.quota(&quota, self.algorithm)),
            on_invalid_credentials: table.parse("on_invalid_credentials"),
            ..LayerOverrides::default()
        }
    }
}
