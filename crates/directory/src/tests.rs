//! The registry and its file.

use std::time::Duration;

use gridrpc_placement::Policy;
use gridrpc_server::directory::{AnnouncedModule, Announcement};
use gridrpc_typed::interface_hash;
use serde_json::{Value, json};

use crate::examples::{by_curl, in_c, in_fortran, in_python};
use crate::explanation::{Arguments, explain};
use crate::registry::{AnnouncementError, Registry};
use crate::store::Store;

const SECOND: Duration = Duration::from_secs(1);

/// The text of an interface, as in a module's file.
fn interface(functions: &str) -> String {
    let parsed = gridrpc_idl::parse(&format!("Module lapack; {functions}"));
    format!("{}{}", gridrpc_idl::INTERFACE_HEADER, parsed.module.unwrap())
}

fn solve() -> String {
    interface(
        "Define dgesv(IN int n, INOUT double a[n][n], INOUT double b[n]) \"Solves equations by LU.\" \
         CalcOrder 2*n^3/3;",
    )
}

fn announcement(address: &str, text: &str) -> Announcement {
    let hash = interface_hash(text);
    Announcement {
        name: format!("server-{address}"),
        address: address.into(),
        http: None,
        version: "1".into(),
        interval: 1.0,
        cores: 2,
        load: 0.0,
        queued: 0,
        speed: 1e9,
        accepts: true,
        is_leaving: false,
        modules: vec![AnnouncedModule {
            name: "lapack".into(),
            hash: Some(hash.clone()),
            functions: Vec::new(),
            is_full: false,
        }],
        interfaces: [(hash, text.to_owned())].into(),
    }
}

fn announced(servers: &[&str], now: Duration) -> Registry {
    let mut registry = Registry::default();
    for address in servers {
        registry.announce(announcement(address, &solve()), "lab", now).unwrap();
    }
    registry
}

#[test]
fn interfaces_are_requested_once() {
    let mut registry = Registry::default();
    let mut first = announcement("a:1", &solve());
    let interfaces = std::mem::take(&mut first.interfaces);
    let (answer, has_changed) = registry.announce(first.clone(), "lab", SECOND).unwrap();
    assert_eq!((answer.missing.len(), has_changed), (1, true));
    assert!(registry.search("", SECOND).is_empty());
    let with_texts = Announcement { interfaces, ..first.clone() };
    let (answer, has_changed) = registry.announce(with_texts, "lab", SECOND).unwrap();
    assert_eq!((answer.missing.len(), has_changed), (0, false));
    let (answer, _) = registry.announce(first, "lab", SECOND).unwrap();
    assert_eq!(answer.missing.len(), 0);
    assert_eq!(registry.search("lapack lu", SECOND)[0].name, "lapack/dgesv");
    assert!(registry.search("lapack fft", SECOND).is_empty());
}

#[test]
fn a_server_that_is_not_heard_is_silent_and_then_forgotten() {
    let mut registry = announced(&["a:1"], SECOND);
    let is_silent = |registry: &Registry, now| {
        registry.offers("lapack/dgesv", now).unwrap()[0].server.is_silent
    };
    assert!(!is_silent(&registry, 3 * SECOND));
    assert!(is_silent(&registry, 5 * SECOND));
    assert!(registry.search("", 5 * SECOND)[0].servers.is_empty());
    assert_eq!(registry.expire(5 * SECOND).0.len(), 0);
    let (servers, interfaces) = registry.expire(Duration::from_secs(25 * 3600));
    assert_eq!((servers.len(), interfaces.len()), (1, 1));
    assert!(registry.offers("lapack/dgesv", SECOND).is_err());
}

#[test]
fn an_address_belongs_to_who_announces_it() {
    let mut registry = announced(&["a:1"], SECOND);
    let other = || announcement("a:1", &solve());
    let refused = registry.announce(other(), "mallory", 2 * SECOND).unwrap_err();
    assert!(matches!(refused, AnnouncementError::Owner { .. }), "{refused}");
    let leaving = Announcement { is_leaving: true, ..other() };
    assert!(registry.announce(leaving.clone(), "mallory", 2 * SECOND).is_err());
    // Nobody has heard it for a while.
    registry.announce(other(), "new", 20 * SECOND).unwrap();
    registry.announce(leaving, "new", 20 * SECOND).unwrap();
    assert!(registry.servers(20 * SECOND).is_empty());
}

#[test]
fn announcements_that_make_no_sense_are_refused() {
    let mut registry = Registry::default();
    for address in ["", "host", "/run/socket", "a:1?trusted=true", "a b:1", "a:99999"] {
        let refused = registry.announce(announcement(address, &solve()), "lab", SECOND);
        assert!(matches!(refused, Err(AnnouncementError::Address(_))), "{address}");
    }
    let mut lying = announcement("a:1", &solve());
    let hash = lying.modules[0].hash.clone().unwrap();
    lying.interfaces.insert(hash, interface("Define other(IN int n);"));
    let refused = registry.announce(lying, "lab", SECOND).unwrap_err();
    assert!(refused.to_string().contains("another hash"), "{refused}");
}

#[test]
fn an_unknown_function_has_similar_names() {
    let registry = announced(&["a:1"], SECOND);
    for name in ["lapack/dgsev", "dgesv", "blas/dgesv"] {
        let error = registry.offers(name, SECOND).unwrap_err();
        assert_eq!(error.similar, ["lapack/dgesv"], "{name}");
    }
    let error = registry.offers("fft/forward", SECOND).unwrap_err().to_string();
    assert!(error.contains("gridrpc directory search"), "{error}");
}

#[test]
fn other_interfaces_of_a_function_are_seen() {
    let mut registry = announced(&["a:1"], SECOND);
    let other = interface("Define dgesv(IN long n, INOUT float a[n][n]);");
    registry.announce(announcement("b:1", &other), "lab", SECOND).unwrap();
    assert_eq!(registry.search("", SECOND)[0].signatures.len(), 2);
    let lookup = lookup(&registry);
    let why = explain(&lookup, &Arguments::default(), Policy::LeastTime);
    assert!(why.contains("another interface") && why.contains("sizes are incomplete"), "{why}");
}

#[test]
fn classes_are_found_by_name() {
    let mut registry = Registry::default();
    let text =
        interface("DefClass counter { DefState { static long n; } DefMethod add(IN long n) { } }");
    registry.announce(announcement("a:1", &text), "lab", SECOND).unwrap();
    let offers = registry.offers("lapack/counter", SECOND).unwrap();
    assert_eq!(offers[0].signature.as_deref(), Some("class counter"));
    assert!(registry.offers("lapack/counter.add", SECOND).is_err());
}

#[test]
fn the_file_keeps_servers_and_interfaces() {
    let folder = std::env::temp_dir().join(format!("gridrpc-directory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("directory.sqlite");
    let registry = announced(&["a:1", "b:1"], SECOND);
    let mut store = Store::open(&file).unwrap();
    for address in ["a:1", "b:1"] {
        store.keep(registry.entry(address).unwrap(), &registry).unwrap();
    }
    store.forget(&["b:1".to_owned()], &[]).unwrap();
    drop(store);
    let loaded = Store::open(&file).unwrap().load(Duration::ZERO).unwrap();
    assert_eq!(loaded.servers(SECOND).len(), 1);
    assert_eq!(loaded.offers("lapack/dgesv", SECOND).unwrap().len(), 1);
    // A server that does not announce itself again is silent after one lifetime.
    assert!(loaded.servers(5 * SECOND)[0].is_silent);
    std::fs::write(folder.join("no-database"), "text text text text text").unwrap();
    assert!(Store::open(&folder.join("no-database")).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

fn lookup(registry: &Registry) -> Value {
    let offers = registry.offers("lapack/dgesv", SECOND).unwrap();
    let (interface, _) = registry.function("lapack/dgesv").unwrap();
    json!({ "function": "lapack/dgesv", "offers": offers, "interface": interface.text })
}

#[test]
fn the_explanation_has_all_terms() {
    let mut registry = announced(&["a:1"], SECOND);
    let busy = Announcement { load: 3.0, ..announcement("b:1", &solve()) };
    registry.announce(busy, "lab", SECOND).unwrap();
    let arguments = Arguments([("n".to_owned(), 1000.0)].into());
    let why = explain(&lookup(&registry), &arguments, Policy::LeastTime);
    assert!(why.contains("6.667e8 operations") && why.contains("8.008e6 bytes in"), "{why}");
    let line = |address: &str| why.lines().find(|line| line.contains(address)).unwrap();
    assert!(line("a:1").starts_with('*') && line("a:1").contains("6.67e-1 s"), "{why}");
    assert!(line("b:1").contains("2.67e0 s"), "{why}");
    assert!(line("a:1").ends_with("chosen"), "{why}");
    // Of old announcements nobody knows whether they still hold.
    let mut old = lookup(&registry);
    old["offers"][0]["load"] = json!(3.0);
    old["offers"].as_array_mut().unwrap().iter_mut().for_each(|offer| offer["age"] = json!(1e9));
    let why = explain(&old, &arguments, Policy::LeastTime);
    assert_eq!(why.matches("50 % of calls").count(), 2, "{why}");
    assert_eq!(why.matches("chosen for").count(), 1, "{why}");
}

#[test]
fn examples_call_the_function_in_all_languages() {
    let registry = announced(&["a:1"], SECOND);
    let (_, function) = registry.function("lapack/dgesv").unwrap();
    let (name, url) = ("lapack/dgesv", "gridrpc://a:1");
    let c = in_c(name, &function, url);
    assert!(c.contains("double a[4];") && c.contains("grpc_call(&function, n, a, b);"), "{c}");
    let fortran = in_fortran(name, &function, url);
    assert!(fortran.contains("double precision :: a(2, 2)"), "{fortran}");
    let python = in_python(name, &function, url);
    assert!(python.contains("a = np.ones([2, 2], np.float64)"), "{python}");
    let curl = by_curl(name, &function, "https://a:2").unwrap();
    assert!(curl.contains("\"datatype\":\"FP64\"") && curl.contains("\"shape\":[2,2]"), "{curl}");
}
