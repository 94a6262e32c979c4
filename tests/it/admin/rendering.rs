//! The dashboard after a whole day of requests on a manual clock.

use std::time::Duration;

use serde_json::json;
use tollgate::Identity;
use tollgate::policy::{Policy, Rule, Tiers};

use super::{Served, TOKEN};
use crate::browser::Browser;
use crate::support::http::{echo, layer, send};

/// Serves a layer after a day of requests: regular users, a job that never waits, and password guessing
/// in the last hour.
async fn serve_after_a_day() -> Served {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5).tier("enterprise", 20))
        .everyone("600/hour")
        .endpoint("GET /v1/items/{id}", Rule::new("60/minute").name("items"))
        .endpoint("POST /v1/reports", Rule::new("4/hour").name("reports"))
        .endpoint(
            "POST /login",
            Rule::new("5/minute").name("login").scale(false),
        )
        .endpoint("GET /v1/search", Rule::new("20/minute").name("search"))
        .rule("tenant", Rule::new("5000/hour").per(["tenant"]))
        .exempt_role("service");
    let (builder, clock) = layer(policy);
    let builder = builder.identify_with(|head| {
        let job = head.header("x-job")?;
        Some(Identity::user(job).role("service"))
    });
    let limits = builder.build().unwrap();
    let app = echo().layer(limits.clone());
    let minutes = 24 * 60 + 5;
    for minute in 0..minutes {
        let busy = (minute * 7 % 13) + (minute / 60 % 12);
        for number in 0..busy {
            let user = format!("user-{}", number % 9);
            send(
                &app,
                "GET /v1/items/7",
                &[("x-user", &user), ("x-tier", "team")],
            )
            .await;
        }
        if minute % 20 == 0 {
            send(&app, "POST /v1/reports", &[("x-user", "nightly-report")]).await;
            send(&app, "GET /v1/items/1", &[("x-job", "sync")]).await;
        }
        let searches = if minute % 180 < 25 {
            26 + minute % 9
        } else {
            6
        };
        for _ in 0..searches {
            send(&app, "GET /v1/search", &[("x-user", "crawler")]).await;
        }
        if minute >= minutes - 42 {
            let guesses = 8 + (minute * 31 % 11) + 20 * u64::from(minute > minutes - 12);
            for _ in 0..guesses {
                send(&app, "POST /login", &[("x-user", "mallory")]).await;
            }
        }
        clock.advance(Duration::from_mins(1));
    }
    Served::of(limits, clock).await
}

#[tokio::test(flavor = "multi_thread")]
async fn timeline_shows_denials_of_the_last_hour_and_day() {
    let served = serve_after_a_day().await;
    let statistics = served.get("statistics").await.json();
    let page = format!("http://{}/admin", served.address);
    for scheme in ["light", "dark"] {
        let mut browser = Browser::open(&page, (1280, 900), scheme).await;
        browser
            .until("!document.querySelector('#sign-in').hidden")
            .await;
        browser.write("#token", TOKEN).await;
        browser.press("Enter").await;
        browser.until_shows("#pulse", "Live").await;
        // One point for each complete minute. Its height is the number of denials.
        let points =
            "document.querySelector('#timeline .line').getAttribute('d').split('L').length";
        browser.until(&format!("{points} === 59")).await;
        browser.picture(&format!("busy-hour-{scheme}")).await;
        let most = statistics["last_hour"].as_array().unwrap().iter();
        let most = most.map(|span| span["denied"].as_u64().unwrap()).max();
        let label = browser
            .value("document.querySelector('#timeline svg').ariaLabel")
            .await;
        let label = label.as_str().unwrap();
        let total = &statistics["denied_last_hour"];
        let expected = format!(
            "{total} denials in the past hour, at most {} in a minute.",
            most.unwrap()
        );
        assert!(label.starts_with(&expected), "{label}");

        browser.click("[data-period=day]").await;
        browser.until(&format!("{points} === 95")).await;
        let pressed = "document.querySelector('[data-period=day]').ariaPressed";
        assert_eq!(browser.value(pressed).await, json!("true"));
        browser.picture(&format!("busy-day-{scheme}")).await;
        assert_eq!(browser.complaints(), [""; 0]);
        browser.close().await;
    }
}

/// Serves a layer that denies all requests of one user.
async fn serve_and_deny(user: String) -> Served {
    let (builder, clock) = layer("1/hour");
    let builder = builder.identify_with(move |_| Some(Identity::user(&user)));
    let limits = builder.build().unwrap();
    let app = echo().layer(limits.clone());
    for _ in 0..2 {
        send(&app, "GET /", &[]).await;
    }
    Served::of(limits, clock).await
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_isolated_and_their_control_characters_escaped() {
    let served = serve_and_deny("a\u{202e}b\u{1b}c\nd".to_owned()).await;
    let page = format!("http://{}/admin", served.address);
    let mut browser = Browser::open(&page, (1280, 900), "light").await;
    browser
        .until("!document.querySelector('#sign-in').hidden")
        .await;
    browser.write("#token", TOKEN).await;
    browser.press("Enter").await;
    browser
        .until_shows("#offenders code", r"user=a\u{202e}b\u{1b}c\u{a}d")
        .await;
    let bidi = "getComputedStyle(document.querySelector('#offenders code')).unicodeBidi";
    assert_eq!(browser.value(bidi).await, json!("isolate"));
    // The look-up uses the unescaped name.
    browser.click("#offenders button").await;
    browser.until_shows("#found-caller .chip", "blocked").await;
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}

/// A caller with a cut name cannot be looked up, because the part may be the name of another caller.
#[tokio::test]
async fn names_in_statistics_are_cut_at_256_bytes() {
    for (length, is_cut) in [(251, false), (252, true), (8_000, true)] {
        let served = serve_and_deny("x".repeat(length)).await;
        let statistics = served.get("statistics").await.json();
        let offender = &statistics["offenders"][0];
        let counter = offender["counter"].as_str().unwrap();
        assert!(
            counter.len() <= 256 && counter.starts_with("user=xxx"),
            "{counter}"
        );
        assert_eq!(counter.ends_with('…'), is_cut, "{length}");
        assert_eq!(offender["subject"].is_null(), is_cut, "{length}");
    }
}
