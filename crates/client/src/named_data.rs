//! Shared data that a server keeps under a name.

use std::time::Instant;

use gridrpc_core::BlobId;
use serde::Deserialize;

use crate::detached::{DetachedError, Interrupted, PATIENCE};
use crate::server_catalogue::ServerCatalogue;

/// Most bytes of one request.
const PIECE: usize = 16 << 20;

/// Named data of a server, as the server describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SharedName {
    /// The user who shared it.
    pub owner: String,
    /// The name.
    pub name: String,
    /// The number that calls refer to.
    pub number: u64,
    /// Users, groups as `@GROUP`, or `all`.
    pub readers: Vec<String>,
    /// When it is removed, ms since 1970.
    pub until: u64,
    /// Type of the elements of an array; none: bytes.
    pub dtype: Option<String>,
    /// Whether the first index runs fastest.
    pub fortran: bool,
    /// Dimensions of the array.
    pub dims: Vec<u64>,
    /// Length, bytes.
    pub bytes: u64,
}

/// The answer to a piece of data.
#[derive(Deserialize)]
struct UploadAnswer {
    /// The number of the upload, if more has to come.
    upload: Option<String>,
}

impl ServerCatalogue {
    /// Has the server keep data under a name. `description`: a JSON object with `name`, `keep`, `readers`, `dtype`,
    /// `fortran`, `dims` and `bytes`. It survives a restart of the server when this returns.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses it.
    pub fn share_named(
        &self,
        description: &str,
        data: &[u8],
        interrupted: Interrupted<'_>,
    ) -> Result<SharedName, DetachedError> {
        let mut connection = self.connect(interrupted)?;
        let (piece, mut rest) = data.split_at(data.len().min(PIECE));
        let (mut request, mut head, mut piece) = ("share", description.to_owned(), piece);
        loop {
            let until = Some(Instant::now() + PATIENCE);
            let sections = vec![head.into_bytes(), piece.to_vec()];
            let answer = connection
                .request(request, sections, until, interrupted)
                .map_err(|error| self.unanswered(error))?;
            let answer = answer.sections.into_iter().next().unwrap_or_default();
            let parsed: UploadAnswer = self.parsed(&answer)?;
            match parsed.upload {
                None => return self.checked(self.parsed(&answer)?),
                Some(_) if rest.is_empty() => {
                    return Err(self.makes_no_sense("an upload that does not end"));
                }
                Some(upload) => (request, head) = ("share-more", upload),
            }
            (piece, rest) = rest.split_at(rest.len().min(PIECE));
        }
    }

    /// Named data that this user may read. `name`: `name` or `owner/name`.
    ///
    /// # Errors
    /// When the server cannot be reached, or keeps no such data.
    pub fn named_data(
        &self,
        name: &str,
        interrupted: Interrupted<'_>,
    ) -> Result<SharedName, DetachedError> {
        let answer = self.ask_for_text("shared", vec![name.as_bytes().to_vec()], interrupted)?;
        self.checked(self.parsed(answer.as_bytes())?)
    }

    /// Removes named data of this user.
    ///
    /// # Errors
    /// When the server cannot be reached, or keeps no such data of this user.
    pub fn unshare_named(
        &self,
        name: &str,
        interrupted: Interrupted<'_>,
    ) -> Result<(), DetachedError> {
        self.ask("unshare", vec![name.as_bytes().to_vec()], interrupted).map(drop)
    }

    /// All named data that this user may read.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn shared_names(
        &self,
        interrupted: Interrupted<'_>,
    ) -> Result<Vec<SharedName>, DetachedError> {
        let answer = self.ask_for_text("shared-names", vec![], interrupted)?;
        self.parsed(answer.as_bytes())
    }

    fn parsed<'a, T: Deserialize<'a>>(&self, text: &'a [u8]) -> Result<T, DetachedError> {
        serde_json::from_slice(text).map_err(|error| self.makes_no_sense(error.to_string()))
    }

    /// A number of this client's own data would be another one's.
    fn checked(&self, described: SharedName) -> Result<SharedName, DetachedError> {
        if BlobId(described.number).is_named() && usize::try_from(described.bytes).is_ok() {
            return Ok(described);
        }
        Err(self.makes_no_sense("named data with a number of other data"))
    }
}
