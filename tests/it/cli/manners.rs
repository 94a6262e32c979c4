//! Colours, pipes and the like.

use std::process::{Command, Stdio};

use super::{GOOD, Place, WRONG, run};

const COMMANDS: [&[&str]; 3] = [
    &["check", "good.toml"],
    &["check", "wrong.toml"],
    &["explain", "good.toml", "--request", "GET /"],
];

fn place(test: &str) -> Place {
    Place::new(test)
        .with("good.toml", GOOD)
        .with("wrong.toml", WRONG)
}

#[test]
fn colours_are_for_those_who_want_them() {
    let place = place("colours");
    for command in COMMANDS {
        let told = |color: &[&str]| {
            let run = place.run(&[command, color].concat());
            run.stdout + &run.stderr
        };
        assert!(
            told(&["--color", "always"]).contains("\x1b["),
            "{command:?}"
        );
        // What goes through a pipe is for a program, or a file.
        for color in [&["--color", "never"][..], &["--color=auto"], &[]] {
            assert!(!told(color).contains('\x1b'), "{command:?} {color:?}");
        }
    }
}

/// With `script`, which makes a terminal for a program, where there is one that knows how.
#[test]
fn terminals_are_coloured_unless_somebody_minds() {
    let place = place("terminal");
    let program = env!("CARGO_BIN_EXE_tollgate");
    let colored = |variables: &[(&str, &str)]| -> Option<bool> {
        let inside = format!("{program} check good.toml");
        let mut script = Command::new("script");
        script
            .args(["-q", "-e", "-c", &inside, "/dev/null"])
            .current_dir(&place.0)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        let output = script.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.contains("good.toml").then(|| text.contains("\x1b["))
    };
    let Some(on_terminal) = colored(&[]) else {
        return eprintln!("there is no script");
    };
    assert!(on_terminal);
    assert_eq!(colored(&[("NO_COLOR", "1")]), Some(false));
    assert_eq!(colored(&[("TERM", "dumb")]), Some(false));
    // Set to nothing is as good as not set.
    assert_eq!(colored(&[("NO_COLOR", "")]), Some(true));
}

/// `tollgate check limits.toml | head -1`
#[test]
fn it_does_not_mind_if_nobody_reads() {
    let place = place("pipes");
    let help: &[&str] = &["--help"];
    for (args, code) in COMMANDS.into_iter().chain([help]).zip([0, 1, 0, 0]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let told = run(place.command(args).stdout(writer));
        assert_eq!(
            (told.code, told.stderr.contains("panicked")),
            (Some(code), false),
            "{args:?}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(
            run(place.command(args).stderr(writer)).code,
            Some(code),
            "{args:?}"
        );
    }
}

/// The one that is published.
#[test]
fn the_schema_is_printed() {
    let run = place("schema").run(&["schema"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    assert_eq!(
        run.stdout,
        include_str!("../../../schema/tollgate.schema.json")
    );
}

#[test]
fn help_is_no_failure_and_nonsense_is() {
    let place = place("help");
    let run = place.run(&["--help"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    for expected in ["check", "explain", "schema"] {
        assert!(run.stdout.contains(expected), "{}", run.stdout);
    }
    let run = place.run(&["--version"]);
    let version = concat!("tollgate ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((run.code, &*run.stdout), (Some(0), version));
    for args in [
        &[][..],
        &["chek"],
        &["check"],
        &["check", "a", "b"],
        &["check", "a", "-x"],
    ] {
        let run = place.run(args);
        assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{args:?}");
        assert_ne!(run.stderr, "", "{args:?}");
    }
}
