//! The dashboard in a real browser: display, actions, failures.

use serde_json::json;

use super::attack::{TOKEN, TRAP, admitted, attack, denied, waves};
use super::{Caller, Gateway};
use crate::browser::Browser;
use crate::redis::Server;

const WIDE: (u32, u32) = (1280, 900);
const NARROW: (u32, u32) = (320, 640);

async fn gateway() -> Gateway {
    Gateway::start_with(&[("ADMIN_TOKEN", TOKEN)]).await
}

fn page(gateway: &Gateway) -> String {
    format!("http://{}/admin", gateway.example.address())
}

async fn opened(gateway: &Gateway, size: (u32, u32), scheme: &str) -> Browser {
    let mut browser = Browser::open(&page(gateway), size, scheme).await;
    browser.sign_in(TOKEN).await;
    browser
}

async fn look_up(browser: &mut Browser, name: &str) {
    browser.write("#dimension", "user").await;
    browser.write("#value", name).await;
    browser.press("Enter").await;
    browser
        .until_shows("#found h2", &format!("user {name}"))
        .await;
}

#[tokio::test]
async fn dashboard_shows_an_attack_while_it_happens() {
    let gateway = gateway().await;
    let mut browser = opened(&gateway, WIDE, "light").await;
    browser.until_shows("#denied-day", "0").await;
    let waves = waves();
    attack(&gateway, &waves).await;
    // The page refreshes without a reload.
    let total = denied(&waves).to_string();
    browser.until_shows("#denied-day", &total).await;
    browser
        .until_shows("#worst-endpoint", "POST /auth/v1/token")
        .await;
    assert_eq!(
        browser.text("#worst-share").await,
        "66 denials, 73 % of all"
    );
    let strip = browser.text("#strip").await;
    let allowed = admitted(&waves).to_string();
    let words: Vec<&str> = strip.split_whitespace().collect();
    assert!(
        words.windows(2).any(|pair| pair == ["Allowed", &allowed]),
        "{strip}"
    );
    assert!(
        words.windows(2).any(|pair| pair == ["Denied", &total]),
        "{strip}"
    );
    for wave in waves.iter().filter(|wave| wave.denied() > 0) {
        let row = format!(
            "[...document.querySelectorAll('#offenders tr')].some((row) => row.innerText.includes({:?}) \
             && row.cells[1].innerText === '{}')",
            wave.counter,
            wave.denied()
        );
        browser.until(&row).await;
    }
    browser
        .until("document.querySelector('#timeline .dot-now, #timeline .dot') !== null")
        .await;
    browser
        .until("document.querySelectorAll('#gauges [role=meter]').length >= 4")
        .await;
    // HTML in a name is shown as text.
    assert_eq!(browser.value("document.images.length").await, json!(0));
    let names = browser.text("#offenders").await;
    assert!(names.contains(TRAP), "{names}");
    browser.picture("light").await;

    // The button switches the colours and shows the scheme.
    browser.click("#theme").await;
    browser.click("#theme").await;
    let theme = browser
        .value("document.documentElement.dataset.theme")
        .await;
    assert_eq!(theme, json!("dark"));
    browser
        .until("document.querySelector('#theme').ariaLabel === 'Colours: dark'")
        .await;
    browser.picture("dark").await;
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}

#[tokio::test]
async fn an_operator_looks_up_a_caller_and_sets_an_override() {
    const RESEARCH: &str = "POST /v1/ai/research";
    let gateway = gateway().await;
    let alice = Caller::user("alice", "free");
    gateway.exhaust(RESEARCH, &alice, 10).await;
    let mut browser = opened(&gateway, WIDE, "dark").await;
    // From the list of top offenders, by one click.
    browser
        .until("document.querySelector('#offenders button') !== null")
        .await;
    browser.click("#offenders button").await;
    browser.until_shows("#found .chip", "blocked").await;
    browser
        .until_shows(
            "#found .because",
            "user:ai-research:1h is used up: 10 of 10 in the past hour.",
        )
        .await;
    browser.picture("blocked").await;

    let limit = "document.querySelector('#override-rule').value";
    assert_eq!(browser.value(limit).await, json!("ai-research"));
    browser.write("#override-limit", "20/fortnight").await;
    browser.press("Enter").await;
    browser
        .until_shows("#override-form .problem", "cannot be fortnight")
        .await;
    browser.write("#override-limit", "20/hour").await;
    browser.press("Enter").await;
    browser
        .until_shows("#said", "user=alice now has 20/1h under ai-research.")
        .await;
    browser.until_shows("#overrides", "user=alice").await;
    browser.until_shows("#found .chip", "not blocked").await;
    let answer = gateway.send(RESEARCH, &alice).await;
    assert_eq!(
        (answer.status, answer.number("x-ratelimit-limit")),
        (200, 20)
    );
    browser.picture("override").await;

    browser.click("#overrides button").await;
    browser
        .until("document.querySelector('#confirm').open")
        .await;
    browser.click("#confirm-yes").await;
    browser.until_shows("#said", "is removed").await;
    browser.until_shows("#overrides", "None.").await;
    // The look-up is drawn again, with other buttons.
    browser
        .until("document.querySelector('#found .chip').innerText === 'blocked'")
        .await;
    assert_eq!(gateway.send(RESEARCH, &alice).await.status, 429);

    // A confirmation is required.
    browser.click("#reset").await;
    browser
        .until("document.querySelector('#confirm').open")
        .await;
    browser.click("#confirm button[value=no]").await;
    browser
        .until("!document.querySelector('#confirm').open")
        .await;
    assert_eq!(gateway.send(RESEARCH, &alice).await.status, 429);
    browser.click("#reset").await;
    browser
        .until("document.querySelector('#confirm').open")
        .await;
    browser.click("#confirm-yes").await;
    browser.until_shows("#said", "are reset").await;
    assert_eq!(gateway.send(RESEARCH, &alice).await.status, 200);

    browser.click("#maintenance-on").await;
    browser
        .until("document.querySelector('#confirm').open")
        .await;
    browser.click("#confirm-yes").await;
    browser.until_shows("#banners", "All limits are off").await;
    let answer = gateway.send(RESEARCH, &alice).await;
    assert_eq!(
        (answer.status, answer.header("x-ratelimit-limit")),
        (200, None)
    );
    browser.click("#maintenance-off").await;
    browser
        .until("document.querySelector('#banners').innerText === ''")
        .await;
    let answer = gateway.send(RESEARCH, &alice).await;
    assert_eq!(answer.number("x-ratelimit-limit"), 10);
    // The browser's own validation of the wrong limit.
    let complaints = browser.complaints();
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    assert!(complaints[0].contains("422"), "{complaints:#?}");
    browser.close().await;
}

#[tokio::test]
async fn a_wrong_token_is_reported_and_not_kept() {
    let gateway = gateway().await;
    let mut browser = Browser::open(&page(&gateway), WIDE, "light").await;
    browser
        .until("!document.querySelector('#sign-in').hidden")
        .await;
    assert_eq!(
        browser.complaints(),
        [""; 0],
        "no request is sent without a token"
    );
    let kept = "JSON.stringify([sessionStorage['tollgate-token'], localStorage['tollgate-token'], document.cookie])";
    browser.write("#token", "not-the-admin-token").await;
    browser.press("Enter").await;
    browser
        .until_shows("#sign-in-problem", "This is not an admin token.")
        .await;
    assert_eq!(browser.value(kept).await, json!(r#"[null,null,""]"#));
    browser.picture("sign-in").await;
    browser.sign_in(TOKEN).await;
    let expected = format!(r#"["{TOKEN}",null,""]"#);
    assert_eq!(browser.value(kept).await, json!(expected));
    // The token is in no URL.
    let address = browser.value("location.href").await;
    assert_eq!(address, json!(page(&gateway)));
    browser.click("#leave").await;
    browser
        .until("!document.querySelector('#sign-in').hidden")
        .await;
    assert_eq!(browser.value(kept).await, json!(r#"[null,null,""]"#));
    assert_eq!(
        browser
            .value("document.querySelector('#overview').offsetParent")
            .await,
        json!(null)
    );
    // The browser's own message about the one 401.
    let complaints = browser.complaints();
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    assert!(complaints[0].contains("401"), "{complaints:#?}");
    browser.close().await;
}

#[tokio::test]
async fn empty_states_and_an_unreachable_server_are_shown() {
    let gateway = gateway().await;
    let mut browser = opened(&gateway, WIDE, "light").await;
    for (element, text) in [
        ("#denied-day", "0"),
        ("#denied-change", "No day before to compare with yet"),
        ("#worst-endpoint", "None"),
        ("#ordinary", "–"),
        ("#timeline", "There were no requests yet."),
        ("#endpoints", "No endpoint has denied a request."),
        ("#offenders", "No caller was denied in the past hour."),
        ("#gauges", "There were no requests in the past hour."),
        (
            "#overrides",
            "None. Every caller has the limits of the policy.",
        ),
        ("#policy-version", "Version 1"),
        ("#rules", "secrets-rotate"),
    ] {
        browser.until_shows(element, text).await;
    }
    browser.picture("empty").await;

    // By keyboard: skip to the chart and move along it.
    browser
        .value("document.querySelector('#timeline svg').focus()")
        .await;
    browser.press("ArrowLeft").await;
    browser
        .until_shows("#timeline .tip", "0 denied, 0 allowed")
        .await;
    assert_eq!(browser.complaints(), [""; 0]);

    assert_eq!(gateway.example.terminate().await, Some(0));
    browser
        .until_shows("#banners", "The server does not answer.")
        .await;
    browser.until_shows("#pulse", "No answer, again in").await;
    browser.picture("gone").await;
    browser.close().await;
}

#[tokio::test]
async fn an_unavailable_store_is_shown_at_the_top() {
    let redis = Server::absent(&[]);
    let url = redis.url();
    let variables = [("ADMIN_TOKEN", TOKEN), ("REDIS_URL", &url)];
    let gateway = Gateway::start_with(&variables).await;
    gateway
        .send("GET /v1/secrets", &Caller::user("alice", "free"))
        .await;
    let mut browser = opened(&gateway, WIDE, "light").await;
    browser
        .until_shows("#banners", "The store is unavailable.")
        .await;
    browser
        .until_shows("#banners", "Limits hold in this process only")
        .await;
    look_up(&mut browser, "alice").await;
    browser
        .until_shows("#found", "counts of this process only")
        .await;
    browser.picture("degraded").await;
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}

#[tokio::test]
async fn pages_fit_on_a_small_screen() {
    let gateway = gateway().await;
    let waves = waves();
    attack(&gateway, &waves).await;
    let mut browser = Browser::open(&page(&gateway), NARROW, "light").await;
    browser
        .until("!document.querySelector('#sign-in').hidden")
        .await;
    assert!(browser.fits().await, "signing in");
    browser.sign_in(TOKEN).await;
    browser
        .until_shows("#denied-day", &denied(&waves).to_string())
        .await;
    browser.until_shows("#rules", "secrets-rotate").await;
    assert!(browser.fits().await, "the overview");
    look_up(&mut browser, "alice").await;
    assert!(browser.fits().await, "a caller");
    // No control is outside of the screen or too small to touch.
    let small = browser.value(
        "[...document.querySelectorAll('button, input, select, nav a')].filter((it) => it.offsetParent)\
         .map((it) => [it.id || it.textContent, it.getBoundingClientRect()])\
         .filter(([, at]) => at.left < 0 || at.right > 320 || at.height < 28).map(([name]) => name)",
    );
    assert_eq!(small.await, json!([]));
    browser.picture("phone").await;
    assert_eq!(browser.complaints(), [""; 0]);
    browser.close().await;
}

/// Every control and chart has an accessible name.
#[tokio::test]
async fn controls_and_charts_have_accessible_names() {
    let gateway = gateway().await;
    attack(&gateway, &waves()).await;
    let mut browser = opened(&gateway, WIDE, "light").await;
    look_up(&mut browser, "alice").await;
    let nameless = browser.value(
        "[...document.querySelectorAll('input, select')].filter((it) => it.labels.length === 0).map((it) => it.id)\
         .concat([...document.querySelectorAll('button')].filter((it) => !it.innerText.trim() && !it.ariaLabel && it.offsetParent).map((it) => it.id))",
    );
    assert_eq!(nameless.await, json!([]));
    // Ids are unique.
    let twice = browser.value(
        "[...document.querySelectorAll('[id]')].map((it) => it.id).filter((id, at, all) => all.indexOf(id) !== at)",
    );
    assert_eq!(twice.await, json!([]));
    let said = browser
        .value("document.querySelector('#timeline svg').ariaLabel")
        .await;
    let said = said.as_str().unwrap();
    assert!(
        said.starts_with("90 denials in the past hour, at most "),
        "{said}"
    );
    browser.click(".as-table summary").await;
    browser
        .until("document.querySelector('#timeline-table table').rows.length >= 2")
        .await;
    // The first tab stop skips the navigation.
    let first = "document.querySelector('a, button, input, select, [tabindex]').hash";
    assert_eq!(browser.value(first).await, json!("#content"));
    browser.close().await;
}
