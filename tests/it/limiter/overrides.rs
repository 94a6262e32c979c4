//! Limits of a limiter that are set at run time.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Clock, Error, Limiter, ManualClock, MemoryStore, Override, Store};

/// Ten a minute for each member of a group.
fn agent(quotas: &[&str]) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let builder = Limiter::builder().name("agent").clock(clock.clone());
    let builder = quotas
        .iter()
        .fold(builder, |builder, quota| builder.quota(*quota));
    (builder.build().unwrap(), clock)
}

fn member<'a>(group: &'a str, user: &'a str) -> [(&'static str, &'a str); 2] {
    [("group", group), ("user", user)]
}

fn set(limiter: &Limiter, new: Result<Override, tollgate::ValidationError>) {
    limiter.set_override(new.unwrap()).wait().unwrap();
}

fn limit_of(limiter: &Limiter, group: &str, user: &str) -> u64 {
    limiter.peek(member(group, user)).wait().unwrap().limit()
}

#[test]
fn a_group_has_a_limit_of_its_own_at_once() {
    let (agent, _clock) = agent(&["10/minute, sliding-log"]);
    for _ in 0..3 {
        let decision = agent.check(member("c1", "ada")).wait().unwrap();
        assert!(decision.is_allowed());
    }
    set(
        &agent,
        Override::new([("group", "c1")], "agent", "4/minute"),
    );
    // Counts are kept, and each member of the group has a counter of its own.
    for user in ["ada", "bob"] {
        let left = agent.remaining(member("c1", user)).wait().unwrap();
        assert_eq!(left, if user == "ada" { 1 } else { 4 });
    }
    assert!(
        agent
            .check(member("c1", "ada"))
            .wait()
            .unwrap()
            .is_allowed()
    );
    let denied = agent.check(member("c1", "ada")).wait().unwrap();
    assert_eq!((denied.is_denied(), denied.limit()), (true, 4));
    assert_eq!(limit_of(&agent, "c2", "ada"), 10);

    set(
        &agent,
        Override::new([("group", "c1")], "agent", "20/minute"),
    );
    assert_eq!(limit_of(&agent, "c1", "ada"), 20);
    assert_eq!(agent.overrides().len(), 1);
    assert!(agent.remove_override([("group", "c1")]).wait().unwrap());
    assert!(!agent.remove_override([("group", "c1")]).wait().unwrap());
    assert_eq!(limit_of(&agent, "c1", "ada"), 10);
}

#[test]
fn exact_subject_wins_over_a_group_and_a_call_wins_over_both() {
    let (agent, _clock) = agent(&["10/minute"]);
    set(
        &agent,
        Override::new([("user", "ada")], "agent", "7/minute"),
    );
    assert_eq!(limit_of(&agent, "c1", "ada"), 7);
    set(
        &agent,
        Override::new([("group", "c1")], "agent", "5/minute"),
    );
    assert_eq!(limit_of(&agent, "c1", "ada"), 5);
    set(
        &agent,
        Override::new(member("c1", "ada"), "agent", "6/minute"),
    );
    assert_eq!(limit_of(&agent, "c1", "ada"), 6);
    let check = agent.peek(member("c1", "ada")).limit(3);
    assert_eq!(check.wait().unwrap().limit(), 3);
}

#[test]
fn pair_and_list_of_one_pair_are_one_subject() {
    let (agent, _clock) = agent(&["10/minute"]);
    let _ = agent.check(("user", "ada")).wait().unwrap();
    assert_eq!(agent.remaining([("user", "ada")]).wait().unwrap(), 9);
    set(
        &agent,
        Override::new([("user", "ada")], "agent", "5/minute"),
    );
    assert_eq!(agent.peek(("user", "ada")).wait().unwrap().limit(), 5);
}

#[test]
fn override_for_an_unnamed_value_does_not_match_a_named_one() {
    let (agent, _clock) = agent(&["10/minute"]);
    set(&agent, Override::new("c1", "agent", "5/minute"));
    let named = agent.peek(("group", "c1")).wait().unwrap();
    assert_eq!(named.limit(), 10);
    assert_eq!(agent.peek("c1").wait().unwrap().limit(), 5);
}

#[test]
fn override_applies_to_the_quota_with_its_window() {
    let (agent, clock) = agent(&["10/minute", "100/hour"]);
    let hour = Override::new("ada", "agent", "50/hour").unwrap();
    let until = clock.now().saturating_add(Duration::from_mins(5));
    agent.set_override(hour.until(until)).wait().unwrap();
    let limits = |agent: &Limiter| {
        let usages = agent.usages("ada").wait().unwrap();
        let usages = usages.usages().iter();
        usages.map(tollgate::Usage::limit).collect::<Vec<u64>>()
    };
    assert_eq!(limits(&agent), [10, 50]);
    clock.set(until);
    assert_eq!(limits(&agent), [10, 100]);
    assert!(agent.overrides().is_empty());
    set(&agent, Override::new("ada", "agent", "blocked"));
    assert!(agent.check("ada").wait().unwrap().can_never_succeed());
}

#[test]
fn override_that_cannot_apply_is_rejected() {
    let (agent, _clock) = agent(&["10/minute, sliding-log", "100/hour"]);
    for (new, expected) in [
        (
            Override::new("ada", "chat", "5/minute"),
            "the name of the limiter, `agent`",
        ),
        (
            Override::new("ada", "agent", "5/day"),
            "in the window of `10/1m, sliding-log` or `100/1h`",
        ),
        (
            Override::new("ada", "agent", "1000000/minute"),
            "an amount that can be counted",
        ),
    ] {
        let error = agent.set_override(new.unwrap()).wait().unwrap_err();
        assert!(matches!(error, Error::Invalid(_)));
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(agent.overrides().is_empty());
}

#[test]
fn limiters_that_share_a_store_do_not_share_limits() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let [mail, chat] = ["mail", "chat"].map(|name| {
        let builder = Limiter::builder().name(name).quota("5/hour");
        builder.store(Arc::clone(&store)).build().unwrap()
    });
    set(&mail, Override::new("ada", "mail", "7/hour"));
    assert_eq!(mail.remaining("ada").wait().unwrap(), 7);
    assert_eq!(chat.remaining("ada").wait().unwrap(), 5);
    assert_eq!((mail.overrides().len(), chat.overrides().len()), (1, 0));
    assert!(!chat.remove_override("ada").wait().unwrap());
    assert_eq!(mail.remaining("ada").wait().unwrap(), 7);
}

/// Under an `unlimited` override nothing is counted, so a refund of such a charge does not reduce
/// the counter.
#[test]
fn uncounted_charge_refunds_nothing() {
    let (agent, _clock) = agent(&["10/minute"]);
    assert_eq!(agent.check("ada").cost(4).wait().unwrap().charged(), 4);
    set(&agent, Override::new("ada", "agent", "unlimited"));
    let free = agent.check("ada").cost(3).wait().unwrap();
    agent.refund("ada", free).wait().unwrap();
    assert!(agent.remove_override("ada").wait().unwrap());
    assert_eq!(agent.peek("ada").wait().unwrap().used(), 4);
}

/// Overrides store addresses as addresses. A subject that was counted by the text of its address
/// could not be blocked.
#[test]
fn address_and_its_text_are_one_subject() {
    let (agent, _clock) = agent(&["10/minute"]);
    let limit = |ip: &str| agent.peek([("ip", ip)]).wait().unwrap().limit();
    set(
        &agent,
        Override::new([("ip", "203.0.113.9")], "agent", "5/minute"),
    );
    assert_eq!((limit("203.0.113.9"), limit("203.0.113.8")), (5, 10));
    let pair = agent.peek([("user", "ada"), ("ip", "203.0.113.9")]);
    assert_eq!(pair.wait().unwrap().limit(), 5);
    let address: std::net::IpAddr = [203, 0, 113, 9].into();
    assert_eq!(agent.peek([("ip", address)]).wait().unwrap().limit(), 5);
    assert!(
        agent
            .remove_override([("ip", "203.0.113.9")])
            .wait()
            .unwrap()
    );
    assert_eq!(limit("203.0.113.9"), 10);
}

#[tokio::test]
async fn block_with_an_end_is_over_after_retry_after() {
    let (agent, clock) = agent(&["10/minute", "100/hour"]);
    clock.step_wall_forward(Duration::from_hours(3));
    let until = clock.now().offset_by(clock.wall_offset() + 300_000_000);
    let block = Override::new("ada", "agent", "blocked").unwrap();
    agent.set_override(block.until(until)).wait().unwrap();

    let denied = agent.check("ada").wait().unwrap();
    assert!(denied.is_denied() && !denied.can_never_succeed());
    assert_eq!(denied.retry_after(), Some(Duration::from_mins(5)));
    assert_eq!((denied.reset_at(), denied.charged()), (until, 0));
    let usages = agent.usages("ada").wait().unwrap();
    assert!(
        usages
            .usages()
            .iter()
            .all(|usage| usage.reset_at() == until)
    );
    assert_eq!(agent.reserve("ada").wait().unwrap().decision(), &denied);
    let too_short = agent.check("ada").until_ready(Duration::from_mins(4));
    assert!(too_short.await.unwrap().is_denied());

    clock.advance(Duration::from_mins(5));
    assert_eq!(agent.check("ada").wait().unwrap().remaining(), 9);
}

/// A block without an end weighs more than one with an end.
#[test]
fn longest_block_is_reported() {
    let (agent, clock) = agent(&["10/minute"]);
    let until = clock.now().saturating_add(Duration::from_mins(5));
    let short = Override::new([("user", "ada")], "agent", "blocked").unwrap();
    agent.set_override(short.until(until)).wait().unwrap();
    set(
        &agent,
        Override::new(member("c1", "ada"), "agent", "blocked"),
    );
    let denied = agent.check(member("c1", "ada")).wait().unwrap();
    assert_eq!(
        (denied.can_never_succeed(), denied.retry_after()),
        (true, None)
    );
    let denied = agent.check(member("c2", "ada")).wait().unwrap();
    assert_eq!(denied.retry_after(), Some(Duration::from_mins(5)));
}
