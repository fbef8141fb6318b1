//! Access token of the web page: other users of this machine can reach its port too.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::unistd::geteuid;

/// Bytes of a new token, too many for a brute-force attack.
const RANDOM: usize = 24;
/// Shortest token accepted; a shorter, hand-made one could be guessed.
const SHORTEST: usize = 16;
/// Largest token file accepted.
const LONGEST: u64 = 4096;

/// A token of letters, digits and `-`, `.`, `_`, `~`, which need no escaping in a URL.
pub(super) struct Token(String);

impl Token {
    /// Creates a random token.
    pub(super) fn random() -> io::Result<Token> {
        let bytes = gridrpc_sys::random::<RANDOM>()?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Reads the token from a file. If the file does not exist, creates it with a new token, readable by its
    /// owner only.
    pub(super) fn read_or_create(file: &Path) -> io::Result<Token> {
        let token = Token::random()?;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
            Ok(mut new) => {
                new.write_all(format!("{}\n", token.0).as_bytes()).inspect_err(|_| {
                    // An empty file would be rejected forever.
                    let _ = std::fs::remove_file(file);
                })?;
                Ok(token)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let existing = OpenOptions::new().read(true).open(file)?;
                let its = existing.metadata()?;
                let own = its.uid() == geteuid().as_raw() || its.uid() == 0;
                if !own || its.mode() & 0o007 != 0 {
                    let what = "others than you can read or write it; a token is for its owner and a group at most: \
                                chmod 640, or delete the file to have a new one";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
                }
                let mut text = String::new();
                existing.take(LONGEST).read_to_string(&mut text)?;
                Token::written(text.trim()).ok_or_else(|| {
                    let what = "a token is one line of 16 letters and digits or more; delete the file to have a new one";
                    io::Error::new(io::ErrorKind::InvalidData, what)
                })
            }
            Err(error) => Err(error),
        }
    }

    fn written(text: &str) -> Option<Token> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        (text.len() >= SHORTEST && text.chars().all(plain)).then(|| Token(text.to_owned()))
    }

    /// The token for use in a URL.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Compares tokens in constant time.
    pub(super) fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let pairs = own.iter().zip(given);
        // The black box keeps the compiler from ending the loop early.
        let differs = pairs.fold(0, |differs, (a, b)| std::hint::black_box(differs | (a ^ b)));
        own.len() == given.len() && differs == 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_is_another_one_and_equals_itself_alone() {
        let (one, other) = (Token::random().expect("random"), Token::random().expect("random"));
        assert_eq!(one.text().len(), 2 * RANDOM);
        assert!(one.is(one.text()));
        let shorter = &one.text()[1..];
        let longer = format!("{}0", one.text());
        for wrong in [other.text(), shorter, &longer, &one.text()[..8], ""] {
            assert!(!one.is(wrong), "{wrong}");
        }
        let swapped: String = one.text().chars().rev().collect();
        assert_eq!(one.is(&swapped), swapped == one.text());
    }

    #[test]
    fn what_people_write_is_long_and_stands_for_itself_in_an_address() {
        assert!(Token::written("0123456789abcdef").is_some());
        assert!(Token::written("A-token_of~letters.1").is_some());
        for wrong in
            ["", "short", "0123456789 abcdef", "0123456789abcdef&x=1", "0123456789abcd\u{e9}"]
        {
            assert_eq!(Token::written(wrong).map(|token| token.0), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_that_everybody_can_read_holds_no_secret() {
        let name = format!("gridrpc-token-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&file);
        let token = Token::read_or_create(&file).expect("a new one");
        assert_eq!(Token::read_or_create(&file).expect("it is kept").0, token.0);
        let opened = |mode| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
            Token::read_or_create(&file).map(|token| token.0)
        };
        assert_eq!(opened(0o640).expect("its group may read it"), token.0);
        for mode in [0o644, 0o602] {
            assert_eq!(opened(mode).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        std::fs::remove_file(&file).expect("it is there");
    }
}
