//! Rows, as a table for people or as JSON for tools.

use std::fmt;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::measure::Duel;

/// What we cost, what a peer costs for the same.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    id: String,
    ours: f64,
    peer: &'static str,
    theirs: f64,
    ratio: f64,
    unit: &'static str,
    #[serde(skip)]
    target: Option<Target>,
}

/// What the ratio is meant to be, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// What is promised.
    pub at_most: f64,
    /// What would be better still.
    pub stretch: Option<f64>,
}

impl Row {
    /// A row of costs; below 1 the ratio is in our favour.
    #[must_use]
    pub fn new(id: &str, peer: &'static str, unit: &'static str, duel: Duel) -> Self {
        Self {
            id: id.to_owned(),
            ours: rounded(duel.ours, 10.0),
            peer,
            theirs: rounded(duel.theirs, 10.0),
            ratio: ratio(duel.ours, duel.theirs),
            unit,
            target: None,
        }
    }

    /// A row of rates; again below 1 the ratio is in our favour.
    #[must_use]
    pub fn of_rates(id: &str, peer: &'static str, unit: &'static str, duel: Duel) -> Self {
        Self {
            ratio: ratio(duel.theirs, duel.ours),
            ..Self::new(id, peer, unit, duel)
        }
    }

    /// Target of the ratio.
    #[must_use]
    pub fn with_target(mut self, target: Option<Target>) -> Self {
        self.target = target;
        self
    }

    fn is_missed(&self) -> bool {
        self.target
            .is_some_and(|target| self.ratio > target.at_most)
    }

    /// Against what does less, such as no layer at all, more than 1 can be the aim.
    fn is_lost(&self) -> bool {
        let aim = self.target.map_or(1.0, |target| target.at_most);
        self.ratio > aim.max(1.0)
    }

    fn result(&self) -> String {
        let mut words = Vec::new();
        if let Some(Target { at_most, stretch }) = self.target {
            let met = match stretch {
                _ if self.is_missed() => "MISSED".to_owned(),
                Some(stretch) if self.ratio <= stretch => format!("met, and {stretch} too"),
                _ => "met".to_owned(),
            };
            words.push(format!("≤ {at_most}: {met}"));
        }
        if self.is_lost() {
            words.push("WE LOSE".to_owned());
        }
        words.join(", ")
    }
}

/// A line of the table.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!(
            "{:<43} {:>8.1} {:>8.1} {:<6} {:<15} {:>6.3}  {}",
            self.id,
            self.ours,
            self.theirs,
            self.unit,
            self.peer,
            self.ratio,
            self.result()
        );
        f.write_str(line.trim_end())
    }
}

/// Of nothing to nothing it is 1: both are as good.
fn ratio(part: f64, whole: f64) -> f64 {
    if part == whole {
        return 1.0;
    }
    rounded(part / whole, 1_000.0)
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// Collects rows, and prints them in the selected format.
#[derive(Debug)]
pub struct Report {
    json: bool,
    rows: Vec<Row>,
    notes: Vec<&'static str>,
}

impl Report {
    /// A report that has no rows yet.
    #[must_use]
    pub const fn new(json: bool) -> Self {
        Self {
            json,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row. In a table it is printed at once.
    ///
    /// # Errors
    /// Where stdout cannot be written to.
    pub fn add(&mut self, row: Row) -> io::Result<()> {
        if !self.json {
            let mut out = io::stdout().lock();
            if self.rows.is_empty() {
                let [id, ours, theirs, peer] = ["", "ours", "theirs", "peer"];
                writeln!(
                    out,
                    "{id:<43} {ours:>8} {theirs:>8}        {peer:<15}  ratio"
                )?;
            }
            writeln!(out, "{row}")?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Whether there is nothing to report.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Something to know about the work or a peer, below the table.
    pub fn note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Prints what is left: the array, or where we lose, and the notes.
    ///
    /// # Errors
    /// Where stdout cannot be written to.
    pub fn finish(self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let rows: Result<Vec<_>, _> = self.rows.iter().map(serde_json::to_string).collect();
            return writeln!(out, "[\n  {}\n]", rows?.join(",\n  "));
        }
        let missed = self.rows.iter().filter(|row| row.is_missed());
        let lost = self.rows.iter().filter(|row| row.is_lost());
        writeln!(out, "\nTargets missed:{}", listed(missed))?;
        writeln!(out, "Where we lose:{}", listed(lost))?;
        for note in &self.notes {
            writeln!(out, "\n{note}")?;
        }
        Ok(())
    }
}

fn listed<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let rows: Vec<_> = rows
        .map(|row| format!("\n  {} ({}) {:.3}", row.id, row.peer, row.ratio))
        .collect();
    if rows.is_empty() {
        " none".to_owned()
    } else {
        rows.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, at_most: f64) -> Row {
        let target = Target {
            at_most,
            stretch: Some(0.35),
        };
        let duel = Duel {
            ours,
            theirs: 100.0,
        };
        Row::new("a/b", "governor", "ns", duel).with_target(Some(target))
    }

    #[test]
    fn row_shows_whether_the_target_is_met() {
        assert_eq!(row(30.0, 0.5).result(), "≤ 0.5: met, and 0.35 too");
        assert_eq!(row(50.0, 0.5).result(), "≤ 0.5: met");
        assert_eq!(row(51.0, 0.5).result(), "≤ 0.5: MISSED");
        assert_eq!(row(101.0, 0.5).result(), "≤ 0.5: MISSED, WE LOSE");
    }

    #[test]
    fn rates_are_better_the_higher_they_are() {
        let duel = Duel {
            ours: 90.0,
            theirs: 99.0,
        };
        let target = Target {
            at_most: 1.2,
            stretch: None,
        };
        let row = Row::of_rates("a/b", "bare", "/s", duel).with_target(Some(target));
        assert!((row.ratio - 1.1).abs() < f64::EPSILON);
        assert_eq!(row.result(), "≤ 1.2: met");
    }

    #[test]
    fn tools_read_six_fields() {
        let json = serde_json::to_string(&row(33.33, 0.5)).unwrap();
        let expected = r#"{"id":"a/b","ours":33.3,"peer":"governor","theirs":100.0,"ratio":0.333,"unit":"ns"}"#;
        assert_eq!(json, expected);
    }
}
