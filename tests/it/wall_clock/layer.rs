//! Requests before and after a step of the wall clock.

use std::time::Duration;

use axum::Router;
use tollgate::identity::Jwt;
use tollgate::policy::{Policy, Rule};
use tollgate::{
    Algorithm, Clock, Decision, ManualClock, Override, Quota, RateLimitLayer, Timestamp, Window,
};

use super::{DAY, DAY_STEP, HOUR, HOUR_STEP, START, STEPS, set_wall, step, wall};
use crate::support::http::{Answer, echo, layer, send, send_from};
use crate::support::tokens::{SECRET, hs256, tampered};

/// A router behind limits that know callers by their tokens, of which each user has two requests.
fn with_tokens() -> (Router, ManualClock) {
    let clock = ManualClock::new();
    let policy = Policy::builder()
        .authenticated("2/hour")
        .anonymous("1000/hour");
    let jwt = Jwt::hs256(SECRET).leeway(Duration::ZERO).build().unwrap();
    let limits = RateLimitLayer::builder(policy)
        .clock(clock.clone())
        .identify(jwt)
        .build()
        .unwrap();
    (echo().layer(limits), clock)
}

/// A token that is valid for an hour from `nbf` on, the last second included.
fn token(user: &str, nbf: u64) -> String {
    let exp = nbf + HOUR;
    hs256(&format!(r#"{{"sub":"{user}","nbf":{nbf},"exp":{exp}}}"#))
}

/// Returns whether the bearer of a token is counted as a user.
async fn is_known(app: &Router, token: &str) -> bool {
    let token = format!("Bearer {token}");
    let answer = send(app, "GET /", &[("authorization", &token)]).await;
    let policy = answer.header("x-ratelimit-policy").unwrap().to_owned();
    assert!(
        ["user:global:1h", "ip:global:1h"].contains(&&*policy),
        "{policy}"
    );
    policy == "user:global:1h"
}

fn seconds(clock: &ManualClock) -> u64 {
    wall(clock).as_micros() / 1_000_000
}

#[tokio::test]
async fn tokens_are_valid_by_the_wall_clock() {
    for by in STEPS {
        let (app, clock) = with_tokens();
        let before = token("alice", START);
        assert!(is_known(&app, &before).await);
        step(&clock, by);
        // It is in the cache now, and expired or not yet valid.
        assert!(!is_known(&app, &before).await, "{by}");
        let fresh = token("bob", seconds(&clock));
        assert!(is_known(&app, &fresh).await, "{by}");
        let expired = token("carol", seconds(&clock) - HOUR - 1);
        assert!(!is_known(&app, &expired).await, "{by}");
        let early = token("dave", seconds(&clock) + 1);
        assert!(!is_known(&app, &early).await, "{by}");
    }
}

#[tokio::test]
async fn cached_token_expires_by_the_wall_clock() {
    for by in STEPS {
        let (app, clock) = with_tokens();
        step(&clock, by);
        let token = token("alice", seconds(&clock));
        assert!(is_known(&app, &token).await);
        clock.advance(Duration::from_secs(HOUR));
        assert!(is_known(&app, &token).await, "{by}");
        clock.advance(Duration::from_secs(1));
        assert!(!is_known(&app, &token).await, "{by}");
    }
}

async fn anonymous(app: &Router) -> Answer {
    send(app, "GET /", &[]).await
}

#[tokio::test]
async fn maintenance_of_the_policy_ends_by_the_wall_clock() {
    let until = Timestamp::from_secs(START + HOUR);
    let (builder, clock) = layer(Policy::builder().everyone("1/hour").disabled_until(until));
    let app = echo().layer(builder.build().unwrap());
    let is_counted = async || anonymous(&app).await.header("x-ratelimit-limit").is_some();
    assert!(!is_counted().await);
    step(&clock, 2 * HOUR_STEP);
    assert!(is_counted().await, "it is over");
    step(&clock, -DAY_STEP);
    assert!(!is_counted().await, "it is to come");
    clock.advance(Duration::from_secs(23 * HOUR));
    assert!(is_counted().await);
}

#[tokio::test]
async fn maintenance_that_was_started_at_run_time_ends_by_the_wall_clock() {
    let (builder, clock) = layer("1/hour");
    let limits = builder.build().unwrap();
    let app = echo().layer(limits.clone());
    let is_counted = async || anonymous(&app).await.header("x-ratelimit-limit").is_some();
    step(&clock, -2 * HOUR_STEP);
    // By the monotonic clock, this has passed.
    let until = Timestamp::from_secs(START - HOUR);
    limits.start_maintenance(until).await.unwrap();
    assert!(!is_counted().await);
    step(&clock, HOUR_STEP);
    assert!(is_counted().await);
    assert!(limits.start_maintenance(until).await.is_err(), "it is over");
}

#[tokio::test]
async fn override_ends_by_the_wall_clock() {
    let (builder, clock) = layer(Policy::builder().authenticated("10/hour"));
    let limits = builder.build().unwrap();
    let app = echo().layer(limits.clone());
    let limit = async || {
        let answer = send(&app, "GET /", &[("x-user", "alice")]).await;
        answer.number("x-ratelimit-limit")
    };
    for by in [2 * HOUR, DAY] {
        let until = wall(&clock).saturating_add(Duration::from_secs(by));
        let new = Override::new([("user", "alice")], "global", "20/hour").unwrap();
        limits.set_override(new.until(until)).await.unwrap();
        assert_eq!(limit().await, 20);
        step(&clock, -HOUR_STEP);
        clock.advance(Duration::from_secs(by));
        assert_eq!(limit().await, 20, "an hour is left by the wall clock");
        step(&clock, HOUR_STEP);
        assert_eq!(limit().await, 10, "{by}");
        assert!(limits.overrides().is_empty());
    }
}

/// All times in a response, for a limit whose window ends at `end` by the wall.
fn assert_times(answer: &Answer, clock: &ManualClock, end: u64) {
    assert_eq!(answer.number("x-ratelimit-reset"), end);
    if answer.status != 429 {
        return;
    }
    let now = seconds(clock);
    assert_eq!(answer.number("retry-after"), end - now);
    let body = answer.json();
    let error = &body["error"];
    let text = |secs: u64| {
        let text = Timestamp::from_secs(secs).to_string();
        format!("{}.000Z", text.split_once('.').unwrap().0)
    };
    assert_eq!(error["details"]["reset_at"], text(end));
    assert_eq!(error["details"]["retry_after"], end - now);
    assert_eq!(error["timestamp"], text(now));
    let decision = answer.extensions.get::<Decision>().unwrap();
    assert_eq!(decision.at(), wall(clock));
    assert_eq!(decision.reset_at(), Timestamp::from_secs(end));
}

/// Policies for the three paths through the layer: one quota for all, one for some, several.
fn policies() -> [Policy; 3] {
    let hourly = || {
        let quota = Quota::builder(1, Window::HOUR).algorithm(Algorithm::FixedWindow);
        quota.build().unwrap()
    };
    let endpoint = Rule::new(hourly()).name("items");
    let builders = [
        Policy::builder().everyone(hourly()),
        Policy::builder().endpoint("GET /", endpoint),
        Policy::builder()
            .everyone(hourly())
            .rule("always", "1000/hour"),
    ];
    builders.map(|builder| builder.build().unwrap())
}

#[tokio::test]
async fn times_in_responses_are_right_on_the_wall_clock() {
    for by in STEPS {
        for policy in policies() {
            let clock = ManualClock::new();
            let limits = RateLimitLayer::builder(policy).clock(clock.clone());
            let app = echo().layer(limits.build().unwrap());
            clock.advance(Duration::from_mins(10));
            assert_times(&anonymous(&app).await, &clock, START + HOUR);
            assert_times(&anonymous(&app).await, &clock, START + HOUR);
            step(&clock, by);
            let end = (START + HOUR).strict_add_signed(by);
            let denied = anonymous(&app).await;
            assert_eq!(denied.status, 429);
            assert_times(&denied, &clock, end);
            let wait = denied.number("retry-after");
            clock.advance(Duration::from_secs(wait));
            let allowed = anonymous(&app).await;
            assert_eq!(allowed.status, 200, "after exactly that wait");
            assert_times(&allowed, &clock, end + HOUR);
        }
    }
}

#[tokio::test]
async fn calendar_windows_in_the_layer_follow_the_wall_clock() {
    let daily = Quota::builder(1, Window::DAY).algorithm(Algorithm::FixedWindow);
    let clock = ManualClock::new();
    let limits = RateLimitLayer::builder(daily.build().unwrap()).clock(clock.clone());
    let app = echo().layer(limits.build().unwrap());
    set_wall(&clock, START + 10 * DAY + HOUR);
    assert_eq!(anonymous(&app).await.status, 200);
    assert_times(&anonymous(&app).await, &clock, START + 11 * DAY);
    step(&clock, DAY_STEP);
    assert_eq!(anonymous(&app).await.status, 200, "the next day");
    step(&clock, -DAY_STEP);
    let denied = anonymous(&app).await;
    assert_eq!(denied.status, 429, "it does not reopen");
    assert_times(&denied, &clock, START + 12 * DAY);
    clock.advance(Duration::from_secs(denied.number("retry-after")));
    assert_eq!(anonymous(&app).await.status, 200);
}

/// 1970, and the end of unsigned 32-bit Unix seconds.
#[tokio::test]
async fn extreme_wall_clocks_keep_limits_and_waits() {
    for to in [0, u64::from(u32::MAX)] {
        for policy in policies() {
            let clock = ManualClock::new();
            let limits = RateLimitLayer::builder(policy).clock(clock.clone());
            let app = echo().layer(limits.build().unwrap());
            assert_eq!(anonymous(&app).await.status, 200);
            set_wall(&clock, to);
            let denied = anonymous(&app).await;
            assert_eq!(denied.status, 429);
            assert_times(&denied, &clock, to + HOUR);
            clock.advance(Duration::from_secs(HOUR));
            assert_eq!(anonymous(&app).await.status, 200);
        }
    }
}

#[tokio::test]
async fn uncounted_response_is_refunded_after_a_step() {
    use tollgate::policy::Count;

    for by in STEPS {
        let clock = ManualClock::new();
        let policy = Policy::builder()
            .everyone("1000/hour")
            .endpoint("POST /login", Rule::new("1/hour").count(Count::failure()));
        step(&clock, by);
        let limits = RateLimitLayer::builder(policy).clock(clock.clone());
        let app = echo().layer(limits.build().unwrap());
        for _ in 0..3 {
            assert_eq!(send(&app, "POST /login", &[]).await.status, 200);
        }
        let failed = [("x-answer", "401")];
        assert_eq!(send(&app, "POST /login", &failed).await.status, 401);
        let denied = send(&app, "POST /login", &[]).await;
        assert_eq!(denied.status, 429);
        let until = denied.number("x-ratelimit-reset");
        assert_eq!(until, seconds(&clock) + denied.number("retry-after"));
    }
}

/// The wall clock is stepped while the handler runs: after the charge, before the refund.
#[tokio::test]
async fn uncounted_response_is_refunded_if_the_clock_steps_before_it() {
    use tollgate::policy::Count;

    let daily = Quota::builder(1, Window::DAY).algorithm(Algorithm::FixedWindow);
    let daily = daily.build().unwrap();
    for by in STEPS {
        for (quota, is_calendar) in [(Quota::per_hour(1).unwrap(), false), (daily, true)] {
            let clock = ManualClock::new();
            clock.advance(Duration::from_secs(12 * HOUR));
            let policy = Policy::builder()
                .everyone("1000/hour")
                .endpoint("POST /login", Rule::new(quota).count(Count::failure()));
            let limits = RateLimitLayer::builder(policy).clock(clock.clone());
            let stepped = clock.clone();
            let handler = move |request: http::Request<axum::body::Body>| async move {
                if request.headers().contains_key("x-step") {
                    stepped.advance(Duration::from_millis(1));
                    step(&stepped, by);
                }
            };
            let app = Router::new().route("/login", axum::routing::post(handler));
            let app = app.layer(limits.build().unwrap());
            let stepping = send(&app, "POST /login", &[("x-step", "1")]).await;
            assert_eq!(stepping.status, 200, "{by}");
            let next = send(&app, "POST /login", &[]).await;
            // It is not known which day was charged, so a charge per day stays until the day ends.
            let is_refunded = !is_calendar || by >= DAY_STEP;
            let expected = if is_refunded { 200 } else { 429 };
            assert_eq!(next.status, expected, "{by} {is_calendar}");
        }
    }
}

#[tokio::test]
async fn a_daily_quota_of_wrong_tokens_follows_the_wall_clock() {
    let daily = Quota::builder(1, Window::DAY).algorithm(Algorithm::FixedWindow);
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(12 * HOUR));
    let limits = RateLimitLayer::builder("1000/hour")
        .clock(clock.clone())
        .identify(Jwt::hs256(SECRET).build().unwrap())
        .failed_auth_quota(daily.build().unwrap());
    let app = echo().layer(limits.build().unwrap());
    let claims = format!(r#"{{"sub":"alice","exp":{}}}"#, START + 9 * DAY);
    let wrong = format!("Bearer {}", tampered(&hs256(&claims)));
    let wrong = [("authorization", wrong.as_str())];
    let send_wrong = || send_from(&app, "203.0.113.9:1", "GET /", &wrong);
    assert_eq!(send_wrong().await.status, 200);
    let denied = send_wrong().await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.number("retry-after"), 12 * HOUR);
    step(&clock, 2 * HOUR_STEP);
    let denied = send_wrong().await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.number("retry-after"), 10 * HOUR);
    assert_eq!(denied.number("x-ratelimit-reset"), START + DAY);
    step(&clock, 10 * HOUR_STEP);
    assert_eq!(send_wrong().await.status, 200);
}

#[test]
fn manual_clock_keeps_now_when_the_wall_is_stepped() {
    let clock = ManualClock::new();
    for by in STEPS {
        step(&clock, by);
        assert_eq!(clock.now(), Timestamp::from_secs(START));
    }
    assert_eq!(clock.wall_offset(), 0);
}
