//! The layer from outside: requests in, responses out.

mod answers;
mod changes;
mod counting;
mod credentials;
mod dropped;
mod dry_runs;
mod failing;
mod hostile;
mod preflight;
mod quiet_rules;
mod readiness;
mod routes;
mod routes_readings;
mod routes_rejected;
mod routes_rewritten;
mod routes_rules;
mod routes_trailing_slash;
mod several_credentials;
mod tiers;
mod token_without_user;

use crate::support::http::{Answer, echo, layer, request, send, send_from};
