//! Three messages per minute: the shortest useful program.
//!
//! ```sh
//! cargo run --example first_limit
//! ```

#![expect(clippy::print_stdout, reason = "the example prints its results")]

use tollgate::Limiter;

fn main() -> Result<(), tollgate::Error> {
    let messages = Limiter::new("3/minute")?;

    for number in 1..=4 {
        let decision = messages.check("alice").wait()?;
        if decision.is_allowed() {
            println!("message {number}: sent, {} left", decision.remaining());
        } else {
            let wait = decision.retry_after().unwrap_or_default();
            println!(
                "message {number}: too many, try again in {} s",
                wait.as_secs_f64().ceil()
            );
        }
    }
    Ok(())
}
