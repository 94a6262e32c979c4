//! Colours, closed pipes, `schema`, `--help` and `--version`.

use std::process::{Command, Stdio};

use crate::support::{GOOD, PROGRAM, TestDir, WRONG, run};

const COMMANDS: [&[&str]; 3] = [
    &["check", "good.toml"],
    &["check", "wrong.toml"],
    &["explain", "good.toml", "--request", "GET /"],
];

fn test_dir(test: &str) -> TestDir {
    TestDir::new(test)
        .with("good.toml", GOOD)
        .with("wrong.toml", WRONG)
}

#[test]
fn piped_output_has_colours_only_on_request() {
    let dir = test_dir("colours");
    for command in COMMANDS {
        let printed = |color: &[&str]| {
            let run = dir.run(&[command, color].concat());
            run.stdout + &run.stderr
        };
        assert!(
            printed(&["--color", "always"]).contains("\x1b["),
            "{command:?}"
        );
        for color in [&["--color", "never"][..], &["--color=auto"], &[]] {
            assert!(!printed(color).contains('\x1b'), "{command:?} {color:?}");
        }
    }
}

/// Uses `script` from util-linux to create a terminal. Skipped where it is not installed.
#[test]
fn terminal_output_has_colours_unless_disabled() {
    let dir = test_dir("terminal");
    let colored = |variables: &[(&str, &str)]| -> Option<bool> {
        let inside = format!("{PROGRAM} check good.toml");
        let mut script = Command::new("script");
        script
            .args(["-q", "-e", "-c", &inside, "/dev/null"])
            .current_dir(dir.path())
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        let output = script.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.contains("good.toml").then(|| text.contains("\x1b["))
    };
    let Some(on_terminal) = colored(&[]) else {
        return eprintln!("skipped: `script` of util-linux is not installed");
    };
    assert!(on_terminal);
    assert_eq!(colored(&[("NO_COLOR", "1")]), Some(false));
    assert_eq!(colored(&[("TERM", "dumb")]), Some(false));
    // An empty value counts as not set.
    assert_eq!(colored(&[("NO_COLOR", "")]), Some(true));
}

/// `tollgate check limits.toml | head -1`
#[test]
fn closed_pipes_do_not_change_the_exit_code() {
    let dir = test_dir("pipes");
    let help: &[&str] = &["--help"];
    for (args, code) in COMMANDS.into_iter().chain([help]).zip([0, 1, 0, 0]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(dir.command(args).stdout(writer));
        assert_eq!(
            (output.code, output.stderr.contains("panicked")),
            (Some(code), false),
            "{args:?}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(
            run(dir.command(args).stderr(writer)).code,
            Some(code),
            "{args:?}"
        );
    }
}

#[test]
fn schema_is_the_published_one() {
    let run = test_dir("schema").run(&["schema"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    assert_eq!(
        run.stdout,
        include_str!("../../../schema/tollgate.schema.json")
    );
}

#[test]
fn help_and_version_succeed_and_wrong_commands_fail() {
    let dir = test_dir("help");
    let run = dir.run(&["--help"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    for expected in ["check", "explain", "schema"] {
        assert!(run.stdout.contains(expected), "{}", run.stdout);
    }
    let run = dir.run(&["--version"]);
    let version = concat!("tollgate ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((run.code, &*run.stdout), (Some(0), version));
    for args in [
        &[][..],
        &["chek"],
        &["check"],
        &["check", "a", "b"],
        &["check", "a", "-x"],
    ] {
        let run = dir.run(args);
        assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{args:?}");
        assert_ne!(run.stderr, "", "{args:?}");
    }
}
