//! Grids of native workers, and a module with functions for them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gridrpc_client::{Call, Config, FunctionRef, Grid, Launch, Outcome, Request, WorkerLimits};
use gridrpc_core::{CallOptions, Settings};
use gridrpc_link::payload::Payload;
use gridrpc_wire::{Array, DType, FunctionForm, Order, Value, decode_values, encode_values};

pub const WAIT: Duration = Duration::from_secs(20);

pub fn open(workers: u32) -> Grid {
    open_with(workers, WorkerLimits::NONE, env!("CARGO_BIN_EXE_gridrpc").into())
}

/// A grid whose workers have these limits, and are started by this program.
pub fn open_with(workers: u32, limits: WorkerLimits, program: PathBuf) -> Grid {
    let launch = Launch { program, arguments: vec!["spawner".into()], limits, ..Launch::default() };
    let settings = Settings { workers, cores: 2, ..Settings::default() };
    let grid = Grid::open(Config::here(launch, settings)).expect("a grid");
    assert!(grid.wait_until_ready(WAIT).expect("workers"), "workers did not answer");
    grid
}

/// The test module, compiled once.
pub fn module() -> &'static PathBuf {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("native_grid");
        std::fs::create_dir_all(&folder).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/modules/work.idl");
        let mut compile = Command::new(env!("CARGO_BIN_EXE_gridrpc"));
        compile.args(["compile", source, "-o"]).arg(&folder);
        let ran = compile.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        folder.join("work.so")
    })
}

/// A function of the module.
pub fn function(grid: &Grid, name: &str) -> Arc<FunctionRef> {
    let path = module().clone().into_os_string().into_encoded_bytes();
    grid.register(&format!("work/{name}"), FunctionForm::Library, path)
}

/// A column or an array: this many elements, in a section.
pub fn elements(dtype: DType, count: usize, section: u16) -> Value {
    Value::Array(Array { dtype, fortran: false, shape: vec![count as u64], section })
}

pub fn submit(
    grid: &Grid,
    function: &Arc<FunctionRef>,
    values: &[Value],
    data: &[&[u8]],
) -> Arc<Call> {
    let mut payload = grid.payload();
    let mut bytes = Vec::new();
    encode_values(values, Order::NATIVE, &mut bytes).unwrap();
    payload.add(&bytes).unwrap();
    for part in data {
        payload.add(part).unwrap();
    }
    send(grid, function, payload.finish(), None)
}

pub fn send(
    grid: &Grid,
    function: &Arc<FunctionRef>,
    payload: Payload,
    deadline: Option<Duration>,
) -> Arc<Call> {
    let options = CallOptions { deadline, ..CallOptions::DEFAULT };
    let request = Request::new(Arc::clone(function), payload, options);
    grid.submit(request).expect("taken")
}

pub fn outcome(call: &Call) -> Outcome {
    assert!(call.wait(WAIT), "the call does not end");
    call.take_outcome().expect("an outcome")
}

pub fn returned(call: &Call) -> (Vec<Value>, Vec<Vec<u8>>) {
    match outcome(call) {
        Outcome::Returned(sections, _) => {
            let (values, data) = sections.split_first().expect("values");
            let values = decode_values(values.bytes(), Order::NATIVE).unwrap();
            (values, data.iter().map(|part| part.bytes().to_vec()).collect())
        }
        other => panic!("{other:?}"),
    }
}
