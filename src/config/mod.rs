//! Policy files in TOML or JSON.
//!
//! A policy file sets limits for one installation, and changes them while the service runs, without
//! a new release. It has all settings of a [`Policy`](crate::policy::Policy) except closures:
//!
//! ```
//! use tollgate::config::Config;
//!
//! let config = Config::from_toml(r#"
//!     [global]
//!     authenticated = "1000/hour"
//!     anonymous = "100/hour"
//!
//!     [[endpoints]]
//!     route = "POST /login"
//!     name = "login"
//!     limit = "10/hour"
//!     per = ["ip"]
//!     count = "failure"
//! "#)?;
//! let limits = config.into_layer().build()?;
//! # let _ = limits;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`RateLimitLayer::from_file`](crate::RateLimitLayer::from_file) builds a layer from a file.
//!
//! # Example with all tables
//!
//! ```
//! # use tollgate::config::Source;
//! # let text = r#"
//! [defaults]
//! algorithm = "sliding-window"      # of quotas that name none
//! warn_at = 0.8
//! headers = "legacy"                # legacy | ietf | both | none
//! reset = "unix-seconds"            # or delta-seconds
//! on_store_failure = "local"        # local | allow | deny
//! local_share = 0.25                # of each limit, for one process while the store is unavailable
//!
//! [tiers]
//! default = "free"
//! free = 1
//! team = 5
//! [tiers.assign.user]
//! ada = "team"                      # replaces the tier of the token
//!
//! [global]
//! authenticated = "1000/hour"
//! anonymous = "100/hour"            # never scaled
//! preflight = "refund"              # or count; CORS preflights
//! preflight_quota = "600/minute"    # per client IP
//!
//! [categories.secrets]              # one counter for all endpoints of it
//! limit = "500/hour"
//! message = "You've made {used} requests in the past {window}. Try again in {retry_in}."
//! suggestion = "Team has five times as much."
//! stack = false                     # true: also counts endpoints with limits of their own
//!
//! [[endpoints]]
//! route = "GET /v1/secrets/{id}"
//! category = "secrets"
//!
//! [[endpoints]]
//! route = "POST /v1/export"
//! limit = [{ limit = 50, window = "1m", burst = 20, algorithm = "token-bucket" }, "200/hour"]
//! tiers = { team = [{ limit = 100, window = "1m", burst = 40, algorithm = "token-bucket" }, "unlimited"] }
//! cost = 5
//! global = false                    # the global rule does not count it as well
//!
//! [[endpoints]]
//! name = "login"                    # in policy strings; default: the route
//! route = "POST /login"
//! limit = "10/hour"
//! per = ["ip"]
//! scale = false
//! count = ["401", "5xx"]            # all | success | failure | statuses
//! on_store_failure = "deny"
//!
//! [[rules]]                         # count every request
//! name = "outbound"
//! per = []                          # the whole instance; ["tenant"], ["group", "user"], …
//! limit = ["60/minute", "1000/hour"]
//! algorithm = "sliding-buckets"
//! mode = "dry-run"                  # counts and logs, never denies
//!
//! [exempt]
//! roles = ["service"]
//! networks = ["10.0.0.0/8"]
//! routes = ["GET /health"]
//! subjects = { tenant = ["ourselves"] }
//!
//! [maintenance]
//! disabled_until = "2026-12-01T06:00:00Z"   # then limits apply again
//!
//! [identity]
//! failed_auth_quota = "60/minute"   # wrong credentials, per client IP
//! on_invalid_credentials = "anonymous"   # or reject, with a 401
//!
//! [identity.jwt]
//! algorithms = ["HS256"]
//! secret_env = "JWT_SECRET"         # or secret_file, public_key_file, jwks_file
//! user = "sub"
//! tier = "app_metadata.plan"
//! tenant = "tenant_id"
//!
//! [identity.ip]
//! trusted_proxies = ["127.0.0.1/32"]
//! header = "x-forwarded-for"
//! ipv6_prefix = 64
//! # "#;
//! # let variables = [("JWT_SECRET", "a secret of at least 32 characters")];
//! # if cfg!(feature = "jwt") {
//! # let config = Source::toml(text).variables(variables).read()?;
//! # config.into_layer().build()?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A limit is a text (`"500/hour"`, `"10/15m"`, `"50 per 10 seconds"`, `"unlimited"`,
//! `"blocked"`), a table, or a list of these. The file does not contain secrets: it
//! names the variables or files that do. Paths of key files are relative to the directory of the
//! file. The policy file and key files are regular files of at most 8 MiB each: pipes, sockets and
//! devices are rejected, because reading them can block. The [guide](crate::docs::configuration)
//! lists every key.
//!
//! # Environment variables
//!
//! Environment variables override settings of the file. The name is `TOLLGATE_` and the path of the
//! key in capitals, with two underscores between table and key.
//!
//! | variable | sets |
//! |---|---|
//! | `TOLLGATE_GLOBAL__AUTHENTICATED=2000/hour` | `global.authenticated` |
//! | `TOLLGATE_CATEGORIES__SECRETS__LIMIT=…` | `limit` of a category that the file has |
//! | `TOLLGATE_ENDPOINTS__LOGIN__LIMIT=…` | `limit` of the endpoint whose `name` is `login` |
//! | `TOLLGATE_ENDPOINTS__3__LIMIT=…` | `limit` of the fourth endpoint |
//! | `TOLLGATE_EXEMPT__NETWORKS=10.0.0.0/8,127.0.0.1` | a whole list |
//! | `TOLLGATE_RULES__OUTBOUND__LIMIT=["60/minute", "1000/hour"]` | a list, as TOML has it |
//!
//! A variable that names no setting is an error, so that a typing error does not remove a limit
//! silently. Exceptions are `TOLLGATE_CONFIG`, from which programs read the path of the file, and
//! the variables that Kubernetes sets for a service with the name `tollgate`.
//!
//! # Reload
//!
//! ```no_run
//! use tollgate::RateLimitLayer;
//!
//! let limits = RateLimitLayer::from_file("limits.toml")?;
//! limits.watch()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The layer then reloads the file when it changes. Replace the file by a rename, or swap a
//! symbolic link as a Kubernetes `ConfigMap` does: then it is loaded at once, and always complete.
//! A file that is written in place is loaded once it was unchanged for one second. Without a watch,
//! `limits.reload()` loads the file immediately.
//!
//! No count is lost, because counters are identified by the name of their rule, by window and by
//! algorithm. Raising a limit resets nothing, lowering it applies at once. A file with problems
//! changes nothing. It is logged (`rate_limit_policy_not_reloaded`), counted in
//! `tollgate_policy_reloads_total`, and described by
//! [`policy_status`](crate::RateLimitLayer::policy_status).
//!
//! A reload keeps settings that were made in code: headers, and identity sources that were added to
//! those of the file. Environment variables are those that the process was started with.
//!
//! # Errors
//!
//! All problems are reported together, with line and column, what is expected, and a suggestion:
//!
//! ```
//! # use tollgate::config::Source;
//! let text = "\
//! [[endpoints]]
//! route = \"POST /login\"
//! limit = \"10/houre\"
//! pre = [\"ip\"]
//! ";
//! let error = Source::toml(text).variables::<&str, &str>([]).read().unwrap_err();
//! assert_eq!(error.to_string(), "\
//! error: endpoints[0].limit: invalid quota window `houre`
//!  --> policy.toml:3:13
//!   |
//! 3 | limit = \"10/houre\"
//!   |             ^^^^^ expected second, minute, hour, day, week or month, or a number of them such as `15m`
//!   |
//!   = help: did you mean `hour`?
//!
//! error: endpoints[0].pre: unknown key `pre`
//!  --> policy.toml:4:1
//!   |
//! 4 | pre = [\"ip\"]
//!   | ^^^
//!   |
//!   = note: expected `route`, `name`, `category`, `global`, `limit`, `algorithm`, `per`, `scale`, \
//!     `tiers`, `count`, `cost`, `message`, `suggestion`, `on_store_failure`, `mode` or `quiet`
//!   = help: did you mean `per`?");
//! ```
//!
//! # Limitations
//!
//! An endpoint whose route no request matches, and a category without endpoints, are not errors. A
//! key that is unknown in this version can get a meaning in a later one.

mod check;
mod compile;
mod context;
mod environment;
mod error;
mod layer;
mod parsed;
mod problem;
mod read_file;
mod redact;
#[cfg(test)]
mod reference;
mod reload;
mod render;
mod report;
mod schema;
mod source;
mod suggest;
mod syntax;
mod table;
mod tree;
mod watch;

pub use self::error::ConfigError;
pub use self::parsed::Config;
pub use self::problem::ConfigProblem;
pub use self::schema::schema;
pub use self::source::Source;
