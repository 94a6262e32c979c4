//! `tollgate explain`: which limits count a request, and why.

mod json;

use std::net::SocketAddr;

use http::Request;
use tollgate::config::Config;
use tollgate::identity::{ClientIp, PeerAddr};
use tollgate::policy::Inquiry;
use tollgate::{Clock, Head, Identity, SystemClock};

use crate::args::{Explain, Format};
use crate::output::{Failure, Output, misused, say, say_json};
use crate::read;

pub(crate) fn run(args: &Explain, output: Output) -> Result<(), Failure> {
    let identity = identity(args)?;
    let config = read::read(&args.file, output)?;
    let inquiry = inquiry(args, identity, &config);
    let explanation = config.into_policy().explain(&inquiry);
    match output.format {
        Format::Json => say_json(&json::explanation(&args.file, &explanation)),
        Format::Text if output.colors_stdout() => say(&explanation.colored().to_string()),
        Format::Text => say(&explanation.to_string()),
    }
    Ok(())
}

fn inquiry(args: &Explain, identity: Option<Identity>, config: &Config) -> Inquiry {
    let now = || SystemClock::new().now();
    let mut inquiry = args.request.clone().at(args.at.unwrap_or_else(now));
    if let Some(identity) = identity {
        inquiry = inquiry.identity(identity);
    }
    let Some(ip) = args.ip else {
        return inquiry;
    };
    // As a layer would see a request that comes from there.
    let mut request = Request::new(());
    let peer = PeerAddr(SocketAddr::new(ip, 0));
    request.extensions_mut().insert(peer);
    let default = ClientIp::default();
    let client_ip = config.client_ip().unwrap_or(&default);
    match client_ip.locate(&Head::of(&request)) {
        // A proxy that does not tell its client is counted, but lends it no exemption.
        Some(address) if address.is_proxy() => inquiry.counted_as(address.group()),
        Some(address) => inquiry.ip(address.ip()).counted_as(address.group()),
        None => inquiry.ip(ip),
    }
}

/// Who asks, if somebody who is known.
fn identity(args: &Explain) -> Result<Option<Identity>, Failure> {
    let named = |name: &str, value: &String| (name.to_owned(), value.clone());
    let user = args.user.iter().map(|user| named(Identity::USER, user));
    let tenant = args
        .tenant
        .iter()
        .map(|tenant| named(Identity::TENANT, tenant));
    let others = args.dimension.iter().cloned();
    let mut dimensions: Vec<(String, String)> = user.chain(others).chain(tenant).collect();
    // Whoever has a user name is known by it.
    dimensions.sort_by_key(|(name, _)| name != Identity::USER);
    for (index, (name, _)) in dimensions.iter().enumerate() {
        if dimensions[..index].iter().any(|(other, _)| other == name) {
            return Err(misused(format!("`{name}` is said twice")));
        }
    }
    let mut dimensions = dimensions.into_iter();
    let Some((name, value)) = dimensions.next() else {
        return match (&args.tier, args.role.first()) {
            (None, None) => Ok(None),
            _ => Err(misused(
                "nobody is known to have that tier or role; say who, with --user, --tenant or \
                 --dimension",
            )),
        };
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
