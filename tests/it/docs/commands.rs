//! Runs every command on a page. A command in [`not_run`] is checked instead.

pub(crate) mod program;

use std::net::SocketAddr;

use super::getting_started;
use super::manifest::Manifest;
use super::not_run;
use super::page::{Page, examples, pages};
use super::snippets::policy_of;
use crate::curl::{assert_is_shown, replay, words};
use crate::examples::SERVERS;
use crate::examples::process::{Example, ended};
use crate::redis::server::Server;
use crate::support::root;

/// Address of the servers on pages.
const SHOWN_ADDRESS: &str = "127.0.0.1:3000";

/// A command, and the output that the page shows.
#[derive(Debug)]
pub(super) struct Command {
    /// Path and line, such as `README.md:47`.
    pub(super) place: String,
    pub(super) text: String,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    /// Standard output of the command.
    Output(String),
    /// Response of the server that the command calls.
    Answer(String),
}

/// Returns whether code within a line is a command, and not only a name.
fn is_command(span: &str) -> bool {
    let begins = ["cargo ", "curl ", "./scripts/", "scripts/"];
    let is_complete = !span.contains('…');
    let is_ours = span.starts_with("tollgate ") && span.split(' ').count() > 2;
    is_complete && (is_ours || begins.iter().any(|begin| span.starts_with(begin)))
}

/// Returns all commands of a page: those in blocks, then those within lines.
fn commands(page: &Page) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut ends_with_sh = false;
    for block in page.blocks() {
        let place = format!("{}:{}", page.path, block.line);
        let command = |text: &str, shown| Command {
            place: place.clone(),
            text: text.to_owned(),
            shown,
        };
        match &*block.language {
            "sh" => {
                let lines = block
                    .text
                    .lines()
                    .map(|line| line.split(" #").next().unwrap());
                let lines = lines.map(str::trim).filter(|line| !line.is_empty());
                commands.extend(lines.map(|line| command(line, Shown::Nothing)));
            }
            "console" => {
                let (line, output) = block.text.split_once('\n').unwrap();
                let line = line.strip_prefix("$ ").expect("a command after a prompt");
                assert!(
                    !output.contains("\n$ "),
                    "{place}: more than one command in a block"
                );
                commands.push(command(line, Shown::Output(output.to_owned())));
            }
            "http" => match commands.last_mut() {
                Some(last) if ends_with_sh && last.text.starts_with("curl ") => {
                    last.shown = Shown::Answer(block.text.clone());
                }
                // `examples::readme` compares the response that the README shows.
                _ => assert_eq!(
                    page.path, "README.md",
                    "{place}: a response without a command"
                ),
            },
            _ => {}
        }
        ends_with_sh = block.language == "sh";
    }
    let spans = page
        .spans()
        .into_iter()
        .filter(|(_, span)| is_command(span));
    commands.extend(spans.map(|(line, text)| Command {
        place: format!("{}:{line}", page.path),
        text,
        shown: Shown::Nothing,
    }));
    commands
}

/// Runs a command, or checks the names in it. `Err` contains the error.
async fn run_or_check(page: &Page, command: &Command) -> Result<(), String> {
    if let Some(known) = not_run::find(&command.text) {
        return (known.check)(&words(&command.text));
    }
    let mut words = words(&command.text);
    let is_setting = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.contains('/'))
    };
    let settings = words.iter().take_while(|word| is_setting(word)).count();
    let settings: Vec<String> = words.drain(..settings).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["tollgate", arguments @ ..] => tollgate(page, command, arguments),
        ["cargo", "run", "-p", package, "--", arguments @ ..] => {
            not_run::has_program(package)?;
            tollgate(page, command, arguments)
        }
        ["cargo", "run", "-p", package] => {
            let (name, features) = Manifest::of_example_package(package)?;
            start(&name, &settings, &features).await
        }
        ["cargo", "run", arguments @ ..] => example(&settings, arguments).await,
        ["curl", ..] => curl(page, command).await,
        _ => Err("neither run nor in the list of commands that are not run".to_owned()),
    }
}

/// Runs the program on the policy file of the page, or else on that of the command line guide.
fn tollgate(page: &Page, command: &Command, arguments: &[&str]) -> Result<(), String> {
    let policy = policy_of(page).or_else(|| policy_of(&Page::read("src/docs/command_line.md")));
    let directory = page.path.replace('/', "-");
    let run = program::run(&directory, &policy.unwrap(), arguments);
    if !run.status.success() || !run.stderr.is_empty() {
        return Err(format!("{run:?}"));
    }
    let printed = String::from_utf8(run.stdout).unwrap();
    match &command.shown {
        Shown::Output(output) if *output != printed => Err(format!("prints\n{printed}")),
        _ => Ok(()),
    }
}

/// Checks the features of `cargo run --example`, and runs the example. Cargo has built it for the tests.
async fn example(settings: &[String], arguments: &[&str]) -> Result<(), String> {
    let (name, given) = match arguments {
        ["--example", name] => (name, ""),
        ["--example", name, "--features", features] => (name, *features),
        _ => return Err("not `cargo run --example NAME --features LIST`".to_owned()),
    };
    let given: Vec<&str> = given.split_terminator(',').collect();
    let manifest = Manifest::of_the_library();
    if let Some(unknown) = given.iter().find(|name| !manifest.has_feature(name)) {
        return Err(format!("there is no feature `{unknown}`"));
    }
    let missing = manifest.missing_features(name, &given);
    if !missing.is_empty() {
        return Err(format!("missing features: {missing:?}"));
    }
    if !root().join(format!("examples/{name}.rs")).exists() {
        return Err(format!("there is no example `{name}`"));
    }
    start(name, settings, &given).await
}

/// Starts an example that is built with these features.
async fn start(
    name: &str,
    settings: &[String],
    features: &[impl AsRef<str>],
) -> Result<(), String> {
    let has_redis = features.iter().any(|name| name.as_ref() == "redis");
    let redis = settings
        .iter()
        .any(|setting| setting.starts_with("REDIS_URL="));
    let redis = redis.then(Server::start);
    let url = redis.as_ref().map(Server::url).unwrap_or_default();
    // The client example sends fewer requests than by default.
    let mut variables = vec![("CALLS", "10"), ("CLIENTS", "2")];
    for setting in settings {
        match setting.split_once('=').unwrap() {
            ("REDIS_URL", _) if has_redis => variables.push(("REDIS_URL", &url)),
            ("REDIS_URL", _) => return Err("REDIS_URL needs the feature `redis`".to_owned()),
            ("PORT", _) => {}
            other => variables.push(other),
        }
    }
    if SERVERS.contains(&name) {
        let _listens = Example::start(name, &variables).await;
        return Ok(());
    }
    let end = ended(name, &variables).await;
    match end.code {
        Some(0) => Ok(()),
        _ => Err(end.stderr),
    }
}

/// Sends a request to the server of the page.
async fn curl(page: &Page, command: &Command) -> Result<(), String> {
    let example = page.path.strip_prefix("examples/");
    let example = example.and_then(|path| {
        let package = path.strip_suffix("/src/main.rs");
        package.or_else(|| path.strip_suffix(".rs"))
    });
    let running;
    let server: SocketAddr = if let Some(name) = example {
        running = Example::start(name, &[]).await;
        running.address()
    } else if page.path == getting_started::PAGE {
        getting_started::serve(getting_started::app()).await
    } else {
        return Err("the page starts no server".to_owned());
    };
    let here = command.text.replace(SHOWN_ADDRESS, &server.to_string());
    let answers = replay(server, &here).await;
    let last = answers.last().unwrap();
    if let Shown::Answer(shown) = &command.shown {
        assert_is_shown(last, shown);
    }
    // The last request of several exceeds the limit.
    let expected = if answers.len() == 1 { 200 } else { 429 };
    let seen = (answers[0].status, last.status);
    if seen == (200, expected) {
        Ok(())
    } else {
        Err(format!("first status {}, last status {}", seen.0, seen.1))
    }
}

#[tokio::test]
async fn every_command_works_as_its_page_shows() {
    let mut wrong = Vec::new();
    let mut done = 0;
    for page in pages().into_iter().chain(examples()) {
        for command in commands(&page) {
            done += 1;
            if let Err(why) = run_or_check(&page, &command).await {
                wrong.push(format!("{}: `{}`: {why}", command.place, command.text));
            }
        }
    }
    assert!(done > 35, "only {done} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn unknown_commands_are_detected() {
    let readme = Page::read("README.md");
    for text in [
        "cargo run --example quickstrat",
        "cargo run --example grpc",
        "cargo run --example polite_client",
        "cargo run --example polite_client --features clinet",
        "cargo run -p example-gatewya",
        "cargo run -p gateway",
        "REDIS_URL=redis://127.0.0.1 cargo run --example quickstart",
        "cargo bench -p tollgate-bench --bench speed",
        "cargo add tollgate --features raddis",
        "cargo add no-such-crate",
        "cargo install tollgate",
        "cargo install tollgate-clii",
        "cargo install --path clii",
        "cargo install --path .",
        "cargo run -p tollgate-clii -- check limits.toml",
        "cargo run -p tollgate-cli -- chekc limits.toml",
        "cargo nextest run -p tollgate -p tollgate-tests --all-features no_such_tests",
        "./scripts/tests",
        "cargo frobnicate",
        "make test",
        "tollgate chekc limits.toml",
        "curl http://127.0.0.1:3000/",
    ] {
        let command = Command {
            place: "here".to_owned(),
            text: text.to_owned(),
            shown: Shown::Nothing,
        };
        assert!(run_or_check(&readme, &command).await.is_err(), "{text}");
    }
}

#[test]
fn every_command_that_is_not_run_is_on_a_page() {
    let all: Vec<Page> = pages().into_iter().chain(examples()).collect();
    let found: Vec<Command> = all.iter().flat_map(commands).collect();
    for known in not_run::LIST {
        assert!(
            found
                .iter()
                .any(|command| command.text.starts_with(known.begins)),
            "no page contains `{}`",
            known.begins
        );
    }
}
