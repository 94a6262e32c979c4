//! What the page does when answers come late, or are not what it knows.

use serde_json::json;
use tollgate::policy::{Policy, Tiers};

use super::{Served, TOKEN};
use crate::browser::Browser;

async fn signed_in(served: &Served) -> Browser {
    let page = format!("http://{}/admin", served.address);
    let mut browser = Browser::open(&page, (1280, 900), "light").await;
    browser.sign_in(TOKEN).await;
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_signed_out_is_shown_nothing_that_comes_late() {
    let served = Served::new("5/hour").await;
    let mut browser = signed_in(&served).await;
    // From now on answers wait until they are let through.
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

/// A server of another version, say. What stands still must not seem live.
#[tokio::test(flavor = "multi_thread")]
async fn what_it_does_not_understand_it_says_and_tries_again() {
    let served = Served::new("5/hour").await;
    let mut browser = signed_in(&served).await;
    browser
        .value(
            "const real = window.fetch; window.fetch = (...of) => of[0].endsWith('statistics') \
             ? Promise.resolve(new Response('{}')) : real(...of); true",
        )
        .await;
    browser
        .until_says("#pulse", "No answer that can be shown, again in")
        .await;
    browser
        .until_says("#banners", "This page does not understand the server.")
        .await;
    browser.value("window.fetch = real; true").await;
    browser.until_says("#pulse", "Live").await;
    browser
        .until("document.querySelector('#banners').innerText === ''")
        .await;
    browser.close().await;
}

/// The tier that was chosen for one is not that of the next; and where nobody knows it, the page
/// does not pretend to.
#[tokio::test(flavor = "multi_thread")]
async fn whose_tier_nobody_knows_has_none_that_was_chosen_for_another() {
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
    browser.until_says("#found h2", "user alice").await;
    browser
        .until_says("#found .verdict-head", "tier free, if no other is known")
        .await;
    let found = served.look_up("alice").await;
    assert_eq!(
        (&found["tier"], &found["tier_known"]),
        (&json!("free"), &json!(false))
    );
    let found = served.look_up("bob").await;
    assert_eq!(
        (&found["tier"], &found["tier_known"]),
        (&json!("team"), &json!(true))
    );
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}
