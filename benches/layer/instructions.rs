//! A fixed number of requests and nothing else, for tools that count instructions.

use crate::rows::sides;

/// Runs `--instructions <side> <work> <count>`.
pub fn run(words: &[String]) -> Result<(), String> {
    let [side, work, count] = words else {
        return Err("usage: --instructions <side> <work> <count>".to_owned());
    };
    let count = count.parse().map_err(|error| format!("{count}: {error}"))?;
    let side = sides::named(side, work)
        .ok_or_else(|| format!("{side} {work}: no such side, or no such work"))?;
    side.handle(count);
    Ok(())
}
