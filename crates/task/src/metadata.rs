//! The task that makes, looks at and removes directories and files.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::options::{OptionParser, WorkerIndex};
use crate::phase::{Measure, Phase};
use crate::stop;

/// What can be done, in the usual order.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Mkdir,
    Create,
    Stat,
    Readdir,
    Unlink,
}

const ALL: [(Operation, &str); 5] = [
    (Operation::Mkdir, "mkdir"),
    (Operation::Create, "create"),
    (Operation::Stat, "stat"),
    (Operation::Readdir, "readdir"),
    (Operation::Unlink, "unlink"),
];

impl Operation {
    fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    fn named(name: &str) -> Result<Operation, Failure> {
        let found = ALL.iter().find(|(_, known)| *known == name);
        found.map(|(operation, _)| *operation).ok_or_else(|| {
            let known = ALL.map(|(_, name)| name).join(", ");
            Failure::Usage(format!("--operations: `{name}` is none of {known}"))
        })
    }
}

/// Directories or files that a worker makes at most: it remembers each.
const MOST: u64 = 100_000_000;

/// Options of the task.
#[derive(Debug)]
pub struct Options {
    operations: Vec<Operation>,
    count: u64,
    directory: PathBuf,
    shared: bool,
    worker: u32,
}

impl Options {
    /// From the command line.
    pub fn parse(mut words: OptionParser) -> Result<Options, Failure> {
        let mut place = WorkerIndex::alone();
        let mut operations = ALL.map(|(operation, _)| operation).to_vec();
        let (mut count, mut total, mut directory, mut shared) = (None, None, None, false);
        while let Some(name) = words.next()? {
            match name.as_str() {
                "directory" => directory = Some(words.path()?),
                "shared" => shared = true,
                "count" => count = Some(words.whole(&name, 0, MOST)?),
                "total" => total = Some(words.whole(&name, 0, MOST)?),
                "operations" => {
                    let names = words.list(&name)?;
                    operations =
                        names.iter().map(|one| Operation::named(one)).collect::<Result<_, _>>()?;
                }
                _ if place.take(&name, &mut words)? => (),
                _ => return Err(OptionParser::unknown(&name)),
            }
        }
        place.check()?;
        let directory = directory
            .ok_or_else(|| Failure::Usage("--directory DIR is missing: where to work".into()))?;
        let count = match (count, total, place.of) {
            (Some(_), Some(_), _) => {
                return Err(Failure::Usage("give --count or --total, not both".into()));
            }
            (None, Some(_), None) => {
                let what = "--total is of all workers: --of says how many these are";
                return Err(Failure::Usage(what.into()));
            }
            (None, Some(total), Some(of)) => share(total, place.worker, of),
            (count, None, _) => count.unwrap_or(1000),
        };
        Ok(Options { operations, count, directory, shared, worker: place.worker })
    }
}

/// Share of one worker: the first ones do the rest.
fn share(total: u64, worker: u32, of: u32) -> u64 {
    let (worker, of) = (u64::from(worker), u64::from(of));
    total / of + u64::from(worker < total % of)
}

/// Do it.
pub fn run(options: &Options) -> Result<Vec<Phase>, Failure> {
    stop::watch();
    let mut tree = Tree::open(options)?;
    tree.check(&options.operations)?;
    let done: Result<Vec<Phase>, Failure> =
        options.operations.iter().map(|operation| tree.perform(*operation)).collect();
    if done.is_err() {
        tree.remove_what_was_made();
    }
    tree.leave();
    done
}

/// Entries of one kind.
struct Entries {
    /// What their names begin with.
    path: String,
    /// Their numbers.
    there: Vec<u64>,
    /// They were there before: an earlier call made them.
    earlier: bool,
}

impl Entries {
    fn new(base: &Path, prefix: &str, kind: &str, found: Vec<u64>) -> Result<Entries, Failure> {
        let path = base.join(format!("{prefix}{kind}."));
        let path = path.into_os_string().into_string().map_err(|path| {
            Failure::Usage(format!("--directory: {} is not UTF-8", path.to_string_lossy()))
        })?;
        Ok(Entries { path, earlier: !found.is_empty(), there: found })
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number}", self.path)
    }

    fn names(&self) -> impl Iterator<Item = String> {
        self.there.iter().map(|number| self.name(*number))
    }
}

/// Folder of a worker, and its contents.
struct Tree {
    base: PathBuf,
    /// The directory is this worker's own.
    own: bool,
    /// What all names of this worker begin with.
    prefix: String,
    count: u64,
    directories: Entries,
    files: Entries,
}

impl Tree {
    /// Looks what is there of earlier calls: that is not timed.
    fn open(options: &Options) -> Result<Tree, Failure> {
        let directory = &options.directory;
        let missing = "make the directory first, or see that it is mounted";
        fs::metadata(directory)
            .map_err(|error| Failure::at(directory, "where to work", &error, missing))?;
        let (base, prefix) = if options.shared {
            (directory.clone(), format!("worker-{}.", options.worker))
        } else {
            (directory.join(format!("worker-{}", options.worker)), String::new())
        };
        match fs::create_dir(&base) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(Failure::at(&base, "cannot make the worker's directory", &error, ""));
            }
            _ => (),
        }
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        for name in listed(&base)? {
            let Some(name) = name.strip_prefix(&prefix) else { continue };
            if let Some(number) = name.strip_prefix("dir.").and_then(|number| number.parse().ok()) {
                directories.push(number);
            } else if let Some(number) =
                name.strip_prefix("file.").and_then(|number| number.parse().ok())
            {
                files.push(number);
            }
        }
        // In order of creation.
        directories.sort_unstable();
        files.sort_unstable();
        let directories = Entries::new(&base, &prefix, "dir", directories)?;
        let files = Entries::new(&base, &prefix, "file", files)?;
        Ok(Tree { base, own: !options.shared, prefix, count: options.count, directories, files })
    }

    /// Each operation finds what it needs; nothing is begun otherwise.
    fn check(&self, operations: &[Operation]) -> Result<(), Failure> {
        let mut directories = !self.directories.there.is_empty();
        let mut files = !self.files.there.is_empty();
        for operation in operations {
            let wrong = match operation {
                Operation::Mkdir if directories => {
                    Some("has directories that an earlier mkdir made")
                }
                Operation::Create if files => Some("has files that an earlier create made"),
                Operation::Stat | Operation::Unlink if self.count > 0 && !directories && !files => {
                    Some("has nothing that mkdir or create made")
                }
                _ => None,
            };
            if let Some(what) = wrong {
                self.leave();
                let name = operation.name();
                let place = self.base.display();
                let remedy = if directories || files {
                    "put `unlink` before it, in --operations or in a call of its own"
                } else {
                    "put `mkdir` or `create` before it, in --operations or in a call of its own"
                };
                return Err(Failure::Failed(format!("{place}: {name}: it {what}; {remedy}")));
            }
            match operation {
                Operation::Mkdir => directories = true,
                Operation::Create => files = true,
                Operation::Unlink => (directories, files) = (false, false),
                Operation::Stat | Operation::Readdir => (),
            }
        }
        Ok(())
    }

    fn perform(&mut self, operation: Operation) -> Result<Phase, Failure> {
        let mut measure = Measure::begin(operation.name());
        match operation {
            Operation::Mkdir => {
                make(&mut measure, self.count, &mut self.directories, |path| fs::create_dir(path))?;
            }
            Operation::Create => {
                let options = OpenOptions::new().write(true).create_new(true).clone();
                make(&mut measure, self.count, &mut self.files, |path| {
                    options.open(path).map(drop)
                })?;
            }
            Operation::Stat => self.stat(&mut measure)?,
            Operation::Readdir => self.read(&mut measure)?,
            Operation::Unlink => {
                remove(&mut measure, &mut self.files, |path| fs::remove_file(path))?;
                remove(&mut measure, &mut self.directories, |path| fs::remove_dir(path))?;
            }
        }
        Ok(measure.end())
    }

    fn stat(&self, measure: &mut Measure) -> Result<(), Failure> {
        let directories = self.directories.names().map(|path| (path, true));
        for (path, directory) in directories.chain(self.files.names().map(|path| (path, false))) {
            stop::look()?;
            let found = measure.operation(0, || fs::symlink_metadata(&path));
            let found = found.map_err(|error| Failure::at(path.as_ref(), "stat", &error, ""))?;
            if found.is_dir() != directory {
                let what = "stat: it is of another kind than what was made";
                return Err(Failure::Failed(format!("{path}: {what}; look who else works there")));
            }
        }
        Ok(())
    }

    fn read(&self, measure: &mut Measure) -> Result<(), Failure> {
        let names = measure.operation(0, || listed(&self.base))?;
        let ours = measure.aside(|| names.iter().filter(|name| self.is_ours(name)).count());
        let made = self.directories.there.len() + self.files.there.len();
        if ours != made {
            return Err(Failure::Failed(format!(
                "{}: readdir: it lists {ours} of the {made} entries that were made; look who else works there",
                self.base.display()
            )));
        }
        for path in self.directories.names() {
            stop::look()?;
            measure.operation(0, || listed(path.as_ref()))?;
        }
        Ok(())
    }

    fn is_ours(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.prefix);
        rest.is_some_and(|rest| rest.starts_with("dir.") || rest.starts_with("file."))
    }

    /// After something went wrong. What an earlier call made stays.
    fn remove_what_was_made(&self) {
        // What cannot be removed stays: the report says why the work ended.
        if !self.files.earlier {
            self.files.names().for_each(|path| drop(fs::remove_file(path)));
        }
        if !self.directories.earlier {
            self.directories.names().for_each(|path| drop(fs::remove_dir(path)));
        }
    }

    /// The worker's directory goes if it is empty.
    fn leave(&self) {
        if self.own {
            let _ = fs::remove_dir(&self.base);
        }
    }
}

fn make(
    measure: &mut Measure,
    count: u64,
    entries: &mut Entries,
    how: impl Fn(&str) -> std::io::Result<()>,
) -> Result<(), Failure> {
    entries.earlier = false;
    let name = if entries.path.ends_with("dir.") { "mkdir" } else { "create" };
    for number in 0..count {
        stop::look()?;
        let path = entries.name(number);
        measure
            .operation(0, || how(&path))
            .map_err(|error| Failure::at(path.as_ref(), name, &error, ""))?;
        entries.there.push(number);
    }
    Ok(())
}

fn remove(
    measure: &mut Measure,
    entries: &mut Entries,
    how: impl Fn(&str) -> std::io::Result<()>,
) -> Result<(), Failure> {
    for at in 0..entries.there.len() {
        let path = entries.name(entries.there[at]);
        let removed = stop::look().and_then(|()| {
            let done = measure.operation(0, || how(&path));
            done.map_err(|error| Failure::at(path.as_ref(), "unlink", &error, ""))
        });
        if removed.is_err() {
            entries.there.drain(..at);
            return removed;
        }
    }
    entries.there.clear();
    entries.earlier = false;
    Ok(())
}

/// The names in a directory.
fn listed(directory: &Path) -> Result<Vec<String>, Failure> {
    let names = fs::read_dir(directory).and_then(|entries| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    });
    names.map_err(|error| Failure::at(directory, "reading the directory", &error, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Options, Failure> {
        Options::parse(OptionParser::new(text.split_whitespace().map(Into::into)))
    }

    #[test]
    fn shares_sum_to_the_total_and_differ_by_one() {
        for (total, of) in [(20_000, 56), (10, 3), (2, 5), (0, 4), (7, 7), (1, 1)] {
            let shares: Vec<u64> = (0..of).map(|worker| share(total, worker, of)).collect();
            assert_eq!(shares.iter().sum::<u64>(), total);
            assert!(shares.is_sorted_by(|a, b| a >= b), "the first ones do the rest");
            assert!(shares[0] - shares[of as usize - 1] <= 1);
        }
    }

    #[test]
    fn operations_come_in_the_order_that_was_requested() {
        let options = parsed("--directory /d --operations create,stat,unlink,create").unwrap();
        let names: Vec<_> = options.operations.iter().map(|one| one.name()).collect();
        assert_eq!(names, ["create", "stat", "unlink", "create"]);
        assert_eq!(parsed("--directory /d").unwrap().operations, ALL.map(|(one, _)| one));
        for (operation, name) in ALL {
            assert_eq!(operation.name(), name);
        }
    }

    #[test]
    fn wrong_options_are_reported() {
        for (text, expected) in [
            ("", "--directory DIR is missing"),
            ("--directory /d --operations mkdir,rm", "`rm` is none of mkdir"),
            ("--directory /d --operations mkdir,", "`` is none of"),
            ("--directory /d --count 5 --total 5 --of 1", "not both"),
            ("--directory /d --total 5", "--of says how many"),
            ("--directory /d --count 1e3", "`1e3` is not a whole number"),
            ("--directory /d --count +5", "`+5` is not a whole number"),
        ] {
            match parsed(text) {
                Err(Failure::Usage(what)) => assert!(what.contains(expected), "{text}: {what}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
