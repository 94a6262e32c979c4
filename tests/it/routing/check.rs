//! Sends a request, and compares which handler ran with what was charged.

use axum::body::Body;
use axum::http::{HeaderMap, Request, Uri};
use tower::ServiceExt;

use super::build::Service;
use super::paths::{Sent, is_plain};
use super::pattern::{hides, is_more_literal, shape};
use super::readings::{Table, can_match, readings};
use super::tree::{App, Handler, Position, Route, Server, Slash, Target, covers};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Not a URI.
    Invalid,
    /// 400 or 414.
    Rejected,
    /// No handler ran: 404 or 405.
    NoHandler,
    /// The handler does not lie behind the layer.
    Uncovered,
    /// All rules of the handler were charged.
    Charged,
    Exempt,
    /// The limit that [`hides`] describes.
    Hidden,
    /// A handler ran without its rule, in the way that [`Boundary::shifts`] describes.
    ///
    /// [`Boundary::shifts`]: super::pattern::Boundary::shifts
    Shifted,
}

/// Returns what became of the request, or what is wrong.
pub(super) async fn check(
    app: &App,
    service: &Service,
    sent: &Sent,
) -> Result<(Outcome, bool), String> {
    let Ok(uri) = sent.uri.parse::<Uri>() else {
        return Ok((Outcome::Invalid, false));
    };
    let plain = is_plain(uri.path());
    let request = Request::builder()
        .method(sent.method)
        .uri(uri.clone())
        .body(Body::empty())
        .unwrap();
    let Ok(response) = service.clone().oneshot(request).await;
    let (status, headers) = (response.status(), response.headers());
    let answer = Answer::read(headers);
    let outcome = match answer.ran {
        None if status == 400 || status == 414 => {
            if plain {
                return Err(format!("a plain path is rejected with {status}"));
            }
            Outcome::Rejected
        }
        None if status == 404 || status == 405 => Outcome::NoHandler,
        None => return Err(format!("no handler ran, and the status is {status}")),
        Some(_) if status != 200 => {
            return Err(format!("a handler ran, but the status is {status}"));
        }
        Some(id) => {
            let handler = &app.handlers[id];
            match compare(app, handler, &answer, sent.method, uri.path()) {
                Ok(outcome) => outcome,
                Err(_) if is_shifted(handler, uri.path()) => Outcome::Shifted,
                Err(problem) => {
                    let charged = &answer.charged;
                    return Err(format!("h{id} ran; {problem}; charged: {charged:?}"));
                }
            }
        }
    };
    Ok((outcome, !plain))
}

/// The headers of a response, parsed.
struct Answer<'a> {
    ran: Option<usize>,
    limited: usize,
    matched: Option<&'a str>,
    /// The names of all rules that were charged.
    charged: Vec<&'a str>,
}

impl<'a> Answer<'a> {
    fn read(headers: &'a HeaderMap) -> Self {
        let text = |name: &str| Some(headers.get(name)?.to_str().unwrap());
        // "ip:r3:1h";q=1000000;w=3600, "ip:global:1h";q=1000000;w=3600
        let policies = text("ratelimit-policy").unwrap_or_default();
        let quoted = policies.split('"').skip(1).step_by(2);
        Self {
            ran: text("x-ran").map(|id| id.parse().unwrap()),
            limited: headers.get_all("x-limited").iter().count(),
            matched: text("x-matched-path"),
            charged: quoted.map(|name| name.split(':').nth(1).unwrap()).collect(),
        }
    }

    /// Whether the layer gets the matched pattern from the router.
    fn is_decided(&self) -> bool {
        self.matched.is_some_and(|pattern| !pattern.contains("{*"))
    }
}

fn compare(
    app: &App,
    handler: &Handler,
    answer: &Answer<'_>,
    method: &str,
    path: &str,
) -> Result<Outcome, String> {
    match answer.limited {
        0 => return Ok(Outcome::Uncovered),
        1 => {}
        _ => return Err("the layer is there twice".to_owned()),
    }
    let rule = app.rule_of(handler, method).map(|rule| &rule.target);
    check_plain(app, answer, method, path)?;
    let is_hidden = || {
        !answer.is_decided()
            && (hidden(app, handler, answer, method, path)
                || is_exempt_in_part(app, handler, method, path))
    };
    if answer.charged.is_empty() {
        return match rule {
            _ if is_hidden() => Ok(Outcome::Hidden),
            Some(Target::Rule { name, .. }) if answer.is_decided() => {
                Err(format!("its rule {name} was not charged"))
            }
            Some(Target::Exempt) if answer.is_decided() => Ok(Outcome::Exempt),
            None if answer.is_decided() => {
                let seen = seen_by_layer(app, path);
                let is_exempt = Table::new(&app.rules, method).exempts(&seen);
                let problem = || format!("it has no rule, and {seen} is not exempt");
                is_exempt.then_some(Outcome::Exempt).ok_or_else(problem)
            }
            _ => match reading_that_counts(app, method, path) {
                Some(reading) => Err(format!("the reading {reading} is not exempt")),
                None => Ok(Outcome::Exempt),
            },
        };
    }
    let Some(Target::Rule { name, has_global }) = rule else {
        return Ok(Outcome::Charged);
    };
    let missing = |rule: &str| !answer.charged.contains(&rule);
    if missing(name) || (*has_global && missing("global")) {
        if is_hidden() {
            return Ok(Outcome::Hidden);
        }
        let global = if *has_global { " and global" } else { "" };
        return Err(format!("its rules are {name}{global}"));
    }
    Ok(Outcome::Charged)
}

/// Whether the layer could not see this handler, because it hides a more literal one whose rule
/// was charged, or whose route is exempt. A reading of the path has to match that route.
fn hidden(app: &App, handler: &Handler, answer: &Answer<'_>, method: &str, path: &str) -> bool {
    let applied = |other: &&Handler| match app.rule_of(other, method).map(|rule| &rule.target) {
        Some(Target::Rule { name, .. }) => answer.charged.contains(&name.as_str()),
        // Another reading of the path may be counted nevertheless.
        Some(Target::Exempt) => true,
        None => false,
    };
    let outer = (handler.pattern.as_str(), handler.behind.as_slice());
    let mut others = app.handlers.iter().filter(applied);
    others.any(|other| {
        hides(outer, (&other.pattern, &other.behind)) && can_match(&other.pattern, path)
    })
}

fn is_shifted(handler: &Handler, path: &str) -> bool {
    path.contains("//") && handler.behind.iter().any(|boundary| boundary.shifts)
}

/// Whether a route exempts a part of what the handler serves that the path belongs to, and is not
/// the route of a handler. Then the rule of the handler is not for that part.
fn is_exempt_in_part(app: &App, handler: &Handler, method: &str, path: &str) -> bool {
    let mut exempt = app.rules.iter().filter(|rule| rule.is_exempt_part);
    exempt.any(|rule| {
        covers(rule.method, method)
            && is_more_literal(&rule.pattern, &handler.pattern)
            && can_match(&rule.pattern, path)
    })
}

/// Compares what was charged for a plain path with the rules that it matches as it is written. Also
/// finds what was charged in addition, and exemptions that were lost.
fn check_plain(app: &App, answer: &Answer<'_>, method: &str, path: &str) -> Result<(), String> {
    let seen = seen_by_layer(app, path);
    let table = Table::new(&app.rules, method);
    // Percent-encoding is plain to a server that does not decode, and not to the layer.
    let has_one_reading = is_plain(&seen) && path.starts_with('/') && !path.contains('%');
    if !has_one_reading || !table.has_one_target(&seen) {
        return Ok(());
    }
    let by_path = table.route_at(&seen);
    // A router whose matched pattern belongs to another rule adds that rule.
    let shape_of = |rule: &Route| rule.shape();
    let is_same = |matched: &str| by_path.map(shape_of) == Some(shape(matched));
    if answer.matched.is_some_and(|matched| !is_same(matched)) || app.changes_paths() {
        return Ok(());
    }
    let expected: Vec<&str> = match by_path.map(|rule| &rule.target) {
        None => vec!["global"],
        Some(Target::Exempt) => Vec::new(),
        Some(Target::Rule { name, has_global }) => {
            let global = has_global.then_some("global");
            std::iter::once(name.as_str()).chain(global).collect()
        }
    };
    if answer.charged == expected {
        return Ok(());
    }
    Err(format!(
        "the rules of the plain path {seen} are {expected:?}"
    ))
}

/// Returns a reading of a path that is not exempt.
fn reading_that_counts(app: &App, method: &str, path: &str) -> Option<String> {
    let table = Table::new(&app.rules, method);
    let mut readings = readings(&seen_by_layer(app, path)).into_iter();
    readings.find(|reading| !table.exempts(reading))
}

/// Returns the path that the first router or the layer gets.
fn seen_by_layer(app: &App, path: &str) -> String {
    match &app.server {
        Server::Axum(Position::NormalizedOutside(slash) | Position::NormalizedInside(slash), _) => {
            normalized(path, *slash)
        }
        _ => path.to_owned(),
    }
}

/// What `NormalizePath` makes of a path before the layer sees it.
fn normalized(path: &str, slash: Slash) -> String {
    let trimmed = path.trim_matches('/');
    match slash {
        Slash::Append if path.ends_with('/') && !path.ends_with("//") => path.to_owned(),
        Slash::Append if trimmed.is_empty() => "/".to_owned(),
        Slash::Append => format!("/{trimmed}/"),
        Slash::Trim => format!("/{trimmed}"),
    }
}
