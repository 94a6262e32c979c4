//! Lines whose columns stand one below the other.

use std::fmt::Write;

/// A table in which headings may stand between the rows.
#[derive(Debug, Default)]
pub(super) struct Table {
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Line {
    Heading(String),
    Row(Vec<String>),
}

impl Table {
    /// A line of its own, after an empty one.
    pub(super) fn heading(&mut self, text: impl Into<String>) {
        self.lines.push(Line::Heading(text.into()));
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.lines.push(Line::Row(cells));
    }

    pub(super) fn render(&self, paint: impl Fn(&str) -> String) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for line in &self.lines {
            let Line::Row(cells) = line else {
                continue;
            };
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Heading(heading) => {
                    let _ = writeln!(text, "\n{}", paint(heading));
                }
                Line::Row(cells) => {
                    let mut row = String::from("  ");
                    for (width, cell) in widths.iter().zip(cells) {
                        let _ = write!(row, "{cell:<width$}  ");
                    }
                    let _ = writeln!(text, "{}", row.trim_end());
                }
            }
        }
        text
    }
}
