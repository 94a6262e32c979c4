//! Commands on pages that tests do not run, why not, and what is looked at instead.

use std::fs;

use super::manifest::Manifest;
use crate::support::root;

/// All commands that begin alike.
pub(super) struct NotRun {
    pub(super) begins: &'static str,
    #[expect(dead_code, reason = "it documents the list")]
    because: &'static str,
    /// Looks at what the command names; `Err` says what is wrong.
    pub(super) check: fn(&[String]) -> Result<(), String>,
}

pub(super) const LIST: &[NotRun] = &[
    NotRun {
        begins: "./scripts/",
        because: "`test` is what runs this test, the others take many minutes and valgrind",
        check: script,
    },
    NotRun {
        begins: "scripts/",
        because: "the same",
        check: script,
    },
    NotRun {
        begins: "cargo bench -p tollgate-bench",
        because: "they take minutes, and mean something only on a quiet machine",
        check: bench,
    },
    NotRun {
        begins: "cargo add ",
        because: "it changes another project and calls the registry",
        check: add,
    },
    NotRun {
        begins: "cargo install ",
        because: "it downloads crates and changes the user's programs; the program that it builds is \
                  run by the other commands",
        check: install,
    },
    NotRun {
        begins: "cargo nextest run --all-features ",
        because: "it would run itself",
        check: filter,
    },
    NotRun {
        begins: "cargo nextest run -p ",
        because: "`scripts/test` runs these tests",
        check: |words| has_program(words.last().unwrap()),
    },
    NotRun {
        begins: "cargo doc --all-features --no-deps",
        because: "it takes long, and `scripts/test` does it",
        check: |_| {
            let script = fs::read_to_string(root().join("scripts/test")).unwrap();
            let is_done = script.contains("cargo doc --quiet --all-features --no-deps");
            is_done
                .then_some(())
                .ok_or_else(|| "no script does it".to_owned())
        },
    },
    NotRun {
        begins: "cargo tree ",
        because: "it is how others were counted, in a project made for it",
        check: |_| Ok(()),
    },
    NotRun {
        begins: "cargo run --example polite_client --features client -- ",
        because: "it takes as long as another server has it; examples::polite_client sends less",
        check: |_| Ok(()),
    },
    NotRun {
        begins: "redis-server ",
        because: "tests have a Redis of their own, on a free port, and give it to what comes next",
        check: |_| Ok(()),
    },
    NotRun {
        begins: "grpcurl ",
        because: "few have it; examples::grpc asks the same, with tonic",
        check: |_| Ok(()),
    },
];

pub(super) fn find(command: &str) -> Option<&'static NotRun> {
    LIST.iter().find(|known| command.starts_with(known.begins))
}

/// There is such a script, and it can be run.
fn script(words: &[String]) -> Result<(), String> {
    let file = fs::metadata(root().join(&words[0])).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.permissions().mode() & 0o111 == 0 {
            return Err("it may not be run".to_owned());
        }
    }
    if file.is_file() {
        Ok(())
    } else {
        Err("it is no file".to_owned())
    }
}

/// There is such a benchmark, or none is named.
fn bench(words: &[String]) -> Result<(), String> {
    let mut words = words.iter().skip_while(|word| *word != "--bench").skip(1);
    let Some(name) = words.next() else {
        return Ok(());
    };
    let benchmarks = Manifest::of_the_benchmarks();
    let target = benchmarks.target("bench", name);
    let target = target.ok_or_else(|| format!("there is no benchmark `{name}`"))?;
    let path = format!("benches/{}", target["path"].as_str().unwrap());
    let is_there = root().join(&path).exists();
    is_there
        .then_some(())
        .ok_or_else(|| format!("{path} is not there"))
}

/// The packages are ours or some that are used here, and ours has the features.
fn add(words: &[String]) -> Result<(), String> {
    let manifest = Manifest::of_the_library();
    let mut words = words.iter().skip(2);
    let mut is_ours = false;
    while let Some(word) = words.next() {
        if word == "--features" {
            let list = words.next().ok_or("which features?")?;
            let mut features = list.split(',').filter(|_| is_ours);
            if let Some(unknown) = features.find(|name| !manifest.has_feature(name)) {
                return Err(format!("there is no feature `{unknown}`"));
            }
        } else if word == "--path" {
            words.next().ok_or("which path?")?;
        } else if word == manifest.name() {
            is_ours = true;
        } else if !Manifest::is_used(word) {
            return Err(format!("nothing here was tried with `{word}`"));
        }
    }
    Ok(())
}

/// Checks that the package, or the directory after `--path`, contains the program `tollgate`.
fn install(words: &[String]) -> Result<(), String> {
    match words {
        [_, _, path, directory] if path == "--path" => {
            has_program(Manifest::in_directory(directory)?.name())
        }
        [_, _, package] => has_program(package),
        _ => Err("neither `cargo install PACKAGE` nor `cargo install --path DIRECTORY`".to_owned()),
    }
}

/// Checks that `package` is the name of the package with the program `tollgate`.
pub(super) fn has_program(package: &str) -> Result<(), String> {
    let program = Manifest::of_the_program();
    if program.target("bin", "tollgate").is_none() || program.name() != package {
        return Err(format!("package `{package}` has no program `tollgate`"));
    }
    Ok(())
}

/// What tests are picked by is the name of some.
fn filter(words: &[String]) -> Result<(), String> {
    let name = words.last().unwrap();
    let tests = root().join("tests/it");
    let is_room = tests.join(name).is_dir() || tests.join(format!("{name}.rs")).exists();
    is_room
        .then_some(())
        .ok_or_else(|| format!("no test is in `{name}`"))
}
