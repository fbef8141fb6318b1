//! Selection of groups: by URL, or by name from a configuration file.

use std::path::Path;

use super::group::HostGroup;
use super::problems::{Fault, Problem, Problems};
use super::read::read_file;
use super::url::from_url;

/// The groups that these words select: URLs, or names of groups in `file`. Without words, all groups of the
/// file.
///
/// # Errors
/// All problems of the file, or the first word that is neither.
pub fn chosen(words: &[String], file: Option<&Path>) -> Result<Vec<HostGroup>, Problems> {
    let known = file.map(read_file).transpose()?.unwrap_or_default();
    if words.is_empty() {
        return Ok(known);
    }
    let find = |word: &String| match known.iter().find(|group| group.name == *word) {
        Some(group) => Ok(group.clone()),
        None => from_url(word).map_err(|problem| Problems::from(named(problem, &known))),
    };
    words.iter().map(find).collect()
}

/// Text that is not a URL may be a misspelt name.
fn named(problem: Problem, known: &[HostGroup]) -> Problem {
    if *problem.fault != Fault::Scheme || known.is_empty() {
        return problem;
    }
    let names = known.iter().map(|group| group.name.clone()).collect();
    Problem { fault: Box::new(Fault::NoServer { names }), ..problem }
}
