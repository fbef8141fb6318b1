//! What the server answers its users.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_agent::{Proof, RequestError, RequestSections, Rights, Service, User};
use gridrpc_core::Owner;
use gridrpc_wire::RemoteError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::UserAccess;
use crate::answers::{answered, failure, from_denied};
use crate::api_tokens::{ApiToken, ApiTokenError};
use crate::audit::{AuditEvent, AuditRecord, rfc3339};
use crate::caller::{Caller, denied};
use crate::catalogue::Code;
use crate::detached::DetachedCalls;
use crate::log;
use crate::presence::PresenceKind;
use crate::publisher::Publisher;
use crate::roles::{LocalUser, Role};
use crate::shared::Shared;
use crate::status::ServerStatus;
use crate::stop::Stop;

const DAY: u64 = 24 * 60 * 60;
/// Maximum length of a user's request in the audit log, characters.
const LOGGED_CHARS: usize = 256;

/// Answers users and administrators.
pub(crate) struct Users {
    pub(crate) shared: Arc<Shared>,
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) detached: Arc<DetachedCalls>,
}

type Answer = Result<RequestSections, RequestError>;

impl Service for Users {
    fn admit(&self, user: &User) -> Result<(), String> {
        self.record(AuditEvent::Connect, user, None);
        Ok(())
    }

    fn answer(&self, user: &User, name: &str, request: RequestSections) -> Answer {
        let RequestSections { sections, order } = request;
        let text = |index: usize| {
            let bytes: &[u8] = sections.get(index).map_or(&[], Vec::as_slice);
            std::str::from_utf8(bytes).map_err(|_| failure("ValueError", "a name is not UTF-8"))
        };
        match name {
            "interface" => self.interface(user, text(0)?),
            "list" => Ok(answered(&self.list(user))),
            "detach" | "call" | "wait" | "result" | "cancel" | "calls" => {
                let request = RequestSections { sections, order };
                self.detached.answer(self.caller(user), name, request)
            }
            "share" | "share-more" | "shared" | "unshare" | "shared-names" => {
                let request = RequestSections { sections, order };
                self.shared.named_data.answer(&self.caller(user), name, &request)
            }
            "status" => {
                let all = is_administrator(user) || self.role(user).monitor;
                Ok(answered(&ServerStatus::of(&self.shared, &self.detached, all)))
            }
            "cancel-calls" => {
                let requested: String = text(0)?.chars().take(LOGGED_CHARS).collect();
                self.record(AuditEvent::Admin, user, Some(format!("{name} {requested}")));
                self.cancel(user, text(0)?)
            }
            "add" | "remove" | "drain" | "stop" | "token" | "tokens" | "revoke-token" => {
                if !is_administrator(user) {
                    let message = format!(
                        "only root and the user of the server, at its Unix socket, may {name} here, not {user}"
                    );
                    return Err(failure(RemoteError::NotPermitted.name(), &message));
                }
                let outcome = Some(format!("{name} {}", text(0)?).trim_end().to_owned());
                self.record(AuditEvent::Admin, user, outcome);
                self.control(name, text(0)?)
            }
            _ => {
                let message = format!(
                    "the server knows no request `{name}`: it may be older than this client"
                );
                Err(failure("ValueError", &message))
            }
        }
    }

    fn may_send_code(&self, user: &User) -> bool {
        self.role(user).code
    }

    fn open(&self, user: &User) -> Result<Rights, String> {
        let role = self.role(user);
        self.shared.presence.enter(&user.name, PresenceKind::Connection);
        let owner = self.shared.pools.common.owner(&user.name, role.weight).map_err(|error| {
            self.shared.leave(&user.name, PresenceKind::Connection);
            format!("the workers cannot start: {error}")
        })?;
        let (caller, detached) = (Arc::new(self.caller(user)), Arc::clone(&self.detached));
        let access = UserAccess { caller, detached };
        Ok(Rights { owner, access: Some(Arc::new(access)) })
    }

    fn close(&self, user: &User, _owner: Owner) {
        self.shared.leave(&user.name, PresenceKind::Connection);
    }

    fn warn(&self, message: &str) {
        log::warning(message, &[]);
    }
}

impl Users {
    fn role(&self, user: &User) -> Role {
        match &user.proof {
            Proof::Local { uid } => {
                let LocalUser { name, groups, .. } = LocalUser::of(*uid);
                Role::of(&self.shared.config, &name, &groups)
            }
            Proof::Certificate(_) => Role::of(&self.shared.config, &user.name, &user.groups),
        }
    }

    fn caller(&self, user: &User) -> Caller {
        Caller {
            shared: Arc::clone(&self.shared),
            user: Arc::clone(&user.name),
            address: user.address.as_str().into(),
            role: self.role(user),
            owns_server: is_administrator(user),
        }
    }

    fn record(&self, event: AuditEvent, user: &User, outcome: Option<String>) {
        self.shared.audit.record(AuditRecord {
            user: Some(Arc::clone(&user.name)),
            address: Some(user.address.as_str().into()),
            outcome: outcome.map(Into::into),
            ..AuditRecord::now(event)
        });
    }

    /// The interface of the module of a function or class, or of a module, and its hash.
    fn interface(&self, user: &User, name: &str) -> Answer {
        let caller = self.caller(user);
        let found = match name.split_once('/') {
            Some(_) => caller.module_of_member(name),
            None => caller.module(name),
        };
        let module = found.map_err(from_denied)?;
        match &module.code {
            Code::Library { text, hash, .. } => {
                let limits = serde_json::to_vec(&caller.limits(&module)).unwrap_or_default();
                let (text, hash) = (text.clone().into_bytes(), hash.clone().into_bytes());
                Ok(vec![text, hash, limits].into())
            }
            Code::Python(_) => {
                let message = format!(
                    "`{name}` is in Python: it has no interface, and only Python programs call it"
                );
                Err(from_denied(denied(RemoteError::FunctionNotFound, message)))
            }
        }
    }

    /// All functions that the user may call.
    fn list(&self, user: &User) -> Value {
        let mut all = Vec::new();
        for module in self.caller(user).modules() {
            for name in module.functions() {
                let function = match &module.code {
                    Code::Library { interface, .. } => match name.split_once('.') {
                        None => interface.function(&name),
                        Some((class, method)) => interface.class(class).and_then(|class| {
                            class.methods.iter().find(|known| known.name == method)
                        }),
                    },
                    Code::Python(_) => None,
                };
                all.push(json!({
                    "name": format!("{}/{name}", module.name),
                    "signature": function.map(gridrpc_idl::Function::signature),
                    "description": function.and_then(|function| function.description.clone()),
                    "language": if function.is_some() { "native" } else { "python" },
                }));
            }
        }
        Value::Array(all)
    }

    /// Makes, lists or revokes API tokens.
    fn tokens(&self, name: &str, argument: &str) -> Answer {
        let failed = |error: ApiTokenError| failure("ValueError", &error.to_string());
        let tokens = self.shared.tokens.as_ref().ok_or_else(|| {
            let message = "the server serves no HTTP: add a table [http] to server.toml";
            failure("ValueError", message)
        })?;
        let shown = |token: &ApiToken| {
            json!({
                "id": token.id(), "user": token.user, "groups": token.groups,
                "until": token.until().map(rfc3339),
            })
        };
        Ok(match name {
            "token" => {
                let wrong = |error: serde_json::Error| failure("ValueError", &error.to_string());
                let NewToken { user, groups, days } =
                    serde_json::from_str(argument).map_err(wrong)?;
                let valid = days.map(|days| Duration::from_secs(u64::from(days) * DAY));
                let (token, record) = tokens.add(&user, &groups, valid).map_err(failed)?;
                let mut answer = shown(&record);
                answer["token"] = json!(token);
                answered(&answer)
            }
            "tokens" => answered(&Value::Array(tokens.list().iter().map(shown).collect())),
            _ => answered(&shown(&tokens.revoke(argument).map_err(failed)?)),
        })
    }

    /// Cancels calls: an administrator those of all users, others their own.
    fn cancel(&self, user: &User, argument: &str) -> Answer {
        let unwanted: CancelRequest = serde_json::from_str(argument)
            .map_err(|error| failure("ValueError", &error.to_string()))?;
        let CancelRequest { ids, user: of, function } = &unwanted;
        let of = match of.as_deref() {
            of if is_administrator(user) => of,
            Some(other) if *other != *user.name => {
                let message = format!(
                    "only root and the user of the server, at its Unix socket, may cancel calls of {other} here, not {user}"
                );
                return Err(failure(RemoteError::NotPermitted.name(), &message));
            }
            _ => Some(&*user.name),
        };
        if !ids.is_empty() {
            let is_unknown = |id: &&str| !self.detached.cancel_by_id(id, of);
            let unknown: Vec<&str> = ids.iter().map(String::as_str).filter(is_unknown).collect();
            let cancelled = ids.len() - unknown.len();
            return Ok(answered(&json!({ "cancelled": cancelled, "unknown": unknown })));
        }
        // Their calls have ended when the pools are searched, and so count once.
        let detached = self.detached.cancel_all(of, function.as_deref());
        let (cancelled, left) = self.shared.pools.cancel_all(of, function.as_deref());
        Ok(answered(&json!({ "cancelled": detached + cancelled, "left": left })))
    }

    fn control(&self, name: &str, argument: &str) -> Answer {
        match name {
            "add" => {
                let added = self.publisher.add(Path::new(argument));
                let (module, is_new) =
                    added.map_err(|error| failure("ValueError", &error.to_string()))?;
                Ok(answered(&json!({ "module": module, "new": is_new })))
            }
            "remove" => {
                self.publisher.remove(argument).map_err(|why| failure("ValueError", &why))?;
                Ok(answered(&json!({ "module": argument })))
            }
            "token" | "tokens" | "revoke-token" => self.tokens(name, argument),
            "drain" => {
                self.shared.drain();
                let alive: u64 =
                    self.shared.catalogue.modules().iter().map(|one| one.alive()).sum();
                Ok(answered(&json!({ "alive": alive })))
            }
            _ => {
                self.stop.request();
                Ok(answered(&json!({ "pid": std::process::id() })))
            }
        }
    }
}

/// The user of a new API token, as an administrator requests it.
#[derive(Deserialize)]
struct NewToken {
    user: String,
    #[serde(default)]
    groups: Vec<String>,
    days: Option<u32>,
}

/// Calls to cancel: those with these ids, or else those of a user and of a function.
#[derive(Deserialize)]
struct CancelRequest {
    #[serde(default)]
    ids: Vec<String>,
    user: Option<String>,
    function: Option<String>,
}

/// Whether a user may control the server: root and the server's own user, at the Unix socket.
fn is_administrator(user: &User) -> bool {
    matches!(user.proof, Proof::Local { uid } if LocalUser::of(uid).is_administrator)
}
