//! Requests of clients about named data.

use std::time::{Duration, SystemTime};

use gridrpc_agent::{RequestError, RequestSections};
use gridrpc_wire::RemoteError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answers::{answered, failure, from_denied};
use crate::audit::{AuditEvent, AuditRecord};
use crate::caller::Caller;
use crate::named_data::record::{DataShape, NamedRecord, problem_of_name, problem_of_readers};
use crate::named_data::store::{NamedStore, Progress, ShareError};

const DAY: u64 = 24 * 60 * 60;

type Answer = Result<RequestSections, RequestError>;

/// Data that a client begins to send.
#[derive(Deserialize)]
struct NewData {
    name: String,
    /// How long to keep it, s; none: as long as results.
    keep: Option<f64>,
    #[serde(default)]
    readers: Vec<String>,
    #[serde(flatten)]
    shape: DataShape,
}

impl NamedStore {
    /// Answers a request.
    ///
    /// | request | sections | answer |
    /// |---|---|---|
    /// | `share` | description of the data, its first bytes | description, or the number of the upload |
    /// | `share-more` | number of the upload, the next bytes | the same |
    /// | `shared` | name | description |
    /// | `unshare` | name | |
    /// | `shared-names` | | descriptions |
    pub(crate) fn answer(&self, caller: &Caller, name: &str, request: &RequestSections) -> Answer {
        let RequestSections { sections, order } = request;
        let bytes = |index: usize| sections.get(index).map_or(&[][..], Vec::as_slice);
        let text = |index: usize| {
            std::str::from_utf8(bytes(index)).map_err(|_| wrong("a text is not UTF-8"))
        };
        match name {
            "share" => {
                let new =
                    serde_json::from_slice(bytes(0)).map_err(|error| wrong(&error.to_string()))?;
                let record = new_record(caller, new).map_err(|why| wrong(&why))?;
                let full_name = record.full_name();
                let most = caller.role.limits.shared_bytes;
                self.answer_upload(caller, &full_name, self.begin(record, most, bytes(1), *order))
            }
            "share-more" => {
                let id = u64::from_str_radix(text(0)?, 16).unwrap_or(0);
                self.answer_upload(caller, "", self.proceed(&caller.user, id, bytes(1), *order))
            }
            "shared" => {
                let record = self.find(&caller.role, text(0)?);
                let record = record.ok_or_else(|| not_found(caller, text(0).unwrap_or("")))?;
                caller.named_data(record.number).map_err(from_denied)?;
                self.record(caller, AuditEvent::Use, &record.full_name(), 0);
                Ok(answered(&described(&record)))
            }
            "unshare" => {
                let (name, user) = (text(0)?, &*caller.user);
                let own = name.strip_prefix(&format!("{user}/")).unwrap_or(name);
                let removed = self.remove(user, own).map_err(|error| {
                    failure("OSError", &format!("`{own}` cannot be removed: {error}"))
                })?;
                if !removed {
                    return Err(not_found(caller, name));
                }
                self.record(caller, AuditEvent::Unshare, &format!("{user}/{own}"), 0);
                Ok(Vec::new().into())
            }
            _ => {
                let all = self.readable(&caller.role);
                Ok(answered(&Value::Array(all.iter().map(described).collect())))
            }
        }
    }

    fn answer_upload(
        &self,
        caller: &Caller,
        full_name: &str,
        progress: Result<Progress, ShareError>,
    ) -> Answer {
        match progress {
            Ok(Progress::Upload(id)) => Ok(answered(&json!({ "upload": format!("{id:016x}") }))),
            Ok(Progress::Complete(record)) => {
                let bytes = record.shape.bytes;
                self.record(caller, AuditEvent::Share, &record.full_name(), bytes);
                Ok(answered(&described(&record)))
            }
            Err(error) => Err(match error {
                ShareError::Limit { .. } => {
                    let outcome = Some("shared_bytes".into());
                    let record = caller.record(AuditEvent::Limit, full_name, 0);
                    caller.shared.audit.record(AuditRecord { outcome, ..record });
                    failure(RemoteError::LimitReached.name(), &error.to_string())
                }
                ShareError::System { .. } => failure("OSError", &error.to_string()),
                ShareError::NoUpload | ShareError::TooLong | ShareError::Divided => {
                    wrong(&error.to_string())
                }
            }),
        }
    }

    fn record(&self, caller: &Caller, event: AuditEvent, full_name: &str, bytes: u64) {
        caller.shared.audit.record(caller.record(event, full_name, bytes));
    }
}

/// Data to store, or its problem.
fn new_record(caller: &Caller, new: NewData) -> Result<NamedRecord, String> {
    let NewData { name, keep, readers, shape } = new;
    let problem =
        problem_of_name(&name).or_else(|| problem_of_readers(&readers)).or_else(|| shape.problem());
    if let Some(problem) = problem {
        return Err(problem);
    }
    let most = caller.shared.config.results.keep;
    let keep = match keep {
        None => most,
        Some(seconds) => match Duration::try_from_secs_f64(seconds) {
            Ok(keep) if keep <= most && !keep.is_zero() => keep,
            _ => {
                return Err(format!(
                    "shared data is kept for more than 0 and at most {} seconds here (`keep_days = {}` in [results] of \
                     server.toml)",
                    most.as_secs(),
                    most.as_secs() / DAY
                ));
            }
        },
    };
    let until = (SystemTime::now() + keep).duration_since(SystemTime::UNIX_EPOCH);
    let until = until.unwrap_or_default().as_millis() as u64;
    Ok(NamedRecord { owner: caller.user.to_string(), name, number: 0, readers, until, shape })
}

/// The same for a name that does not exist and for one that the user may not read.
fn not_found(caller: &Caller, name: &str) -> RequestError {
    let shown: String = name.chars().take(320).collect();
    let message = format!(
        "there is no such shared data: {} keeps no `{shown}` that user `{}` may read",
        caller.shared.name(),
        caller.user
    );
    failure(RemoteError::DataNotFound.name(), &message)
}

fn wrong(why: &str) -> RequestError {
    failure("ValueError", why)
}

fn described(record: &NamedRecord) -> Value {
    let NamedRecord { owner, name, number, readers, until, shape } = record;
    json!({
        "owner": owner, "name": name, "number": number, "readers": readers, "until": until,
        "dtype": shape.dtype, "fortran": shape.fortran, "dims": shape.dims, "bytes": shape.bytes,
    })
}
