//! Text table with aligned columns.

use std::fmt::Write;

/// Table with headings between the rows. Columns are aligned across headings.
#[derive(Debug, Default)]
pub(super) struct Table {
    lines: Vec<TableLine>,
}

/// Heading or row of a table.
#[derive(Debug)]
enum TableLine {
    Heading(String),
    Row(Vec<String>),
}

impl Table {
    /// Adds a heading, which is printed after an empty line.
    pub(super) fn add_heading(&mut self, text: impl Into<String>) {
        self.lines.push(TableLine::Heading(text.into()));
    }

    /// Adds a row. Rows may differ in length.
    pub(super) fn add_row(&mut self, cells: Vec<String>) {
        self.lines.push(TableLine::Row(cells));
    }

    /// Returns the table as text; `paint` formats the headings.
    pub(super) fn render(&self, paint: impl Fn(&str) -> String) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for line in &self.lines {
            let TableLine::Row(cells) = line else {
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
                TableLine::Heading(heading) => {
                    let _ = writeln!(text, "\n{}", paint(heading));
                }
                TableLine::Row(cells) => {
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
