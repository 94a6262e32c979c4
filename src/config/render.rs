//! Renders problems with the lines of the file, as compilers do.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::error::ConfigErrorInner;
use super::problem::ConfigProblem;
use super::tree::{SourceSpan, SpanOrigin, Variable};

/// Longest line, in bytes, that is shown whole. Some files consist of one line.
const WIDEST: usize = 400;

/// Longest text of what is expected that is shown as a label. A longer one becomes a note.
const WIDEST_LABEL: usize = 90;

/// Start positions of the lines of a text.
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    /// Returns the index of the line that contains a byte.
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// Returns line and column of a byte. Both start at 1; columns are in characters.
    pub(super) fn position(&self, text: &str, at: usize) -> (usize, usize) {
        let at = boundary(text, at);
        let line = self.line(at);
        let before = text[self.starts[line]..at].chars().count();
        (line + 1, before + 1)
    }

    /// Returns the range of the line that contains a byte, with its line feed.
    fn around(&self, text: &str, at: usize) -> Range<usize> {
        let line = self.line(at);
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        self.starts[line]..end
    }
}

/// Returns the last character boundary that is not after `at`.
fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

pub(super) fn render(error: &ConfigErrorInner, coloured: bool) -> String {
    let renderer = if coloured {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let lines = Lines::of(&error.text);
    let shown = error.problems.iter().map(|problem| {
        let group = group(error, &lines, problem);
        renderer.render(&[group])
    });
    let mut shown: Vec<String> = shown.collect();
    if error.more > 0 {
        let title = Level::ERROR.primary_title(format!("and {} more problems", error.more));
        shown.push(renderer.render(&[Group::with_title(title)]));
    }
    shown.join("\n\n")
}

fn group<'a>(error: &'a ConfigErrorInner, lines: &Lines, problem: &'a ConfigProblem) -> Group<'a> {
    let title = match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    };
    let mut group = Group::with_title(Level::ERROR.primary_title(title));
    let expected = problem
        .expected
        .as_ref()
        .map(|expected| format!("expected {expected}"));
    let (label, note) = match expected {
        Some(long) if long.len() > WIDEST_LABEL || problem.span.is_none() => (None, Some(long)),
        short => (short, None),
    };
    match &problem.span {
        Some(span) => {
            let mut annotations = vec![(span, AnnotationKind::Primary, label)];
            let other = problem.other.iter();
            annotations.extend(
                other.map(|(span, label)| {
                    (span, AnnotationKind::Context, Some((*label).to_owned()))
                }),
            );
            let snippets = annotations
                .into_iter()
                .map(|marked| match &marked.0.origin {
                    SpanOrigin::File => in_file(error, lines, marked),
                    SpanOrigin::Variable(variable) => in_variable(variable, marked),
                });
            group = group.elements(snippets);
        }
        None => {
            group = group.element(annotate_snippets::Origin::path(error.name.as_str()));
        }
    }
    if let Some(note) = note {
        group = group.element(Level::NOTE.message(note));
    }
    match problem.help.as_deref() {
        Some(help) => group.element(Level::HELP.message(help)),
        None => group,
    }
}

/// Span, kind of annotation, and label.
type Marked<'a> = (&'a SourceSpan, AnnotationKind, Option<String>);

/// Returns the snippet for a span of the file. It has one line only, because the renderer processes
/// all of the text that it gets.
fn in_file<'a>(
    error: &'a ConfigErrorInner,
    lines: &Lines,
    (span, kind, label): Marked<'_>,
) -> Snippet<'a, Annotation<'a>> {
    let text = &error.text;
    let start = boundary(text, span.range.start);
    let mut line = lines.around(text, start);
    if line.len() > WIDEST {
        let from = boundary(text, start.saturating_sub(WIDEST / 4).max(line.start));
        line = from..boundary(text, (from + WIDEST).min(line.end));
    }
    // A table may have many lines; its first line identifies it.
    let end = boundary(text, span.range.end).clamp(start, line.end);
    let span = start - line.start..end - line.start;
    Snippet::source(&text[line])
        .path(error.name.as_str())
        .line_start(lines.line(start) + 1)
        .annotation(kind.span(span).label(label))
}

/// Returns the snippet for an environment variable: `NAME=value`.
fn in_variable(
    variable: &Variable,
    (span, kind, label): Marked<'_>,
) -> Snippet<'static, Annotation<'static>> {
    // As a second snippet below one of the file, the variable needs a name of its own.
    let is_other = kind == AnnotationKind::Context;
    let value = &variable.value;
    let end = boundary(value, WIDEST);
    let from = variable.name.len() + 1;
    let inside = |at: usize| from + boundary(value, at.min(end));
    let span = if span.range.is_empty() {
        0..variable.name.len()
    } else {
        inside(span.range.start)..inside(span.range.end)
    };
    Snippet::source(format!("{}={}", variable.name, &value[..end]))
        .path(is_other.then_some("the environment"))
        .line_numbering(false)
        .annotation(kind.span(span).label(label))
}
