//! Commands on pages that tests do not run, with the reason and another check.

use std::fs;

use super::manifest::Manifest;
use crate::support::root;

/// Commands that begin with the same words.
pub(super) struct NotRun {
    pub(super) begins: &'static str,
    #[expect(dead_code, reason = "documents the list")]
    because: &'static str,
    /// Checks the names in the command. `Err` contains the error.
    pub(super) check: fn(&[String]) -> Result<(), String>,
}

pub(super) const LIST: &[NotRun] = &[
    NotRun {
        begins: "./scripts/",
        because: "`test` runs this test; the others take many minutes and need valgrind",
        check: script,
    },
    NotRun {
        begins: "scripts/",
        because: "see ./scripts/",
        check: script,
    },
    NotRun {
        begins: "cargo bench -p tollgate-bench",
        because: "takes minutes, and the result is meaningful only on an idle machine",
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
        begins: "cargo nextest run -p tollgate -p tollgate-tests --all-features ",
        because: "it would run this test",
        check: filter,
    },
    NotRun {
        begins: "cargo nextest run -p ",
        because: "`scripts/test` runs these tests",
        check: |words| has_program(words.last().unwrap()),
    },
    NotRun {
        begins: "cargo doc --all-features --no-deps",
        because: "takes long; `scripts/test` runs it",
        check: |_| {
            let script = fs::read_to_string(root().join("scripts/test")).unwrap();
            let is_done = script.contains("cargo doc --quiet --all-features --no-deps");
            is_done
                .then_some(())
                .ok_or_else(|| "scripts/test does not run it".to_owned())
        },
    },
    NotRun {
        begins: "cargo tree ",
        because: "counts the dependencies of other crates, in a project made for that",
        check: |_| Ok(()),
    },
    NotRun {
        begins: "cargo run --example polite_client --features client -- ",
        because: "takes as long as the limits of another server demand; examples::polite_client sends less",
        check: |_| Ok(()),
    },
    NotRun {
        begins: "redis-server ",
        because: "tests start a Redis on a free port, and pass its address to the commands that follow",
        check: |_| Ok(()),
    },
    NotRun {
        begins: "grpcurl ",
        because: "not installed; examples::grpc sends the same request with tonic",
        check: |_| Ok(()),
    },
];

pub(super) fn find(command: &str) -> Option<&'static NotRun> {
    LIST.iter().find(|known| command.starts_with(known.begins))
}

/// Checks that the script exists and is executable.
fn script(words: &[String]) -> Result<(), String> {
    let file = fs::metadata(root().join(&words[0])).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.permissions().mode() & 0o111 == 0 {
            return Err("it is not executable".to_owned());
        }
    }
    if file.is_file() {
        Ok(())
    } else {
        Err("it is not a file".to_owned())
    }
}

/// Checks that the benchmark exists, if one is named.
fn bench(words: &[String]) -> Result<(), String> {
    let mut words = words.iter().skip_while(|word| *word != "--bench").skip(1);
    let Some(name) = words.next() else {
        return Ok(());
    };
    let benchmarks = Manifest::of_the_benchmarks();
    let target = benchmarks.target("bench", name);
    let target = target.ok_or_else(|| format!("there is no benchmark `{name}`"))?;
    let path = format!("benches/{}", target["path"].as_str().unwrap());
    let exists = root().join(&path).exists();
    exists
        .then_some(())
        .ok_or_else(|| format!("{path} does not exist"))
}

/// Checks that the packages are ours or dependencies, and that ours has the features.
fn add(words: &[String]) -> Result<(), String> {
    let manifest = Manifest::of_the_library();
    let mut words = words.iter().skip(2);
    let mut is_ours = false;
    while let Some(word) = words.next() {
        if word == "--features" {
            let list = words.next().ok_or("no features after --features")?;
            let mut features = list.split(',').filter(|_| is_ours);
            if let Some(unknown) = features.find(|name| !manifest.has_feature(name)) {
                return Err(format!("there is no feature `{unknown}`"));
            }
        } else if word == "--path" {
            words.next().ok_or("no path after --path")?;
        } else if word == "--no-default-features" {
            // No argument.
        } else if word == manifest.name() {
            is_ours = true;
        } else if !Manifest::is_used(word) {
            return Err(format!("`{word}` is not a dependency of this repository"));
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

/// Checks that the filter is the name of a test module.
fn filter(words: &[String]) -> Result<(), String> {
    let name = words.last().unwrap();
    let tests = root().join("tests/it");
    let is_module = tests.join(name).is_dir() || tests.join(format!("{name}.rs")).exists();
    is_module
        .then_some(())
        .ok_or_else(|| format!("there is no test module `{name}`"))
}
