//! The dashboard with late and unexpected responses.

use serde_json::json;
use tollgate::policy::{Policy, Rule, Tiers};

use super::{Served, TOKEN};
use crate::browser::Browser;

async fn signed_in(served: &Served) -> Browser {
    let page = format!("http://{}/admin", served.address);
    let mut browser = Browser::open(&page, (1280, 900), "light").await;
    browser.sign_in(TOKEN).await;
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn late_responses_are_not_shown_after_signing_out() {
    let served = Served::new("5/hour").await;
    let mut browser = signed_in(&served).await;
    // From here on, responses are held back.
    browser
        .value(
            "window.held = []; const real = window.fetch; window.fetch = async (...of) => { \
             const answer = await real(...of); await new Promise((go) => held.push(go)); \
             return answer; }; true",
        )
        .await;
    browser.until("held.length > 0").await;
    browser.click("#leave").await;
    browser
        .until("!document.querySelector('#sign-in').hidden")
        .await;
    browser
        .value("window.fetch = real; held.forEach((go) => go()); setTimeout(() => { window.later = true; }, 1000)")
        .await;
    browser.until("window.later === true").await;
    let hidden = "document.querySelector('#sign-in').hidden";
    assert_eq!(browser.value(hidden).await, json!(false));
    assert_eq!(browser.text("#sign-in-problem").await, "");
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}

/// For example from a server of another version. Stale data is not shown as live.
#[tokio::test(flavor = "multi_thread")]
async fn an_unexpected_response_is_reported_and_polling_continues() {
    let served = Served::new("5/hour").await;
    let mut browser = signed_in(&served).await;
    browser
        .value(
            "const real = window.fetch; window.fetch = (...of) => of[0].endsWith('statistics') \
             ? Promise.resolve(new Response('{}')) : real(...of); true",
        )
        .await;
    browser
        .until_shows("#pulse", "No answer that can be shown, again in")
        .await;
    browser
        .until_shows("#banners", "The response cannot be shown.")
        .await;
    browser.value("window.fetch = real; true").await;
    browser.until_shows("#pulse", "Live").await;
    browser
        .until("document.querySelector('#banners').innerText === ''")
        .await;
    browser.close().await;
}

/// A tier that is not known is shown as assumed.
#[tokio::test(flavor = "multi_thread")]
async fn a_tier_chosen_for_one_caller_does_not_apply_to_the_next() {
    let tiers = Tiers::new("free")
        .tier("team", 5)
        .assign("user", "bob", "team");
    let served = Served::new(Policy::builder().tiers(tiers).everyone("1/hour")).await;
    for _ in 0..2 {
        served.send("GET /", "alice").await;
    }
    let mut browser = signed_in(&served).await;
    browser
        .value("document.querySelector('#tier').value = 'team'")
        .await;
    browser
        .until("document.querySelector('#offenders button') !== null")
        .await;
    browser.click("#offenders button").await;
    browser.until_shows("#found h2", "user alice").await;
    let head = "#found .found-caller-head";
    browser.until_shows(head, "tier free").await;
    assert!(
        !browser.text(head).await.contains("assumed"),
        "alice was denied"
    );
    browser.write("#value", "carol").await;
    browser.press("Enter").await;
    browser.until_shows("#found h2", "user carol").await;
    browser.until_shows(head, "tier free, assumed").await;
    browser.until_shows("#found", "The tier is assumed").await;
    browser.write("#value", "bob").await;
    browser.press("Enter").await;
    browser.until_shows("#found h2", "user bob").await;
    assert!(
        !browser.text(head).await.contains("assumed"),
        "bob is in the policy"
    );
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}

/// There are more endpoints than the API lists. The share among the listed ones would be 23 %.
#[tokio::test(flavor = "multi_thread")]
async fn most_denied_endpoint_is_shown_with_its_share_of_all_denials() {
    let mut policy = Policy::builder().everyone("1000/hour");
    for number in 0..120 {
        let rule = Rule::new("blocked").name(format!("rule-{number}"));
        policy = policy.endpoint(format!("GET /e{number}"), rule);
    }
    let served = Served::new(policy).await;
    for number in 0..120 {
        let denials = if number == 7 { 30 } else { 1 };
        for _ in 0..denials {
            let answer = served.send(&format!("GET /e{number}"), "alice").await;
            assert_eq!(answer.status, 429);
        }
    }
    let statistics = served.get("statistics").await.json();
    assert_eq!(statistics["denied_last_day"], 149);
    assert_eq!(statistics["endpoints"].as_array().unwrap().len(), 100);
    assert_eq!(statistics["endpoints"][0]["name"], "GET /e7");
    let share = statistics["endpoints"][0]["denied_share"].as_f64().unwrap();
    assert!((share - 30.0 / 149.0).abs() < 1e-9, "{share}");
    let mut browser = signed_in(&served).await;
    browser.until_shows("#worst-endpoint", "GET /e7").await;
    let share = browser.text("#worst-share").await.replace('\u{a0}', " ");
    assert_eq!(share, "30 denials, 20 % of all");
    browser.close().await;
}
