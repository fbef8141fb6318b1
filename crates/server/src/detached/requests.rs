//! Requests of clients about detached calls.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gridrpc_agent::{DetachRequest, DetachedEntry, RequestError, RequestSections};
use gridrpc_wire::{Order, RemoteError};
use serde_json::{Value, json};

use crate::answers::{answered, failure, from_denied};
use crate::caller::Caller;
use crate::catalogue::Code;
use crate::detached::calls::{AddError, CallView, DetachedCalls};
use crate::detached::record::{DetachedId, Record};
use crate::detached::store::StoreError;

/// Longest wait of one request.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Most calls that one request waits for.
const MAX_IDS: usize = 1 << 16;

type Answer = Result<RequestSections, RequestError>;

impl DetachedCalls {
    /// Answers a request.
    ///
    /// | request | sections | answer |
    /// |---|---|---|
    /// | `detach` | `module/function#hash`, `1` if it may run again, arguments | the id |
    /// | `call` | id | description, values of the arguments |
    /// | `wait` | ids by line, seconds | those that have ended, by line |
    /// | `result` | id | the result |
    /// | `cancel` | id | `1` if it had not ended |
    /// | `calls` | | descriptions |
    pub(crate) fn answer(&self, caller: Caller, name: &str, request: RequestSections) -> Answer {
        let RequestSections { sections, order } = request;
        let text = |index: usize| {
            let bytes: &[u8] = sections.get(index).map_or(&[], Vec::as_slice);
            std::str::from_utf8(bytes).map_err(|_| failure("ValueError", "a text is not UTF-8"))
        };
        match name {
            "detach" => {
                let (function, again) = (text(0)?.to_owned(), text(1)? == "1");
                let arguments: Vec<&[u8]> = sections.iter().skip(2).map(Vec::as_slice).collect();
                self.detach(&Arc::new(caller), &function, again, order, &arguments)
            }
            "call" => {
                let (id, seen) = self.find(&caller, text(0)?)?;
                if let Some(gone) = seen.record.failure.as_ref().filter(|gone| gone.is_removal()) {
                    return Err(failure(&gone.error, &gone.message));
                }
                let values = self.values(id).map_err(|error| unreadable(id, &error.to_string()))?;
                let mut answer = answered(&described(id, &seen));
                answer.sections.push(values);
                answer.order = seen.record.order();
                Ok(answer)
            }
            "wait" => {
                let mut ids = Vec::new();
                if text(0)?.lines().nth(MAX_IDS).is_some() {
                    let message = format!("one request waits for at most {MAX_IDS} calls");
                    return Err(failure("ValueError", &message));
                }
                for line in text(0)?.lines() {
                    ids.push(self.find(&caller, line).map(|(id, _)| id));
                }
                let seconds: f64 = text(1)?.parse().unwrap_or(0.0);
                let timeout = Duration::try_from_secs_f64(seconds).unwrap_or_default();
                let known: Vec<DetachedId> = ids.iter().flatten().copied().collect();
                let unknown = text(0)?.lines().zip(&ids).filter(|(_, id)| id.is_err());
                let mut lines: Vec<String> = unknown.map(|(line, _)| line.to_owned()).collect();
                let timeout = if lines.is_empty() { timeout.min(MAX_WAIT) } else { Duration::ZERO };
                let ended = self.wait(&known, timeout);
                lines.extend(ended.iter().map(ToString::to_string));
                Ok(vec![lines.join("\n").into_bytes()].into())
            }
            "result" => self.result(&caller, text(0)?),
            "cancel" => {
                let (id, _) = self.find(&caller, text(0)?)?;
                Ok(vec![if self.cancel(id) { b"1".to_vec() } else { Vec::new() }].into())
            }
            _ => {
                let user = &*caller.user;
                let mut ids = self.unfinished(user);
                ids.extend(self.store.ended());
                let own = ids.into_iter().filter_map(|id| Some((id, self.see(user, id).ok()??)));
                let mut own: Vec<(DetachedId, CallView)> = own.collect();
                own.sort_by_key(|(id, seen)| (seen.record.submitted, *id));
                own.dedup_by_key(|(id, _)| *id);
                let all = own.iter().map(|(id, seen)| described(*id, seen)).collect();
                Ok(answered(&Value::Array(all)))
            }
        }
    }

    /// A call of the user. Calls of others are not there, as far as the user can see.
    fn find(&self, caller: &Caller, id: &str) -> Result<(DetachedId, CallView), RequestError> {
        let not_found = || {
            let shown: String = id.chars().take(64).collect();
            let user = &caller.user;
            let message = format!(
                "there is no such call: {} keeps no detached call `{shown}` of user `{user}`",
                self.name()
            );
            failure(RemoteError::CallNotFound.name(), &message)
        };
        let known = DetachedId::parse(id).ok_or_else(not_found)?;
        let seen = self.see(&caller.user, known);
        let seen = seen.map_err(|error| unreadable(known, &error.to_string()))?;
        Ok((known, seen.ok_or_else(not_found)?))
    }

    fn detach(
        &self,
        caller: &Arc<Caller>,
        function: &str,
        again: bool,
        order: Order,
        arguments: &[&[u8]],
    ) -> Answer {
        let record = record(caller, function, again, order)?;
        match self.add(caller, record, arguments) {
            Ok(id) => Ok(vec![id.to_string().into_bytes()].into()),
            Err(AddError::Denied(denied)) => Err(from_denied(denied)),
            Err(AddError::Store(error)) => Err(not_stored(&error)),
        }
    }

    /// Keeps a call that its client has made already.
    pub(crate) fn store_call(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        call: &DetachRequest<'_>,
    ) -> Result<Box<dyn DetachedEntry>, RequestError> {
        let DetachRequest { function, sections, order, idempotent, has_begun } = call;
        let (module, _) = caller.module_of(function).map_err(from_denied)?;
        let hash = if let Code::Library { hash, .. } = &module.code { hash } else { "" };
        // One that has begun may have changed arguments, unless its function is declared idempotent.
        let again = *idempotent && !has_begun;
        let record = record(caller, &format!("{function}#{hash}"), again, *order)?;
        let most = if record.idempotent || !has_begun { sections.len() } else { 1 };
        let sections: Vec<&[u8]> = sections.iter().take(most).map(Vec::as_slice).collect();
        self.keep(caller, record, &sections, *has_begun).map_err(|error| not_stored(&error))
    }

    fn result(&self, caller: &Caller, id: &str) -> Answer {
        let (id, _) = self.find(caller, id)?;
        let read = self.store.read(id, usize::MAX);
        let Some((record, mut sections)) =
            read.map_err(|error| unreadable(id, &error.to_string()))?
        else {
            return Err(failure("RuntimeError", &format!("the call `{id}` has not ended")));
        };
        if let Some(failure) = record.failure {
            let (error, message, trace) = (failure.error, failure.message, failure.trace);
            return Err(RequestError { error, message, trace, ..RequestError::default() });
        }
        if !sections.is_empty() {
            sections.remove(0);
        }
        // The worker has written it in this machine's order.
        Ok(sections.into())
    }
}

/// A new call of `module/function#hash`. `again`: whether it may run again.
fn record(
    caller: &Caller,
    function: &str,
    again: bool,
    order: Order,
) -> Result<Record, RequestError> {
    let refuse = |why: &str| {
        let message = format!("the call of `{function}` cannot be detached: {why}");
        failure(RemoteError::ArgumentError.name(), &message)
    };
    let (name, hash) = function.split_once('#').unwrap_or((function, ""));
    let (module, member) = caller.module_of(name).map_err(from_denied)?;
    let Code::Library { interface, .. } = &module.code else {
        return Err(refuse(
            "it is in Python, and only functions of compiled modules can be detached",
        ));
    };
    let Some(declared) = interface.function(member) else {
        return Err(refuse("it is a method, and its object ends with its client"));
    };
    let is_callback = |parameter: &gridrpc_idl::Parameter| {
        matches!(parameter.kind, gridrpc_idl::Kind::Callback(_))
    };
    if declared.parameters.iter().any(is_callback) {
        return Err(refuse("it calls back, and its client may be gone"));
    }
    let submitted = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Ok(Record {
        user: caller.user.to_string(),
        groups: caller.role.groups.clone(),
        function: name.to_owned(),
        hash: hash.to_owned(),
        idempotent: again || declared.idempotent,
        submitted: submitted.map_or(0, |since| since.as_secs()),
        failure: None,
        big_endian: order == Order::Big,
        sections: Vec::new(),
    })
}

fn not_stored(error: &StoreError) -> RequestError {
    let name = match error {
        StoreError::Full { .. } => RemoteError::LimitReached.name(),
        StoreError::System { .. } => "OSError",
    };
    failure(name, &error.to_string())
}

fn unreadable(id: DetachedId, why: &str) -> RequestError {
    failure("OSError", &format!("the detached call `{id}` cannot be read: {why}"))
}

fn described(id: DetachedId, seen: &CallView) -> Value {
    let Record { function, hash, idempotent, submitted, .. } = &seen.record;
    json!({
        "id": id.to_string(), "function": function, "hash": hash, "idempotent": idempotent,
        "submitted": submitted, "state": seen.state,
    })
}
