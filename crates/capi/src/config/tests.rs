//! Whole configurations, and the messages for invalid ones.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Files in memory.
#[derive(Default)]
struct Memory(HashMap<PathBuf, Vec<u8>>);

impl Memory {
    fn with(mut self, name: &str, content: &str) -> Self {
        self.0.insert(name.into(), content.into());
        self
    }
}

impl Files for Memory {
    fn load(&self, path: &Path) -> io::Result<Vec<u8>> {
        let found = self.0.get(&self.identity(path));
        found.cloned().ok_or_else(|| io::Error::other("it is not there"))
    }

    fn identity(&self, path: &Path) -> PathBuf {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => _ = plain.pop(),
                part => plain.push(part),
            }
        }
        plain
    }
}

fn parse(text: &str) -> Result<ClientConfig, ConfigError> {
    ClientConfig::parse(Path::new("grpc.conf"), text.as_bytes(), &Memory::default())
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn warnings(text: &str) -> Vec<String> {
    parse(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_means_what_is_built_in() {
    let config = parse("").unwrap();
    assert_eq!(config, ClientConfig::default());
    assert_eq!((config.log_level, config.save_session_info), (2, Some(256)));
    assert_eq!(config.handling_signals, [1, 2, 15]);
    assert_eq!(config.tmp_dir, Path::new("/tmp"));
}

#[test]
fn a_whole_configuration() {
    let config = parse(
        "\u{feff}# of the test\r
<CLIENT>\r
    loglevel 5\r
    save_sessionInfo -1     # all of them
    log_filePath \"/var/log/my grid.%p\"
    tmp_dir /scratch
    fortran_compatible true
    handling_signals SIGUSR1 TERM
</CLIENT>
<FUNCTION_INFO>
    hostname node1
    funcname sample/mmul
    path /opt/sample/_stub_mmul
    session_timeout 2 min
</FUNCTION_INFO>
<SERVER>
    hostname node1
    hostname node2
    tag fast
    argument_transfer copy
    workDirectory /work
</SERVER>
<SERVER_DEFAULT>
    job_startTimeout 1 min
    argument_transfer nowait
</SERVER_DEFAULT>
<INFORMATION_SOURCE>
    tag files
    type NRF
    source node1.nrf
    source /opt/node2.nrf
</INFORMATION_SOURCE>",
    )
    .unwrap();
    let [first, second] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
    let expected =
        "grpc.conf:27: `source` names `node1.nrf`, which cannot be read: it is not there";
    assert_eq!(first.to_string(), expected);
    assert!(second.message.starts_with("`source` names `/opt/node2.nrf`"));
    assert_eq!(config.log_level, 5);
    assert_eq!(config.save_session_info, None);
    assert_eq!(config.log_file, Some("/var/log/my grid.%p".into()));
    assert_eq!(config.tmp_dir, Path::new("/scratch"));
    assert!(config.fortran_compatible);
    assert_eq!(config.handling_signals, [10, 15]);
    assert_eq!(config.function_infos[0].session_timeout, Some(Duration::from_secs(120)));
    let server = &config.servers[0];
    assert_eq!(server.hostnames, ["node1", "node2"]);
    assert_eq!(server.settings.argument_transfer, ArgumentTransfer::Copy);
    assert_eq!(server.settings.job_start_timeout, WaitTime::For(Duration::from_secs(60)));
    assert_eq!(config.server_default.argument_transfer, ArgumentTransfer::NoWait);
    let files = &config.information_sources[0].files;
    assert_eq!(files[..], [PathBuf::from("node1.nrf"), "/opt/node2.nrf".into()]);
}

#[test]
fn what_has_no_meaning_is_reported_by_name_and_line() {
    assert_eq!(
        warnings("<SERVER>\nhostname x\ncrypt GSI\njob_queue\njob_queue a b\n</SERVER>\n"),
        [
            "grpc.conf:3: `crypt` has no meaning here: data does not leave this host",
            "grpc.conf:4: `job_queue` has no meaning here: workers are processes that the client \
             starts itself, not jobs of a server",
            "grpc.conf:5: `job_queue` has no meaning here: workers are processes that the client \
             starts itself, not jobs of a server",
        ]
    );
    assert_eq!(
        warnings("<MDS_SERVER>\nhostname x\nwhatever\n</MDS_SERVER>"),
        ["grpc.conf:1: <MDS_SERVER> has no meaning here: nothing is looked up in MDS: interfaces \
          are read from the modules themselves"]
    );
    assert_eq!(
        warnings("<INFORMATION_SOURCE>\ntype MDS4\n</INFORMATION_SOURCE>"),
        ["grpc.conf:1: an information source of type `MDS4` has no meaning here: sources are \
          files, of type `NRF`"]
    );
}

#[test]
fn what_is_so_anyway_gives_no_warning() {
    let text = "<SERVER>\nhostname x\ncrypt false\nforce_xdr false\ncompress raw\n</SERVER>";
    assert!(warnings(text).is_empty());
}

#[test]
fn warnings_are_bounded() {
    let text = format!("<CLIENT>\n{}</CLIENT>", "use_vfork true\n".repeat(5000));
    let warnings = warnings(&text);
    assert_eq!(warnings.len(), 1001);
    assert!(warnings[1000].ends_with("are not listed"));
}

#[test]
fn errors_say_where_what_and_what_to_do() {
    for (text, expected) in [
        (
            "<CLIENT>\nloglevel 6\n</CLIENT>",
            "grpc.conf:2: `loglevel` is `6`\n  hint: write a whole number from 0 to 5, or \
             Off, Fatal, Error, Warning, Information, Debug",
        ),
        (
            "<CLIENT>\nloglevel\n</CLIENT>",
            "grpc.conf:2: `loglevel` has no value\n  \
             hint: write the value behind the name, on the same line",
        ),
        (
            "\n<CLIENT>\nloglevel 1\n",
            "grpc.conf:2: the section <CLIENT> is not closed\n  \
             hint: write `</CLIENT>` at its end",
        ),
        (
            "<CLIENT>\n<SERVER>\n",
            "grpc.conf:2: <SERVER> begins, but <CLIENT> of line 1 is not closed\n  \
             hint: write `</CLIENT>` before it",
        ),
        (
            "<CLIENT>\n</SERVER>\n",
            "grpc.conf:2: </SERVER> ends what was not begun: <CLIENT> of line 1 is open\n  \
             hint: write `</CLIENT>`",
        ),
        (
            "</SERVER>\n",
            "grpc.conf:1: </SERVER> ends what was not begun\n  \
             hint: write `<SERVER>` at the section's beginning",
        ),
        (
            "loglevel 1\n",
            "grpc.conf:1: `loglevel` stands outside of any section\n  \
             hint: attributes stand between `<SECTION>` and `</SECTION>`",
        ),
        (
            "<SEVER>\n</SEVER>\n",
            "grpc.conf:1: there is no section <SEVER>\n  hint: is `<SERVER>` meant?",
        ),
        (
            "<CLIENT>\nLoglevel 1\n</CLIENT>",
            "grpc.conf:2: <CLIENT> has no attribute `Loglevel`\n  hint: is `loglevel` meant?",
        ),
        (
            "<SERVER_DEFAULT>\nhostname x\n</SERVER_DEFAULT>",
            "grpc.conf:2: <SERVER_DEFAULT> has no attribute `hostname`\n  \
             hint: see the table of attributes in docs/coming-from-ninf-g.md",
        ),
        (
            "<CLIENT>\ntmp_dir /a\ntmp_dir /b\n</CLIENT>",
            "grpc.conf:3: `tmp_dir` has a value already, from line 2\n  \
             hint: take one of the two out",
        ),
        (
            "<CLIENT>\ntmp_dir /a loglevel 2\n</CLIENT>",
            "grpc.conf:2: `tmp_dir` has more than one value: what is `loglevel`?\n  \
             hint: one attribute per line; put a value with blanks into double quotes",
        ),
        (
            "<CLIENT>\n</CLIENT>\n<CLIENT>\n</CLIENT>\n",
            "grpc.conf:3: there is a <CLIENT> already\n  hint: write everything into one section",
        ),
        (
            "<SERVER>\ntag a\n</SERVER>",
            "grpc.conf:1: <SERVER> has no `hostname`\n  hint: write a line `hostname ...` into it",
        ),
        (
            "<FUNCTION_INFO>\nhostname a\nfuncname b\n</FUNCTION_INFO>",
            "grpc.conf:1: <FUNCTION_INFO> has no `path`\n  \
             hint: write a line `path ...` into it",
        ),
        (
            "<SERVER>\nhostname a\ntag t\n</SERVER>\n<SERVER>\nhostname b\ntag t\n</SERVER>",
            "grpc.conf:5: there is a server with the tag `t` already\n  \
             hint: tags tell servers apart: choose another",
        ),
        (
            "<FUNCTION_INFO>\nhostname a\nsession_timeout 5 days\nfuncname b\npath c\n</FUNCTION_INFO>",
            "grpc.conf:3: `session_timeout` is `5 days`\n  hint: write a time such as `30`, \
             `30 seconds`, `5 min` or `2 hours`; 0 means no limit",
        ),
        (
            "<SERVER>\nhostname a\nargument_transfer sometimes\n</SERVER>",
            "grpc.conf:3: `argument_transfer` is `sometimes`\n  \
             hint: write `wait`, `nowait` or `copy`",
        ),
        (
            "<CLIENT>\ntmp_dir \"/a\n</CLIENT>",
            "grpc.conf:2: the quote is not closed\n  \
             hint: end the value with `\"` on the same line",
        ),
        ("a\0b", "grpc.conf:1: the line has a zero byte\n  hint: is it a text file?"),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn other_encodings_are_refused_with_the_line() {
    let latin1 = b"<CLIENT>\n# caf\xe9\n</CLIENT>";
    let result = ClientConfig::parse(Path::new("c"), latin1, &Memory::default());
    assert_eq!(
        result.unwrap_err().to_string(),
        "c:2: the line is not UTF-8\n  hint: save the file as UTF-8"
    );
}

#[test]
fn huge_files_are_refused() {
    let huge = vec![b'\n'; MAX_FILE as usize + 1];
    let result = ClientConfig::parse(Path::new("c"), &huge, &Memory::default());
    let message = result.unwrap_err().to_string();
    assert!(message.starts_with("c: the file has more than 4 MiB"), "{message}");
}

#[test]
fn lists_are_bounded() {
    let servers = "<SERVER>\nhostname x\n</SERVER>\n";
    assert!(error(&servers.repeat(4097)).contains("more than 4096 sections"));
    let names = format!("<SERVER>\n{}</SERVER>", "hostname x\n".repeat(1025));
    assert!(error(&names).contains("`hostname` is there more than 1024 times"));
}

#[test]
fn included_files_lie_beside_the_file() {
    let files = Memory::default()
        .with("/etc/grid/main.conf", "<INCLUDE>\nfilename a/one.conf\n</INCLUDE>")
        .with("/etc/grid/a/one.conf", "<INCLUDE>\nfilename ../two.conf\n</INCLUDE>")
        .with("/etc/grid/two.conf", "<CLIENT>\nloglevel 4\n</CLIENT>");
    let config = ClientConfig::read_from(Path::new("/etc/grid/main.conf"), &files).unwrap();
    assert_eq!(config.log_level, 4);
}

#[test]
fn files_that_include_themselves_are_refused() {
    let files = Memory::default()
        .with("/a", "<INCLUDE>\nfilename b\n</INCLUDE>")
        .with("/b", "\n<INCLUDE>\nfilename ./a\n</INCLUDE>");
    let result = ClientConfig::read_from(Path::new("/a"), &files);
    assert_eq!(
        result.unwrap_err().to_string(),
        "/b:3: `/./a` includes itself\n  \
         hint: take one of the INCLUDE sections on the way from it to itself out"
    );
}

#[test]
fn the_depth_of_including_is_bounded() {
    let mut files = Memory::default();
    for i in 0..40 {
        let next = format!("<INCLUDE>\nfilename f{}\n</INCLUDE>", i + 1);
        files = files.with(&format!("/f{i}"), &next);
    }
    let message = ClientConfig::read_from(Path::new("/f0"), &files).unwrap_err().to_string();
    assert!(message.starts_with("/f15:2: `/f16` is one file too many"), "{message}");
}

#[test]
fn the_number_of_files_is_bounded() {
    let many = format!("<INCLUDE>\n{}</INCLUDE>", "filename x\n".repeat(300));
    let files = Memory::default().with("/main", &many).with("/x", "");
    let message = ClientConfig::read_from(Path::new("/main"), &files).unwrap_err().to_string();
    assert!(message.contains("one file too many"), "{message}");
}

#[test]
fn a_file_that_is_not_there() {
    let files = Memory::default().with("/main", "<INCLUDE>\nfilename x\n</INCLUDE>");
    let included = ClientConfig::read_from(Path::new("/main"), &files).unwrap_err();
    assert_eq!(included.to_string(), "/main:2: cannot read `/x`: it is not there");
    let main = ClientConfig::read_from(Path::new("/nothing"), &files).unwrap_err();
    assert_eq!(main.to_string(), "cannot read `/nothing`: it is not there");
}

#[test]
fn devices_and_directories_are_no_files() {
    for path in ["/dev/zero", "/"] {
        let message = ClientConfig::read(Path::new(path)).unwrap_err().to_string();
        assert!(message.ends_with("it is not a regular file"), "{message}");
    }
}

const SERVERS: &str = "
<SERVER>\nhostname node1\n</SERVER>
<SERVER>\nhostname localhost\ntag here\n</SERVER>
<SERVER>\nhostname node1\ntag slow\nredirect_outerr false\n</SERVER>
<FUNCTION_INFO>\nhostname here\nfuncname m/f\npath /m.so\n</FUNCTION_INFO>
<FUNCTION_INFO>\nhostname node1\nfuncname m/f\npath /other/m.so\n</FUNCTION_INFO>
";

#[test]
fn servers_by_tag_then_by_name() {
    let config = parse(SERVERS).unwrap();
    assert_eq!(config.server("here").unwrap(), &config.servers[1]);
    assert_eq!(config.server("slow").unwrap(), &config.servers[2]);
    assert_eq!(config.server("slow:2119/jobmanager").unwrap(), &config.servers[2]);
    assert_eq!(config.server("NODE1").unwrap(), &config.servers[0]);
    assert_eq!(config.server("node2"), None);
    assert_eq!(config.default_server().unwrap(), &config.servers[0]);
}

#[test]
fn functions_by_server() {
    let config = parse(SERVERS).unwrap();
    let path = |server| config.function_info(server, "m/f").map(|info| info.path.clone());
    assert_eq!(path("here"), Some("/m.so".into()));
    assert_eq!(path("localhost"), Some("/m.so".into()));
    assert_eq!(path("slow"), Some("/other/m.so".into()));
    assert_eq!(path("node2"), None);
    assert!(config.function_info("here", "m/g").is_none());
}

struct OfflineMachine;

impl Machine for OfflineMachine {
    fn name(&self) -> String {
        "lonely".into()
    }

    fn addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }

    fn look_up(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

#[test]
fn tags_stand_for_their_host() {
    let config = parse(SERVERS).unwrap();
    assert_eq!(config.location("here", &OfflineMachine), Location::Here);
    assert_eq!(config.location("localhost:2119", &OfflineMachine), Location::Here);
    assert_eq!(config.location("slow", &OfflineMachine), Location::Elsewhere);
    assert_eq!(config.location("lonely", &OfflineMachine), Location::Here);
}

#[test]
fn log_paths_are_filled_in() {
    let path = |pattern: &str| {
        let config = ClientConfig { log_file: Some(pattern.into()), ..ClientConfig::default() };
        config.log_path("T", "H", 7).unwrap().to_str().unwrap().to_string()
    };
    assert_eq!(path("/log/%t-%h.%p"), "/log/T-H.7");
    assert_eq!(path("100%%t"), "100%t");
    assert_eq!(path("%x%"), "%x%");
    assert_eq!(ClientConfig::default().log_path("T", "H", 7), None);
}

/// Text resembling lines of a configuration, so that parsing gets past the first line.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "</?(CLIENT|SERVER|SERVER_DEFAULT|INCLUDE|FUNCTION_INFO|INFORMATION_SOURCE|X)>",
        "(hostname|tag|heartbeat|loglevel|filename|path|environment|crypt) [-a-z0-9=\"#]{0,9}",
        ".{0,20}",
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = ClientConfig::parse(Path::new("c"), &bytes, &Memory::default());
    }

    #[test]
    fn no_lines_make_it_panic(lines in prop::collection::vec(line(), 0..30)) {
        let text = lines.join("\n");
        if let Err(error) = parse(&text) {
            prop_assert!(error.to_string().starts_with("grpc.conf:"), "{error}");
        }
    }

    #[test]
    fn no_names_make_it_panic(name in ".{0,40}", pattern in ".{0,40}") {
        let config = ClientConfig { log_file: Some(pattern.into()), ..parse(SERVERS).unwrap() };
        let _ = (config.location(&name, &OfflineMachine), config.server(&name));
        let _ = config.function_info(&name, "m/f");
        let _ = config.log_path("T", "H", 7);
    }
}
