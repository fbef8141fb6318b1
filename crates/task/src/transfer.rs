//! The tasks that write and read a file.

use std::path::PathBuf;

use crate::data::{ALIGNMENT, Block, Data, TemporaryFile, remove_earlier};
use crate::failure::Failure;
use crate::options::{OptionParser, WorkerIndex};
use crate::pattern::Pattern;
use crate::phase::{Measure, Phase};
use crate::stop;

/// Options of such a task.
#[derive(Debug)]
pub struct Options {
    path: PathBuf,
    worker: u32,
    size: u64,
    block: u64,
    fsync: bool,
    direct: bool,
    drop: bool,
    keep: bool,
}

/// Bytes of a block at most; it lies in memory.
const LARGEST_BLOCK: u64 = 1 << 30;

impl Options {
    /// From the command line.
    pub fn parse(mut words: OptionParser) -> Result<Options, Failure> {
        let mut place = WorkerIndex::alone();
        let mut directory = None;
        let (mut size, mut block) = (64 << 20, 1 << 20);
        let (mut fsync, mut direct, mut drop, mut keep) = (false, false, false, false);
        while let Some(name) = words.next()? {
            match name.as_str() {
                "directory" => directory = Some(words.path()?),
                "size" => size = words.size(&name)?,
                "block" => block = words.size(&name)?,
                "fsync" => fsync = true,
                "direct" => direct = true,
                "drop" => drop = true,
                "keep" => keep = true,
                _ if place.take(&name, &mut words)? => (),
                _ => return Err(OptionParser::unknown(&name)),
            }
        }
        place.check()?;
        let directory = directory.ok_or_else(|| {
            Failure::Usage("--directory DIR is missing: where the file is".into())
        })?;
        if block > LARGEST_BLOCK {
            return Err(Failure::Usage("--block: is more than a gigabyte".into()));
        }
        let uneven = [("size", size), ("block", block)]
            .into_iter()
            .find(|(_, bytes)| direct && bytes % ALIGNMENT as u64 != 0);
        if let Some((name, bytes)) = uneven {
            let what = "is not a multiple of 4096 bytes, as --direct needs it";
            return Err(Failure::Usage(format!("--{name}: {bytes} {what}")));
        }
        let worker = place.worker;
        let path = directory.join(format!("worker-{worker}.data"));
        Ok(Options { path, worker, size, block: block.min(size), fsync, direct, drop, keep })
    }

    /// Where blocks begin, and how long they are.
    fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = (0..self.size.div_ceil(self.block)).map(|number| number * self.block);
        starts.map(|start| (start, self.block.min(self.size - start)))
    }
}

/// Write the file, which stays for [`read`].
pub fn write(options: &Options) -> Result<Vec<Phase>, Failure> {
    stop::watch();
    let (file, phase) = written(options)?;
    file.keep();
    Ok(vec![phase])
}

/// Read it.
pub fn read(options: &Options) -> Result<Vec<Phase>, Failure> {
    stop::watch();
    Ok(vec![read_back(options)?])
}

/// Write it, read it, and remove it if it is not to stay.
pub fn write_and_read(options: &Options) -> Result<Vec<Phase>, Failure> {
    stop::watch();
    let (file, write) = written(options)?;
    let read = read_back(options)?;
    if options.keep {
        file.keep();
    }
    Ok(vec![write, read])
}

fn written(options: &Options) -> Result<(TemporaryFile, Phase), Failure> {
    let pattern = Pattern::of(options.worker);
    let mut block = Block::new(options.block)?;
    remove_earlier(&options.path)?;
    let mut measure = Measure::begin("write");
    let data = Data::open(&options.path, true, options.direct)?;
    let passing = TemporaryFile::new(&options.path);
    for (offset, length) in options.blocks() {
        stop::look()?;
        let bytes = block.first(length);
        measure.aside(|| pattern.fill(bytes, offset));
        measure.operation(length, || data.write(bytes, offset))?;
    }
    if options.fsync {
        data.sync()?;
    }
    if options.drop {
        measure.aside(|| data.drop_from_cache())?;
    }
    data.close()?;
    Ok((passing, measure.end()))
}

fn read_back(options: &Options) -> Result<Phase, Failure> {
    let pattern = Pattern::of(options.worker);
    let mut block = Block::new(options.block)?;
    let mut measure = Measure::begin("read");
    let data = Data::open(&options.path, false, options.direct)?;
    if options.drop {
        measure.aside(|| data.drop_from_cache())?;
    }
    for (offset, length) in options.blocks() {
        stop::look()?;
        let bytes = block.first(length);
        measure.operation(length, || data.read(bytes, offset))?;
        if let Some(wrong) = measure.aside(|| pattern.first_wrong(bytes, offset)) {
            return Err(Failure::Failed(format!(
                "{}: byte {wrong} is not what worker {} writes: it was written by something else, or is \
                 damaged; write the file again",
                options.path.display(),
                options.worker
            )));
        }
    }
    data.close()?;
    Ok(measure.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Options, Failure> {
        Options::parse(OptionParser::new(text.split_whitespace().map(Into::into)))
    }

    #[test]
    fn blocks_cover_the_file_once() {
        let options = parsed("--directory /d --size 10K --block 4K --worker 7").unwrap();
        assert_eq!(options.path, PathBuf::from("/d/worker-7.data"));
        let blocks: Vec<_> = options.blocks().collect();
        assert_eq!(blocks, [(0, 4096), (4096, 4096), (8192, 2048)]);
        let small = parsed("--directory /d --size 100").unwrap();
        assert_eq!(small.blocks().collect::<Vec<_>>(), [(0, 100)]);
    }

    #[test]
    fn wrong_options_are_reported() {
        for (text, expected) in [
            ("", "--directory DIR is missing"),
            ("--directory", "missing argument"),
            ("--directory /d --size 0", "--size: `0` is nothing"),
            ("--directory /d --size -4K", "--size: `-4K` is below 0"),
            ("--directory /d --block 2G", "--block: is more than a gigabyte"),
            ("--directory /d --size 4097 --direct", "--size: 4097 is not a multiple"),
            ("--directory /d --worker 2 --of 2", "--worker 2 is none of --of 2"),
            ("--directory /d --worker -1", "--worker: `-1` is not a whole number"),
            ("--directory /d --sise 4K", "there is no option --sise"),
            ("--directory /d stray", "unexpected argument \"stray\""),
        ] {
            match parsed(text) {
                Err(Failure::Usage(what)) => assert!(what.contains(expected), "{text}: {what}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
