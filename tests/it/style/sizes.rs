//! Sizes of source files.

use super::text_files;

#[test]
fn half_of_the_files_have_at_most_150_lines_and_nine_tenths_350() {
    let mut files = text_files(&["src", "cli/src"]);
    files.retain(|file| file.has_extension(&["rs"]));
    let mut sizes: Vec<(usize, String)> = files
        .into_iter()
        .map(|file| (file.text.lines().count(), file.path))
        .collect();
    sizes.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an index into a list of some hundred files"
        )]
        let index = (sizes.len() as f64 * share) as usize;
        &sizes[index]
    };
    assert!(at(0.5).0 <= 150, "median: {:?}", at(0.5));
    assert!(at(0.9).0 <= 350, "nine tenths: {:?}", at(0.9));
}
