//! `tollgate explain`: prints which limits count a request, and why.

use std::net::SocketAddr;

use http::Request;
use serde_json::json;
use tollgate::config::Config;
use tollgate::identity::{ClientIp, PeerAddr};
use tollgate::policy::ExplainRequest;
use tollgate::{Clock, Identity, RequestHead, SystemClock};

use crate::args::{ExplainArgs, Format};
use crate::output::{Failure, Output, usage_error, write_json, write_stdout};
use crate::policy_file;

pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<(), Failure> {
    let identity = identity(args)?;
    let config = policy_file::read(&args.file, output)?;
    let explain_request = explain_request(args, identity, &config);
    let explanation = config.into_policy().explain(&explain_request);
    match output.format {
        Format::Json => {
            let mut report = json!(explanation);
            report["file"] = json!(args.file.display().to_string());
            report["ok"] = json!(true);
            write_json(&report);
        }
        Format::Text if output.has_colored_stdout() => {
            write_stdout(&explanation.colored().to_string());
        }
        Format::Text => write_stdout(&explanation.to_string()),
    }
    Ok(())
}

fn explain_request(
    args: &ExplainArgs,
    identity: Option<Identity>,
    config: &Config,
) -> ExplainRequest {
    let now = || SystemClock::new().now();
    let mut explain_request = args.request.clone().at(args.at.unwrap_or_else(now));
    if let Some(identity) = identity {
        explain_request = explain_request.identity(identity);
    }
    let Some(ip) = args.ip else {
        return explain_request;
    };
    // The client IP is resolved as the layer does it, with the trusted proxies of the file.
    let mut request = Request::new(());
    let peer = PeerAddr(SocketAddr::new(ip, 0));
    request.extensions_mut().insert(peer);
    let default = ClientIp::default();
    let client_ip = config.client_ip().unwrap_or(&default);
    match client_ip.locate(&RequestHead::of(&request)) {
        // A request of a trusted proxy without a forwarded address is counted by the address of
        // the proxy, but an exempt network does not exempt it.
        Some(address) if address.is_proxy() => explain_request.counted_as(address.group()),
        Some(address) => explain_request.ip(address.ip()).counted_as(address.group()),
        None => explain_request.ip(ip),
    }
}

/// Returns the identity that the arguments describe, or `None` for an unauthenticated caller.
fn identity(args: &ExplainArgs) -> Result<Option<Identity>, Failure> {
    let named = |name: &str, value: &String| (name.to_owned(), value.clone());
    let user = args.user.iter().map(|user| named(Identity::USER, user));
    let tenant = args
        .tenant
        .iter()
        .map(|tenant| named(Identity::TENANT, tenant));
    let others = args.dimension.iter().cloned();
    let mut dimensions: Vec<(String, String)> = user.chain(others).chain(tenant).collect();
    // The first dimension names the caller. That is the user if there is one.
    dimensions.sort_by_key(|(name, _)| name != Identity::USER);
    for (index, (name, value)) in dimensions.iter().enumerate() {
        let same = |(other, _): &&(String, String)| other == name;
        if let Some((_, first)) = dimensions[..index].iter().find(same) {
            let message = format!("dimension `{name}` is both `{first}` and `{value}`");
            return Err(usage_error(message + ": expected one value"));
        }
    }
    let mut dimensions = dimensions.into_iter();
    let Some((name, value)) = dimensions.next() else {
        if args.tier.is_none() && args.role.is_empty() {
            return Ok(None);
        }
        return Err(usage_error(
            "--tier and --role need an identity: expected --user, --tenant or --dimension",
        ));
    };
    let mut identity = Identity::new(name, value);
    for (name, value) in dimensions {
        identity = identity.with(name, value);
    }
    if let Some(tier) = &args.tier {
        identity = identity.tier(tier);
    }
    for role in &args.role {
        identity = identity.role(role);
    }
    Ok(Some(identity))
}
