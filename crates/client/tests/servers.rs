//! A grid whose host is a server that many clients share, which the test plays.

mod played;

use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use gridrpc_client::{Config, Grid, HostGroups, Launch, RemoteWorkers};
use gridrpc_config::from_url;
use gridrpc_core::Settings;
use gridrpc_wire::Message;
use played::{Daemon, WAIT, wait_for_detail};

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
