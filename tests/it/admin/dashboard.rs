//! The dashboard as an operator uses it: alerts, overrides, policy, on a desktop and on a phone.

use std::time::Duration;

use axum::Router;
use serde_json::json;
use tollgate::policy::{Policy, Rule, RuleMode, Tiers};

use super::{Served, TOKEN};
use crate::browser::Browser;
use crate::support::http::{echo, layer, send};

const WIDE: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (375, 812);

/// Serves a layer after requests: `offenders` callers were denied 52 times each, one of them in the
/// present minute.
async fn serve_with_offenders(offenders: usize) -> Served {
    let policy = Policy::builder()
        .tiers(Tiers::new("free").tier("team", 5).tier("enterprise", 20))
        .everyone("10000/hour")
        .category(
            "compliance",
            Rule::new("2000/hour, token-bucket, burst 1000"),
        )
        .endpoint(
            "POST /login",
            Rule::new("5/hour").name("login").scale(false).quiet(true),
        )
        .endpoint(
            "GET /v1/compliance/exports/{id}",
            Rule::new("20/hour").name("exports"),
        )
        .endpoint(
            "GET /v1/compliance/{*rest}",
            Rule::in_category("compliance"),
        )
        .rule(
            "tenant",
            Rule::new("5000/hour")
                .per(["tenant"])
                .mode(RuleMode::DryRun),
        )
        .exempt_role("service")
        .exempt_network("10.0.0.0/8")
        .exempt_route("GET /health");
    let (builder, clock) = layer(policy);
    let limits = builder.build().unwrap();
    let app: Router = echo().layer(limits.clone());
    for offender in 0..offenders {
        let user = format!("user-{offender}");
        for _ in 0..57 {
            send(&app, "POST /login", &[("x-user", &user)]).await;
        }
    }
    let alice = [("x-user", "alice"), ("x-tier", "team")];
    for _ in 0..103 {
        send(&app, "GET /v1/compliance/exports/7", &alice).await;
    }
    clock.advance(Duration::from_mins(1));
    send(&app, "POST /login", &[("x-user", "user-0")]).await;
    Served::of(limits, clock).await
}

async fn opened(served: &Served, size: (u32, u32), scheme: &str) -> Browser {
    let page = format!("http://{}/admin", served.address);
    let mut browser = Browser::open(&page, size, scheme).await;
    browser.sign_in(TOKEN).await;
    browser
}

async fn look_up(browser: &mut Browser, user: &str) {
    browser.write("#value", user).await;
    browser.press("Enter").await;
    browser
        .until_shows("#found h2", &format!("user {user}"))
        .await;
}

/// 100 alerts pushed the statistics 6,500 pixels down.
#[tokio::test(flavor = "multi_thread")]
async fn alerts_of_one_kind_are_one_line_with_a_count() {
    let served = serve_with_offenders(100).await;
    for size in [WIDE, PHONE] {
        let mut browser = opened(&served, size, "light").await;
        let line = "100 callers over 50 denials within an hour";
        browser.until_shows("#alerts", line).await;
        browser.until_shows("#alerts", "5,").await;
        let height = "document.querySelector('#alerts').offsetHeight";
        let closed = browser.value(height).await.as_u64().unwrap();
        assert!(closed < 250, "{closed}");

        // The list stays open when a value changes.
        browser.click("#alerts summary").await;
        for _ in 0..2 {
            served.send("POST /login", "user-1").await;
        }
        let largest = "document.querySelector('#alerts td.number').innerText";
        let before = browser.value(largest).await;
        browser.until(&format!("{largest} !== {before}")).await;
        browser.click("#alerts td button").await;
        browser.until_shows("#found h2", "user user-").await;
        let open = browser.value(height).await.as_u64().unwrap();
        assert!((closed + 100..600).contains(&open), "{open}");
        browser.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sets_a_new_override() {
    let served = serve_with_offenders(1).await;
    let mut browser = opened(&served, WIDE, "light").await;
    browser
        .value("document.querySelector('#new-rule').value = 'login'")
        .await;
    browser.write("#new-value", "bob").await;
    for (limit, message) in [
        ("20/fortnight", "The quota window cannot be fortnight."),
        (
            "20/day",
            "Expected: an amount that can be counted in the window of 5/1h",
        ),
    ] {
        browser.write("#new-limit", limit).await;
        browser.press("Enter").await;
        browser.until_shows("#new-limit-problem", message).await;
        let wrong = "[...document.querySelectorAll('[aria-invalid]')].map((field) => field.id)";
        assert_eq!(browser.value(wrong).await, json!(["new-limit"]));
    }
    browser.write("#new-dimension", "ip").await;
    browser.write("#new-limit", "1,000/hour").await;
    browser.press("Enter").await;
    browser
        .until_shows("#new-value-problem", "Expected: an address")
        .await;
    assert_eq!(browser.text("#new-limit-problem").await, "");
    browser
        .value("document.querySelector('#new-until').value = '2024-12-31T10:00'")
        .await;
    browser.write("#new-value", "203.0.113.9").await;
    browser.press("Enter").await;
    browser
        .until_shows("#new-until-problem", "an instant in the future")
        .await;
    browser
        .value("document.querySelector('#new-until').value = '2035-01-01T10:00'")
        .await;
    browser.press("Enter").await;
    browser.until_shows("#overrides", "ip=203.0.113.9").await;
    browser.until_shows("#overrides", "1,000/1h").await;

    // `blocked` needs no limit.
    browser.write("#new-value", "bob").await;
    let choose = "const kind = document.querySelector('#new-kind'); kind.value = 'blocked'; \
                  kind.dispatchEvent(new Event('change')); true";
    browser.value(choose).await;
    browser
        .value("document.querySelector('#new-rule').value = 'login'")
        .await;
    browser.click("#new-override .primary").await;
    browser.until_shows("#overrides", "user=bob").await;
    let listed = served.get("overrides").await.json();
    let of = |index: usize| {
        (
            &listed["overrides"][index]["counter"],
            &listed["overrides"][index]["limit"],
        )
    };
    assert_eq!(of(0), (&json!("ip=203.0.113.9"), &json!("1000/1h")));
    assert_eq!(of(1), (&json!("user=bob"), &json!("blocked")));
    // The browser's own messages about the four 422.
    assert_eq!(browser.complaints().len(), 4, "{:#?}", browser.complaints());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_shows_settings_and_every_limit_at_any_width() {
    let served = serve_with_offenders(1).await;
    for size in [WIDE, PHONE] {
        let mut browser = opened(&served, size, "light").await;
        for text in [
            "from 80 % of a limit on",
            "X-RateLimit-*, reset in Unix seconds",
            "closure",
            "roles service",
            "networks 10.0.0.0/8",
            "routes GET /health",
            "team ×5",
        ] {
            browser.until_shows("#settings", text).await;
        }
        for text in [
            "token-bucket",
            "sliding-window",
            "10,000/1h, burst",
            "dry run",
            "reported only in denials",
        ] {
            browser.until_shows("#rules", text).await;
        }
        // No limit is outside of the window, and no part of the table is cut off.
        let outside = "[...document.querySelectorAll('#rules .quota')].filter((quota) => { \
                       const at = quota.getBoundingClientRect(); \
                       return at.width === 0 || at.right > innerWidth; }).length";
        assert_eq!(browser.value(outside).await, json!(0));
        let cut = "(() => { const it = document.querySelector('#rules'); \
                   return [it.scrollHeight - it.clientHeight, it.scrollWidth - it.clientWidth]; })()";
        assert_eq!(browser.value(cut).await, json!([0, 0]));
        browser.close().await;
    }
}

/// `GET /v1/compliance/expor` + `ts`.
#[tokio::test(flavor = "multi_thread")]
async fn names_wrap_at_separators_only_and_the_page_fits_on_a_phone() {
    let served = serve_with_offenders(12).await;
    for width in [320, 375] {
        let mut browser = opened(&served, (width, 812), "light").await;
        look_up(&mut browser, "alice").await;
        let broken = "(() => { const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
                      const broken = []; const range = document.createRange(); \
                      for (let node; (node = walker.nextNode());) { \
                        if (!node.parentElement.closest('code, dd, .value')) continue; \
                        for (const word of node.data.matchAll(/[^\\s-]+/g)) { \
                          range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length); \
                          if (range.getClientRects().length > 1) broken.push(word[0]); } } \
                      return broken; })()";
        assert_eq!(browser.value(broken).await, json!([]), "{width}");
        assert!(browser.fits().await, "{width}");
        browser.close().await;
    }
}

/// Joined to the complete minutes, the present one looks like a fall.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_minute_is_apart_from_the_line() {
    let served = serve_with_offenders(2).await;
    served.clock.advance(Duration::from_mins(1));
    served.send("POST /login", "user-1").await;
    let mut browser = opened(&served, WIDE, "light").await;
    browser
        .until("document.querySelector('#timeline .dot-now') !== null")
        .await;
    let edge = |class: &str| {
        format!("document.querySelector('#timeline .{class}').getBoundingClientRect().right")
    };
    let apart = format!("{} + 5 < {}", edge("line"), edge("dot-now"));
    assert_eq!(browser.value(&apart).await, json!(true));
    let apart = format!("{} + 5 < {}", edge("area"), edge("dot-now"));
    assert_eq!(browser.value(&apart).await, json!(true));
    browser.close().await;
}

/// Runs axe-core on every section, with data, without, and with an error. Saves the screenshots.
#[tokio::test(flavor = "multi_thread")]
async fn axe_finds_nothing_serious_and_every_section_is_pictured() {
    let [busy, fresh] = [serve_with_offenders(12).await, Served::new("5/hour").await];
    let block = json!({ "subject": { "user": "alice" }, "rule": "login", "limit": "blocked",
        "until": "2035-01-01T10:00:00Z" });
    assert_eq!(busy.post("overrides", &block).await.status, 200);
    for (size, scheme) in [
        (WIDE, "light"),
        (WIDE, "dark"),
        (PHONE, "light"),
        (PHONE, "dark"),
    ] {
        let name = |section: &str| format!("{section}-{}-{scheme}", size.0);
        let page = format!("http://{}/admin", busy.address);
        let mut browser = Browser::open(&page, size, scheme).await;
        browser
            .until("!document.querySelector('#sign-in').hidden")
            .await;
        assert_eq!(
            browser.accessibility_findings().await,
            [""; 0],
            "{}",
            name("sign-in")
        );
        browser.sign_in(TOKEN).await;
        browser.until_shows("#alerts", "12 callers over 50").await;
        look_up(&mut browser, "alice").await;
        browser.until_shows("#found", "Blocked since").await;
        browser.click("#alerts summary").await;
        browser.write("#new-value", "bob").await;
        browser.write("#new-limit", "lots").await;
        browser.press("Enter").await;
        browser
            .until("document.querySelector('#new-limit-problem').innerText !== ''")
            .await;
        assert_eq!(
            browser.accessibility_findings().await,
            [""; 0],
            "{}",
            name("busy")
        );
        for section in ["overview", "lookup", "control", "policy"] {
            browser
                .picture_of(&format!("#{section}"), &name(section))
                .await;
        }
        browser.close().await;

        let mut browser = opened(&fresh, size, scheme).await;
        browser
            .until_shows("#timeline", "There were no requests yet.")
            .await;
        let findings = browser.accessibility_findings().await;
        assert_eq!(findings, [""; 0], "{}", name("fresh"));
        browser.picture_of("#overview", &name("fresh")).await;
        assert_eq!(browser.complaints(), [""; 0]);
        browser.close().await;
    }
}
