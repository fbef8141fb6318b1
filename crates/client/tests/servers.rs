//! A grid whose host is a server that many clients share, which the test plays.

mod played;

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gridrpc_client::{
    Code, Config, Grid, GridError, HostGroups, Launch, Outcome, RemoteWorkers, Request,
    ServerAccess, ServerCatalogue, SubmitError,
};
use gridrpc_config::{ServerAddress, from_url};
use gridrpc_core::{CallOptions, Settings};
use gridrpc_idl::INTERFACE_HEADER;
use gridrpc_typed::interface_hash;
use gridrpc_wire::{FunctionForm, Message, RemoteError};
use played::{Answer, Daemon, WAIT, wait_for_detail};

const INTERFACE: &str = "Module linear;\nDefine solve(IN int n, INOUT double x[n]);\n";

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("gridrpc-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(url: &str) -> Grid {
    let groups = HostGroups {
        list: vec![from_url(url).unwrap()],
        program: "/nowhere".into(),
        workers: RemoteWorkers::default(),
    };
    let settings = Settings { workers: 0, ..Settings::default() };
    let config = Config { groups: Some(groups), ..Config::here(Launch::default(), settings) };
    Grid::open(config).unwrap()
}

#[test]
fn a_server_that_does_not_run_is_an_error_with_its_remedy() {
    let folder = Folder::new("server-absent");
    let path = folder.0.join("socket");
    let grid = open(&format!("gridrpc+unix://{}", path.display()));
    let error = grid.wait_for_workers(1, WAIT).unwrap_err().to_string();
    let why = format!("server `{}` does not run: nothing listens at this socket", path.display());
    assert!(error.contains(&why), "{error}");
    grid.close();
}

#[test]
fn missing_credentials_are_an_error_that_names_them() {
    let folder = Folder::new("server-credentials");
    let missing = folder.0.join("missing");
    let grid = open(&format!("gridrpc://127.0.0.1:1?credentials={}", missing.display()));
    let error = grid.wait_for_workers(1, WAIT).unwrap_err().to_string();
    let why = "the credentials for server `127.0.0.1:1` cannot be used: ";
    assert!(error.contains(why), "{error}");
    assert!(error.contains(&missing.display().to_string()), "{error}");
    grid.close();
}

#[test]
fn a_server_that_is_lost_is_dialled_again() {
    let folder = Folder::new("server-lost");
    let path = folder.0.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let grid = open(&format!("gridrpc+unix://{}", path.display()));
    let mut daemon = Daemon::accept(&listener);
    daemon.join(2);
    assert!(grid.wait_for_workers(2, WAIT).unwrap());
    drop(daemon);
    let why = format!("server `{}` is gone (it closed the connection)", path.display());
    wait_for_detail(&grid, &why);
    let mut daemon = Daemon::accept(&listener);
    daemon.join(1);
    assert!(grid.wait_for_workers(1, WAIT).unwrap());
    // The server outlives its client.
    grid.close();
    assert!(daemon.receive(|message| matches!(message, Message::Goodbye)));
}

/// Answers requests of any number of programs at this socket. Returns the number of requests.
fn play_catalogue(
    path: &Path,
    answer: impl Fn(&str, Vec<Vec<u8>>) -> Answer + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(path).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        loop {
            Daemon::accept(&listener).answer(|name, sections| {
                counted.fetch_add(1, Ordering::Relaxed);
                answer(name, sections)
            });
        }
    });
    count
}

fn catalogue(path: &Path) -> ServerCatalogue {
    let address = ServerAddress::Socket(path.to_owned());
    ServerCatalogue::new("lab", ServerAccess { address, credentials: None, timeout: WAIT })
}

/// The limits of each user.
const LIMITS: &str = r#"{"user": "ann", "bytes": 1000, "later": true}"#;

/// A module `linear`, and nothing else.
fn linear(name: &str, sections: &[Vec<u8>], text: &str) -> Answer {
    assert_eq!(name, "interface");
    match sections {
        [requested] if requested == b"linear" || requested.starts_with(b"linear/") => {
            let hash = interface_hash(text).into_bytes();
            Ok(vec![text.as_bytes().to_vec(), hash, LIMITS.as_bytes().to_vec()])
        }
        _ => Err((RemoteError::FunctionNotFound.name().to_owned(), "not here".to_owned())),
    }
}

#[test]
fn an_interface_is_requested_once() {
    let folder = Folder::new("server-interface");
    let path = folder.0.join("socket");
    let text = format!("{INTERFACE_HEADER}{INTERFACE}");
    let hash = interface_hash(&text);
    let count = play_catalogue(&path, move |name, sections| linear(name, &sections, &text));
    let catalogue = catalogue(&path);
    let module = catalogue.module("linear/solve").unwrap().unwrap();
    assert_eq!((module.server.as_str(), module.hash.as_str()), ("lab", hash.as_str()));
    assert_eq!(module.interface.functions[0].name, "solve");
    let limits = module.limits();
    assert_eq!((&*limits.user, limits.bytes, limits.memory), ("ann", Some(1000), None));
    for known in ["linear/solve", "linear"] {
        assert!(Arc::ptr_eq(&catalogue.module(known).unwrap().unwrap(), &module), "{known}");
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // The server may offer more than it did.
    let again = catalogue.module("linear/invert").unwrap().unwrap();
    assert!(Arc::ptr_eq(&again, &module), "calls refer to the same interface");
    assert!(catalogue.module("other/Class.method").unwrap().is_none());
    assert_eq!(count.load(Ordering::Relaxed), 3);
    // It may be a class, which the server finds by its module alone.
    assert!(catalogue.module("other/Class").unwrap().is_none());
    assert_eq!(count.load(Ordering::Relaxed), 5);
}

#[test]
fn answers_without_an_interface_are_errors() {
    let text = format!("{INTERFACE_HEADER}{INTERFACE}");
    let other = text.replace("Module linear", "Module other");
    let good = || (text.clone().into_bytes(), interface_hash(&text).into_bytes());
    let three = |text, hash| Ok(vec![text, hash, b"{}".to_vec()]);
    let answers: Vec<(Answer, &str)> = vec![
        (Ok(Vec::new()), "makes no sense: it has 0 sections"),
        (Ok(vec![good().0, good().1]), "makes no sense: it has 2 sections"),
        (three(good().0, b"no hash".to_vec()), "makes no sense: its hash is not hexadecimal"),
        (three(good().0, Vec::new()), "makes no sense: its hash is not hexadecimal"),
        (three(vec![0xff], good().1), "makes no sense: no UTF-8"),
        (three(b"x".to_vec(), good().1), "cannot be used: "),
        (three(other.into_bytes(), good().1), "module `other` instead of `linear`"),
        (Ok(vec![good().0, good().1, b"{".to_vec()]), "makes no sense: its limits: EOF"),
        (Ok(vec![good().0, good().1, br#"{"bytes": -1}"#.to_vec()]), "its limits: invalid value"),
        (Err(("RuntimeError".into(), "no disk".into())), "has not said what it offers"),
    ];
    let folder = Folder::new("server-malformed");
    for (index, (answer, expected)) in answers.into_iter().enumerate() {
        let path = folder.0.join(index.to_string());
        play_catalogue(&path, move |_, _| answer.clone());
        let error = catalogue(&path).module("linear").unwrap_err().to_string();
        assert!(error.contains("server `lab`") && error.contains(expected), "{error}");
    }
}

#[test]
fn the_list_of_functions_is_json() {
    let folder = Folder::new("server-list");
    let path = folder.0.join("socket");
    let count = play_catalogue(&path, |name, sections| {
        assert_eq!((name, sections.len()), ("list", 0));
        let text = r#"[{"name": "linear/solve", "signature": "solve(n, x)", "description": "S."},
                       {"name": "linear/invert", "signature": null, "later": 1}]"#;
        Ok(vec![text.as_bytes().to_vec()])
    });
    let catalogue = catalogue(&path);
    let list = catalogue.list().unwrap();
    assert_eq!(list[0].name, "linear/solve");
    assert_eq!(list[0].signature.as_deref(), Some("solve(n, x)"));
    assert_eq!(list[0].description.as_deref(), Some("S."));
    assert_eq!((list[1].name.as_str(), &list[1].description), ("linear/invert", &None));
    assert_eq!(catalogue.list().unwrap()[..], list[..]);
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let broken = folder.0.join("broken");
    play_catalogue(&broken, |_, _| Ok(vec![b"[{}]".to_vec()]));
    let error = self::catalogue(&broken).list().unwrap_err().to_string();
    assert!(error.contains("makes no sense: missing field `name`"), "{error}");
}

#[test]
fn calls_of_offered_functions_go_to_their_server_with_the_hash() {
    let folder = Folder::new("server-calls");
    let path = folder.0.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let url = format!("gridrpc+unix://{}", path.display());
    let grid = open(&url);
    let mut daemon = Daemon::accept(&listener);
    daemon.join(1);
    assert!(grid.wait_for_workers(1, WAIT).unwrap());
    let text = format!("{INTERFACE_HEADER}{INTERFACE}");
    let hash = interface_hash(&text);
    let played = thread::spawn(move || {
        Daemon::accept(&listener).answer(|name, sections| linear(name, &sections, &text));
    });
    let module = grid.server_catalogues()[0].module("linear/solve").unwrap().unwrap();
    played.join().unwrap();
    let function = grid.register_offered(&module, "solve").unwrap();
    assert_eq!((function.name(), function.is_native()), ("linear/solve", true));
    let submit = |options| {
        grid.submit(Request::new(Arc::clone(&function), grid.payload().finish(), options))
    };
    let call = submit(CallOptions::DEFAULT).unwrap();
    let (number, name) = daemon.receive_call();
    assert_eq!(name, format!("linear/solve#{hash}"));
    assert!(!module.has_changed());
    daemon.fail(number, RemoteError::InterfaceChanged.name(), "linear/solve has changed");
    assert!(call.wait(WAIT));
    assert!(matches!(
        call.take_outcome(),
        Some(Outcome::Raised { ref error, .. }) if error == "gridrpc.InterfaceChanged"
    ));
    assert!(module.has_changed());
    // The host of the group has the same name, and the call may be bound to it.
    let group = Some(grid.group(&path.display().to_string()).unwrap());
    assert!(submit(CallOptions { group, ..CallOptions::DEFAULT }).is_ok());
    grid.close();
}

#[test]
fn servers_of_others_receive_no_code() {
    let folder = Folder::new("server-code");
    let url = format!("gridrpc+unix://{}", folder.0.join("socket").display());
    let grid = open(&url);
    let submit = |form, body: &[u8]| {
        let function = grid.register("linear/solve", form, body.to_vec());
        let request = Request::new(function, grid.payload().finish(), CallOptions::DEFAULT);
        grid.submit(request)
    };
    let module = submit(FunctionForm::Library, b"/nowhere/linear.so");
    assert!(matches!(module, Err(SubmitError::Failed(GridError::OnlyOffered { .. }))));
    let python = submit(FunctionForm::Pickled, b"pickle");
    assert!(matches!(python, Err(SubmitError::Failed(GridError::NotTrusted { .. }))));
    assert!(matches!(grid.reserve(1, None, Code::Module), Err(GridError::OnlyOffered { .. })));
    assert!(matches!(grid.reserve(1, None, Code::Python), Err(GridError::NotTrusted { .. })));
    grid.close();
    // One that is trusted does.
    let grid = open(&format!("{url}?trusted=true"));
    let function = grid.register("f", FunctionForm::Pickled, b"pickle".to_vec());
    let request = Request::new(function, grid.payload().finish(), CallOptions::DEFAULT);
    assert!(grid.submit(request).is_ok());
    grid.close();
}
