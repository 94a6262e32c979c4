//! The limits of the API, endpoint by endpoint.

/// One endpoint.
pub(super) struct Row {
    pub(super) endpoint: &'static str,
    /// Name of the rule that counts it.
    pub(super) rule: &'static str,
    pub(super) per: Per,
    /// An hour, for the tiers in [`TIERS`].
    pub(super) limits: [u64; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Ip,
    User,
}

pub(super) const TIERS: [&str; 3] = ["free", "team", "enterprise"];

/// One limit for all tiers.
const fn same(limit: u64) -> [u64; 3] {
    [limit; 3]
}

/// A limit of the free tier; 5 and 10 times as much for the others.
const fn times(limit: u64) -> [u64; 3] {
    [limit, 5 * limit, 10 * limit]
}

const fn row(endpoint: &'static str, limits: [u64; 3], per: Per, rule: &'static str) -> Row {
    Row {
        endpoint,
        rule,
        per,
        limits,
    }
}

use Per::{Ip, User};

#[rustfmt::skip]
pub(super) const ROWS: [Row; 36] = [
    // 1: public
    row("GET /health",                      same(100),           Ip,   "health"),
    row("GET /v1/api-service-info",         same(100),           Ip,   "api-service-info"),
    row("POST /auth/v1/signup",             same(10),            Ip,   "signup"),
    row("POST /auth/v1/recover",            same(3),             Ip,   "recover"),
    // 2: authentication; the first is in both tables, per IP for unauthenticated callers
    row("POST /auth/v1/token",              same(10),            User, "login"),
    row("POST /auth/v1/refresh",            same(60),            User, "refresh"),
    row("POST /auth/v1/logout",             same(60),            User, "logout"),
    row("PUT /auth/v1/user",                same(10),            User, "profile"),
    row("POST /auth/v1/mfa/enroll",         same(5),             User, "mfa-enroll"),
    row("POST /auth/v1/mfa/verify",         same(20),            User, "mfa-verify"),
    // 3: secrets
    row("GET /v1/secrets",                  times(500),          User, "secrets"),
    row("GET /v1/secrets/:id",              times(500),          User, "secrets"),
    row("POST /v1/secrets",                 times(100),          User, "secrets-create"),
    row("PUT /v1/secrets/:id",              times(100),          User, "secrets-update"),
    row("DELETE /v1/secrets/:id",           times(100),          User, "secrets-delete"),
    row("POST /v1/secrets/:id/rotate",      times(20),           User, "secrets-rotate"),
    row("GET /v1/projects/:id/secrets",     times(500),          User, "secrets"),
    // 4: projects
    row("GET /v1/projects",                 times(1000),         User, "global"),
    row("GET /v1/projects/:id",             times(1000),         User, "global"),
    row("POST /v1/projects",                times(50),           User, "projects-create"),
    row("PUT /v1/projects/:id",             times(100),          User, "projects-update"),
    row("DELETE /v1/projects/:id",          times(10),           User, "projects-delete"),
    row("POST /v1/projects/:id/members",    times(50),           User, "projects-invite"),
    // 5: MCP, with numbers of its own for each tier
    row("POST /v1/mcp/secrets/list",        [200, 1000, 10_000], User, "mcp-list"),
    row("POST /v1/mcp/secrets/get",         [200, 1000, 10_000], User, "mcp-get"),
    row("POST /v1/mcp/secrets/request",     [50, 200, 1000],     User, "mcp-request"),
    row("POST /v1/mcp/secrets/search",      [200, 1000, 10_000], User, "mcp-search"),
    row("POST /v1/mcp/approvals",           [100, 500, 5000],    User, "mcp-approvals"),
    // 6: AI assistant
    row("POST /v1/ai/chat",                 times(100),          User, "ai-chat"),
    row("POST /v1/ai/research",             times(10),           User, "ai-research"),
    row("GET /v1/ai/conversations",         times(100),          User, "ai-conversations"),
    row("DELETE /v1/ai/conversations/:id",  times(20),           User, "ai-conversations-delete"),
    // 7: audit and compliance
    row("GET /v1/audit-logs",               times(100),          User, "audit-logs"),
    row("POST /v1/compliance/reports",      times(5),            User, "compliance-reports"),
    row("GET /v1/compliance/exports",       times(10),           User, "compliance-exports"),
    // and what is in none of them
    row("GET /nowhere",                     times(1000),         User, "global"),
];

impl Row {
    /// Request line, with `id` for every parameter.
    pub(super) fn line(&self, id: &str) -> String {
        self.endpoint.replace(":id", id)
    }

    /// Expected status.
    pub(super) fn status(&self) -> u16 {
        if self.endpoint.ends_with("/nowhere") {
            404
        } else {
            200
        }
    }
}
