//! Memory of one call that its ranks share: arguments for each rank, and results of rank 0. Ranks on other nodes get
//! a copy.
//!
//! Data for all ranks is stored once. Each rank maps it privately, so none sees the changes of another, and the
//! kernel copies only changed pages.

use std::ffi::CStr;
use std::sync::Arc;

use gridrpc_idl::{Distribution, Function, Kind, Mode, Parameter, Type};
use gridrpc_shm::segment::{Pool, PooledSegment};
use gridrpc_typed::{add_text, gives_sizes, list_texts};
use gridrpc_wire::Order;

use super::protocol::{Layout, PAGE, RankArgument};
use crate::module::arguments::{Argument, Arguments, Backing, named};
use crate::module::error::CallError;

/// Alignment of arrays, bytes.
const ALIGNMENT: usize = 64;

/// Data for the ranks: the places of arguments, and the texts among them.
#[derive(Debug, Default)]
pub(super) struct RankData {
    pub(super) places: Vec<RankArgument>,
    pub(super) texts: Vec<u8>,
}

/// The memory, filled.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) lent: PooledSegment,
    pub(super) layout: Layout,
    pub(super) first: RankData,
    pub(super) others: RankData,
    /// Which arguments are returned, and their places.
    results: Vec<(usize, usize)>,
}

/// Value of an argument on ranks other than the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherRanks {
    /// Not there.
    Absent,
    /// Memory without content.
    Empty,
    /// The same as on the first rank.
    Same,
}

/// Scalars and other arguments that sizes depend on are the same everywhere; everything else follows the interface.
fn elsewhere(function: &Function, index: usize) -> OtherRanks {
    let parameter = &function.parameters[index];
    let comes = matches!(parameter.mode, Mode::In | Mode::InOut);
    let is_scalar = match parameter.kind {
        Kind::Scalar(of) => of != Type::Filename && parameter.mode == Mode::In,
        _ => false,
    };
    match parameter.distribution {
        _ if is_scalar || comes && gives_sizes(function, index) => OtherRanks::Same,
        Some(Distribution::Broadcast) if comes || is_file(parameter) => OtherRanks::Same,
        Some(Distribution::Allocate) if is_file(parameter) => OtherRanks::Same,
        Some(_) => OtherRanks::Empty,
        None => OtherRanks::Absent,
    }
}

fn is_file(parameter: &Parameter) -> bool {
    matches!(
        parameter.kind,
        Kind::Scalar(Type::Filename) | Kind::Array { element: Type::Filename, .. }
    )
}

/// Checks that no files go to ranks on other nodes: they have no names there.
pub(super) fn check_for_nodes(arguments: &Arguments) -> Result<(), CallError> {
    let function = arguments.interface();
    for (index, parameter) in function.parameters.iter().enumerate() {
        if is_file(parameter) && matches!(elsewhere(function, index), OtherRanks::Same) {
            return Err(CallError::Arguments(format!(
                "`{}` is a file for all ranks, and ranks are on other nodes: give its name as a string, and place it in \
                 a folder that the nodes share",
                parameter.name
            )));
        }
    }
    Ok(())
}

/// Stretches of the memory, as they are allocated.
struct MemoryRanges {
    /// The private part of each rank.
    own: usize,
    /// The results of the first rank.
    results: usize,
}

fn next(end: &mut usize, len: usize) -> usize {
    let start = *end;
    *end = (start + len).next_multiple_of(ALIGNMENT);
    start
}

impl Stage {
    /// Copies the arguments there.
    pub(super) fn fill(pool: &Arc<Pool>, arguments: &Arguments) -> Result<Stage, CallError> {
        let function = arguments.interface();
        let mut stretches = MemoryRanges { own: 0, results: 0 };
        let (mut first, mut others) = (RankData::default(), RankData::default());
        // Pairs of argument and place.
        let mut copies = Vec::new();
        let mut results = Vec::new();
        for (index, argument) in arguments.arguments.iter().enumerate() {
            let parameter = &function.parameters[index];
            let elsewhere = elsewhere(function, index);
            match &argument.place {
                Backing::None => {
                    first.places.push(RankArgument::Null);
                    others.places.push(RankArgument::Null);
                }
                Backing::Scalar(bytes) => {
                    first.places.push(RankArgument::Number(**bytes));
                    others.places.push(RankArgument::Number(**bytes));
                }
                Backing::Texts(_) | Backing::Files(..) => {
                    let all = texts(argument);
                    first.add_texts(parameter, &all);
                    match elsewhere {
                        OtherRanks::Same => others.add_texts(parameter, &all),
                        OtherRanks::Empty => others.add_texts(parameter, &vec![None; all.len()]),
                        OtherRanks::Absent => others.places.push(RankArgument::Null),
                    }
                }
                Backing::Section(_)
                | Backing::Room(_)
                | Backing::Buffer(_)
                | Backing::Shared(_) => {
                    let len = argument.shape.bytes();
                    if len == 0 {
                        first.places.push(RankArgument::Null);
                        others.places.push(RankArgument::Null);
                        continue;
                    }
                    let mut own = |copies: &mut Vec<_>| {
                        let at = next(&mut stretches.own, len);
                        copies.push((index, at, false));
                        RankArgument::At(at)
                    };
                    let mine = match parameter.mode {
                        Mode::In => own(&mut copies),
                        Mode::Work => RankArgument::New(len),
                        Mode::Out | Mode::InOut => {
                            let at = next(&mut stretches.results, len);
                            results.push((index, at));
                            if parameter.mode == Mode::InOut {
                                copies.push((index, at, true));
                            }
                            // The start of the results is known at the end.
                            RankArgument::At(at)
                        }
                    };
                    others.places.push(match elsewhere {
                        OtherRanks::Same if parameter.mode == Mode::In => mine.clone(),
                        OtherRanks::Same => own(&mut copies),
                        OtherRanks::Empty => RankArgument::New(len),
                        OtherRanks::Absent => RankArgument::Null,
                    });
                    first.places.push(mine);
                }
            }
        }
        let start = stretches.own.next_multiple_of(PAGE);
        for (index, at) in &mut results {
            *at += start;
            first.places[*index] = RankArgument::At(*at);
        }
        let layout = Layout { results: start, len: start + stretches.results };
        let memory = |error: std::io::Error| CallError::Memory(format!("arguments: {error}"));
        // There is some, even if it holds nothing.
        let lent = pool.take(layout.len.max(PAGE) as u64).map_err(memory)?;
        for (index, at, goes_back) in copies {
            let at = if goes_back { start + at } else { at };
            let argument = &arguments.arguments[index];
            // SAFETY: an array of that many bytes, which nobody writes to in the meantime.
            let bytes = unsafe {
                let start = arguments.pointers[index].cast::<u8>();
                std::slice::from_raw_parts(start, argument.shape.bytes())
            };
            lent.write_at(at as u64, bytes)
                .map_err(|error| named(memory(error), &function.parameters[index]))?;
        }
        Ok(Stage { lent, layout, first, others, results })
    }

    /// What a rank on another node gets of it: the results' part is for the first rank only.
    pub(super) fn content(&self, rank: usize) -> Result<&[u8], CallError> {
        let len = if rank == 0 { self.layout.len } else { self.layout.results };
        let start = self.lent.start(len as u64);
        let start = start.map_err(|error| CallError::Memory(format!("arguments: {error}")))?;
        // SAFETY: that many bytes are mapped for as long as the segment is there, and nobody writes there meanwhile.
        Ok(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }

    /// Takes the results off the end of what the first rank has sent from another node.
    pub(super) fn take_content(&self, sent: &mut Vec<u8>) -> Result<(), CallError> {
        let len = self.layout.len - self.layout.results;
        let wrong = || CallError::Memory("the results of rank 0 did not come".into());
        let results = sent.split_off(sent.len().checked_sub(len).ok_or_else(wrong)?);
        let written = self.lent.write_at(self.layout.results as u64, &results);
        written.map_err(|error| CallError::Memory(format!("results: {error}")))
    }

    /// Moves the results to the places that the call has for them. `texts`: those that rank 0 has sent.
    pub(super) fn take_results(
        &self,
        arguments: &mut Arguments,
        texts: &[u8],
    ) -> Result<(), CallError> {
        for (index, at) in &self.results {
            let len = arguments.arguments[*index].shape.bytes();
            let from = self.lent.stretch(*at as u64, len as u64);
            let from = from.map_err(|error| CallError::Memory(format!("results: {error}")))?;
            // SAFETY: both are that long, and do not overlap; no rank writes there any more.
            unsafe {
                let to = arguments.pointers[*index].cast::<u8>();
                to.copy_from_nonoverlapping(from.as_ptr(), len);
            }
        }
        let mut texts = list_texts(texts, Order::NATIVE).unwrap_or_default().into_iter();
        let modes: Vec<Mode> = arguments.interface().parameters.iter().map(|it| it.mode).collect();
        for (argument, mode) in arguments.arguments.iter_mut().zip(modes) {
            if let Backing::Texts(known) = &mut argument.place
                && matches!(mode, Mode::Out | Mode::InOut)
            {
                let count = known.now().len();
                known.replace(&texts.by_ref().take(count).collect::<Vec<_>>());
            }
        }
        Ok(())
    }
}

impl RankData {
    fn add_texts(&mut self, parameter: &Parameter, texts: &[Option<Vec<u8>>]) {
        let before = self.texts.len();
        texts.iter().for_each(|text| add_text(text.as_deref(), &mut self.texts));
        let is_scalar = matches!(parameter.kind, Kind::Scalar(_));
        let goes = matches!(parameter.mode, Mode::Out | Mode::InOut) && !is_file(parameter);
        let alone = is_scalar && !goes;
        let len = self.texts.len() - before;
        self.places.push(RankArgument::Texts { len, alone, returns: goes });
    }
}

/// The texts of an argument. For files, their paths as other processes find them, because they have no names.
fn texts(argument: &Argument) -> Vec<Option<Vec<u8>>> {
    match &argument.place {
        Backing::Texts(texts) => {
            let text = |text: &*mut std::ffi::c_char| {
                // SAFETY: null, or a C string of this worker's.
                (!text.is_null()).then(|| unsafe { CStr::from_ptr(*text) }.to_bytes().to_vec())
            };
            texts.now().iter().map(text).collect()
        }
        Backing::Files(files, _) => {
            files.iter().map(|file| file.as_ref().map(|file| file.path_for_others())).collect()
        }
        _ => Vec::new(),
    }
}
