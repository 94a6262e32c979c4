//! The ways in which files are replaced.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Directory, eventually, limit_of, limited, make_pipe, policy};

/// Much longer than a reload takes.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_file_that_is_written_over_is_read_again() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    limits.watch().unwrap();
    limits.watch().unwrap();
    for version in 2..5 {
        directory.write("limits.toml", &policy(10 * version));
        let took = eventually("read", || {
            limits.policy_status().version() == u64::from(version)
        });
        assert!(took < SOON, "{took:?}");
        assert_eq!(limit_of(&app).await, u64::from(10 * version));
    }
    // An identical file is no change.
    directory.write("limits.toml", &policy(40));
    directory.write("other.toml", &policy(1));
    directory.write("limits.toml", &policy(50));
    eventually("read", || limits.policy_status().version() == 5);
}

#[tokio::test]
async fn a_file_that_is_renamed_into_place_is_read_again() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    limits.watch().unwrap();
    for version in 2..5 {
        let new = directory.write("limits.toml.new", &policy(10 * version));
        fs::rename(new, &file).unwrap();
        eventually("read", || {
            limits.policy_status().version() == u64::from(version)
        });
        assert_eq!(limit_of(&app).await, u64::from(10 * version));
    }
}

/// As some editors do it.
#[tokio::test]
async fn a_file_that_goes_away_and_comes_back_is_read_again() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    limits.watch().unwrap();
    fs::rename(&file, directory.path("limits.toml~")).unwrap();
    directory.write("limits.toml", &policy(20));
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(
        limits.policy_status().failures(),
        0,
        "it was gone only for a moment"
    );

    // A missing file is reported, and the policy stays.
    fs::remove_file(&file).unwrap();
    eventually("reported", || limits.policy_status().failures() == 1);
    let problem = limits.policy_status().problem().unwrap().to_owned();
    assert!(problem.contains("file not found"), "{problem}");
    assert_eq!(limit_of(&app).await, 20);
    directory.write("limits.toml", &policy(30));
    eventually("read", || limits.policy_status().version() == 3);
}

/// As Kubernetes does it: `limits.toml` is a link into `..data`, which is a link to a directory
/// that is replaced.
#[tokio::test]
async fn a_config_map_is_read_again() {
    let directory = Directory::new();
    let generation = |number: u32| {
        let name = format!("..2026_11_{number:02}");
        fs::create_dir(directory.path(&name)).unwrap();
        directory.write(&format!("{name}/limits.toml"), &policy(10 * number));
        symlink(&name, directory.path("..data_tmp")).unwrap();
        fs::rename(directory.path("..data_tmp"), directory.path("..data")).unwrap();
    };
    generation(1);
    let file = directory.path("limits.toml");
    symlink("..data/limits.toml", &file).unwrap();
    let (limits, app) = limited(&file);
    limits.watch().unwrap();
    for number in 2..6 {
        generation(number);
        fs::remove_dir_all(directory.path(&format!("..2026_11_{:02}", number - 1))).unwrap();
        eventually("read", || {
            limits.policy_status().version() == u64::from(number)
        });
        assert_eq!(limit_of(&app).await, u64::from(10 * number));
    }
    assert_eq!(limits.policy_status().failures(), 0);
}

/// A whole directory that is taken away takes the system's watch with it.
#[tokio::test]
async fn a_directory_that_is_replaced_is_still_watched() {
    let directory = Directory::new();
    fs::create_dir(directory.path("config")).unwrap();
    let file = directory.write("config/limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    for version in 2..4 {
        fs::rename(directory.path("config"), directory.path("old")).unwrap();
        fs::create_dir(directory.path("config")).unwrap();
        directory.write("config/limits.toml", &policy(10 * version));
        eventually("read", || {
            limits.policy_status().version() == u64::from(version)
        });
        fs::remove_dir_all(directory.path("old")).unwrap();
    }
}

/// Between reading the file and watching it, it may have changed.
#[tokio::test]
async fn nothing_is_missed_before_the_watch_begins() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    directory.write("limits.toml", &policy(20));
    limits.watch().unwrap();
    eventually("read", || limits.policy_status().version() == 2);
}

/// Between reading the file and making a layer of it, too: what was in it was looked up only
/// then, and taken for what had been read.
#[tokio::test]
async fn nothing_is_missed_before_there_is_a_layer() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let config = tollgate::config::Config::from_file(&file).unwrap();
    directory.write("limits.toml", &policy(20));
    let limits = config.into_layer().build().unwrap();
    limits.watch().unwrap();
    eventually("read", || limits.policy_status().version() == 2);
}

#[test]
fn the_watch_ends_with_the_layer() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, app) = limited(&file);
    let probe = Arc::new(());
    let held = Arc::clone(&probe);
    let config = tollgate::config::Config::from_file(&file).unwrap();
    let watched = config.into_layer().identify_with(move |_| {
        let _ = &held;
        None
    });
    let watched = watched.build().unwrap();
    watched.watch().unwrap();
    drop((watched, limits, app));
    eventually("over", || Arc::strong_count(&probe) == 1);
}

/// Writes a file in two pieces with a pause between them, in place.
fn write_in_pieces(file: &std::path::Path, pieces: [&str; 2], pause: Duration) {
    let mut open = fs::File::create(file).unwrap();
    open.write_all(pieces[0].as_bytes()).unwrap();
    open.flush().unwrap();
    thread::sleep(pause);
    open.write_all(pieces[1].as_bytes()).unwrap();
}

/// Both pieces are valid policies, so only the pause shows that the first one is incomplete.
#[tokio::test]
async fn a_file_written_in_two_pieces_is_never_loaded_in_between() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    for (round, pause) in (1_u64..).zip([60, 100, 150, 200]) {
        let global = policy(100 + u32::try_from(round).unwrap());
        let login = "[[endpoints]]\nroute = \"POST /login\"\nlimit = \"5/hour\"\n";
        write_in_pieces(&file, [&global, login], Duration::from_millis(pause));
        let before = limits.policy_status().version();
        assert_eq!(before, round, "loaded during a pause of {pause} ms");
        eventually("read", || limits.policy_status().version() == round + 1);
    }
    assert_eq!(limits.policy_status().failures(), 0);
}

/// Also a file that takes the place of a removed one is not loaded before it is complete.
#[tokio::test]
async fn a_new_file_written_in_two_pieces_is_never_loaded_in_between() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    fs::rename(&file, directory.path("limits.toml~")).unwrap();
    let pieces = [&policy(20), "[defaults]\nwarn_at = 0.5\n"];
    write_in_pieces(&file, pieces, Duration::from_millis(200));
    assert_eq!(limits.policy_status().version(), 1);
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(limits.policy_status().failures(), 0);
}

/// A renamed file is complete, so it need not stay unchanged for a second first.
#[tokio::test]
async fn a_renamed_file_is_loaded_at_once() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    let mut fastest = Duration::MAX;
    for version in 2..5 {
        let new = directory.write("limits.toml.new", &policy(version));
        fs::rename(new, &file).unwrap();
        let took = eventually("read", || {
            limits.policy_status().version() == u64::from(version)
        });
        fastest = fastest.min(took);
    }
    assert!(fastest < Duration::from_millis(900), "{fastest:?}");
}

/// What is in the place of the file may change from one thing that cannot be read to another.
#[tokio::test]
async fn problem_describes_a_directory_or_device_in_place_of_the_file() {
    let directory = Directory::new();
    let file = directory.write("limits.toml", &policy(10));
    let (limits, _) = limited(&file);
    limits.watch().unwrap();
    let reports = |expected: &str| {
        eventually(expected, || {
            let status = limits.policy_status();
            status
                .problem()
                .is_some_and(|problem| problem.contains(expected))
        });
    };
    fs::remove_file(&file).unwrap();
    reports("file not found");
    fs::create_dir(&file).unwrap();
    reports("the path is a directory");
    fs::remove_dir(&file).unwrap();
    make_pipe(&file);
    reports("the path is a pipe, a socket or a device");
    fs::remove_file(&file).unwrap();
    directory.write("limits.toml", &policy(20));
    eventually("read", || limits.policy_status().version() == 2);
    assert_eq!(limits.policy_status().problem(), None);
}
