//! Cargo builds the program for this test. The tests in `tests/it/examples` run it as well.

use std::process::Command;

#[test]
fn wrong_port_ends_the_program_with_code_2() {
    let program = env!("CARGO_BIN_EXE_gateway");
    let output = Command::new(program)
        .env_clear()
        .env("PORT", "many")
        .output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("PORT=\"many\" cannot be used"),
        "{message}"
    );
    assert!(output.stdout.is_empty());
}
