//! Calls made by running functions. They run on the grid that runs the function.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{CallId, CallOptions, Cause, Claim, End, GroupId, Loss, Time, WorkerId};
use gridrpc_link::payload::{Incoming, Outgoing, Payload};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::FunctionForm;
use gridrpc_wire::nested_call::{CANCEL, DONE, NO_SERVER, SUBMIT, WAIT, decode, encode};

use crate::call::{Call, Outcome, Watcher};
use crate::common::Common;
use crate::common::callbacks::PendingCallback;
use crate::common::request::{Request, SubmitError};
use crate::function::FunctionRef;
use crate::state::Waiting;

/// Watcher of a call that a worker waits for.
#[derive(Debug)]
pub(crate) struct NestedWatcher {
    common: Arc<Common>,
    child: CallId,
}

impl Watcher for NestedWatcher {
    fn ended(&self, _token: u64) {
        let waiting = self.common.lock().nested.remove(&self.child);
        if let Some(waiting) = waiting {
            self.common.send_outcome(&waiting);
        }
    }
}

/// Maximum number of pickled functions of such calls that stay registered.
const MOST_FUNCTIONS: usize = 256;

type Answer = Result<Payload, String>;

impl Common {
    /// Serves a request of a running function.
    pub(crate) fn serve_nested(self: &Arc<Common>, wanted: &PendingCallback) {
        let PendingCallback { worker, call: root, index, arguments, .. } = wanted;
        let texts = arguments.first().and_then(|section| decode(section.bytes()));
        let broken = || Err("a request that makes no sense".to_owned());
        let answer = match (*index, texts.as_deref()) {
            (SUBMIT, Some([form, name, deadline, idempotent, priority, server])) => {
                let function = (*form == "pickled", *name);
                let options = (*deadline, *idempotent == "1", *priority);
                match self.group_of_nested(*worker, server) {
                    Ok(group) => {
                        self.submit_nested(*worker, root, function, options, group, &arguments[1..])
                    }
                    Err(message) => Ok(self.said(&[NO_SERVER, &message])),
                }
            }
            (_, Some([number, _])) => {
                match number.parse().ok().and_then(|id| root.child(CallId(id))) {
                    None => broken(),
                    Some(child) => match *index {
                        WAIT => match self.wait_nested(*worker, root, &child) {
                            Some(answer) => {
                                root.leave_child(&child);
                                answer
                            }
                            // The answer is sent later.
                            None => return,
                        },
                        DONE => Ok(self.said(&[flag(child.done())])),
                        CANCEL => Ok(self.said(&[flag(self.cancel(&child))])),
                        _ => broken(),
                    },
                }
            }
            _ => broken(),
        };
        self.answer_nested(*worker, root, answer);
    }

    fn submit_nested(
        &self,
        worker: WorkerId,
        root: &Call,
        (pickled, name): (bool, &str),
        (deadline, idempotent, priority): (&str, bool, &str),
        group: Option<GroupId>,
        sections: &[Incoming],
    ) -> Answer {
        let Some((body, arguments)) = sections.split_first() else {
            return Err("a call without arguments".to_owned());
        };
        let no_room = || Ok(self.said::<&str>(&[]));
        if !root.has_room_for_child() {
            return no_room();
        }
        let form = if pickled { FunctionForm::Pickled } else { FunctionForm::Named };
        let mut payload = self.payload();
        for section in arguments {
            payload.pass_on(section).map_err(error_text)?;
        }
        let options = CallOptions {
            deadline: deadline.parse().ok().map(Duration::from_nanos),
            idempotent,
            priority: priority.parse().map_err(error_text)?,
            group,
            ..CallOptions::DEFAULT
        };
        let function = self.nested_function(name, form, body.bytes());
        let mut request = Request::new(function, payload.finish(), options);
        let mut state = self.lock();
        if let Some(task) = root.id().and_then(|id| state.core.task(id)) {
            request.owner = task.owner;
        }
        state.drive(|core, out| core.nests(worker, out));
        let has_room = state.core.has_room_nested(request.payload.bytes);
        self.finish(state);
        if !has_room {
            return no_room();
        }
        let child = match self.submit(request, false) {
            Ok(child) => child,
            Err(SubmitError::Full(_)) => return no_room(),
            Err(SubmitError::Failed(error)) => return Err(error.to_string()),
        };
        match root.add_child(&child) {
            Some(number) => Ok(self.said(&[number.0.to_string()])),
            None => {
                // The caller has ended, so the result is not needed.
                self.cancel(&child);
                Err("the call has ended".to_owned())
            }
        }
    }

    /// The group that a call of a function on this executor is bound to.
    fn group_of_nested(&self, worker: WorkerId, server: &str) -> Result<Option<GroupId>, String> {
        if server.is_empty() {
            return Ok(None);
        }
        let group = self.group(server).map_err(error_text)?;
        if self.names.is_shared(server) && !self.lock().core.is_member(worker, group) {
            // All its workers may wait, for calls of other clients.
            return Err(format!(
                "server \"{server}\" is shared with other programs: calls that functions make cannot \
                 be bound to it, except by functions that run there. Have the client make the call"
            ));
        }
        Ok(Some(group))
    }

    fn nested_function(&self, name: &str, form: FunctionForm, body: &[u8]) -> Arc<FunctionRef> {
        let key = (name.to_owned(), body.to_vec());
        let mut state = self.lock();
        if let Some(known) = state.nested_functions.get(&key) {
            return Arc::clone(known);
        }
        let gone = (state.nested_functions.len() >= MOST_FUNCTIONS)
            .then(|| std::mem::take(&mut state.nested_functions));
        drop(state);
        drop(gone);
        let function = self.register(name, form, body.to_vec());
        self.lock().nested_functions.insert(key, Arc::clone(&function));
        function
    }

    /// Returns `None` if the worker is answered later.
    fn wait_nested(
        self: &Arc<Common>,
        worker: WorkerId,
        root: &Arc<Call>,
        child: &Arc<Call>,
    ) -> Option<Answer> {
        if child.done() {
            return Some(self.outcome_of(child));
        }
        let id = child.id()?;
        let mut state = self.lock();
        let now = Time(monotonic_ns());
        // A reserved worker on a host speaks through that.
        let by = root.id().and_then(|id| state.core.executor(id)).unwrap_or(worker);
        let claim = state.drive(|core, out| core.claim(now, id, by, out));
        if let Claim::Run(call) = claim {
            self.finish(state);
            return Some(self.to_be_run(&call));
        }
        let error_text = Arc::new(NestedWatcher { common: Arc::clone(self), child: id });
        let watcher = Arc::<NestedWatcher>::clone(&error_text);
        let waiting = Waiting::new(worker, Arc::clone(root), Arc::clone(child), watcher);
        state.nested.insert(id, waiting);
        let ready = std::mem::take(&mut state.to_gather);
        self.finish(state);
        self.gather(ready);
        child.watch(&error_text, 0);
        None
    }

    /// Tells workers to run the calls that they wait for themselves.
    pub(crate) fn send_to_run(&self, calls: Vec<(CallId, Arc<Call>)>) {
        for (id, call) in calls {
            let waiting = self.lock().nested.remove(&id);
            if let Some(Waiting { worker, root, .. }) = waiting {
                root.leave_child(&call);
                self.answer_nested(worker, &root, self.to_be_run(&call));
            }
        }
    }

    fn send_outcome(&self, waiting: &Waiting) {
        waiting.root.leave_child(&waiting.child);
        let answer = self.outcome_of(&waiting.child);
        self.answer_nested(waiting.worker, &waiting.root, answer);
    }

    fn answer_nested(&self, worker: WorkerId, root: &Call, answer: Answer) {
        let Some(id) = root.id() else { return };
        let mut state = self.lock();
        match answer {
            Ok(payload) => {
                let payload = Arc::new(payload);
                state.answer_callback(worker, id.0, &payload);
                // Over a connection, the payload is read before it can be dropped.
                if payload.is_lent() && !state.hosts.is_host(worker) {
                    root.keep(payload);
                }
            }
            Err(message) => state.fail_callback(worker, id.0, &message),
        }
        self.finish(state);
    }

    fn said<T: AsRef<str>>(&self, texts: &[T]) -> Payload {
        let mut payload = self.payload();
        // It is small and so part of the frame: no data can be missing.
        let added = payload.add_owned(encode(texts));
        debug_assert!(added.is_ok(), "{added:?}");
        payload.finish()
    }

    /// Its arguments, which go back to the worker.
    fn to_be_run(&self, call: &Call) -> Answer {
        let mut answer = self.payload().go_on_with(self.said(&["run"]));
        let payload = call.take_payload().ok_or("the call has ended")?;
        for part in &payload.parts {
            match part {
                Outgoing::Inline(bytes) => answer.add(bytes).map_err(error_text)?,
                Outgoing::Passed(stretch) => {
                    answer.pass_on(&Incoming::Shared(stretch.clone())).map_err(error_text)?;
                }
                Outgoing::Shared { lent, offset, len } => {
                    answer.add_shared(Arc::clone(lent), *offset, *len, 0);
                }
                _ => return Err("arguments that cannot be given back".to_owned()),
            }
        }
        Ok(answer.finish())
    }

    fn outcome_of(&self, child: &Call) -> Answer {
        let ended = |texts: Vec<String>| Ok(self.said(&texts));
        let (texts, sections) = match child.take_outcome() {
            None => return Err("its result has been taken".to_owned()),
            Some(Outcome::Returned(sections, _)) => (vec!["returned".to_owned()], sections),
            Some(Outcome::Raised { error, message, trace, sections, .. }) => {
                (vec!["raised".to_owned(), error, message, trace], sections)
            }
            Some(Outcome::Ended(end)) => {
                return ended(match end {
                    End::Cancelled => vec!["cancelled".into()],
                    End::DeadlineExceeded(_) | End::RunLimit(_) => vec!["deadline".into()],
                    End::WorkerLost(loss) | End::NoWorkers(loss) | End::NoServer(_, loss) => {
                        lost(&loss)
                    }
                    End::NestedCallLimit(limit) => vec!["limit".into(), limit.to_string()],
                    other => vec!["failed".into(), format!("{other:?}")],
                });
            }
        };
        let mut answer = self.payload().go_on_with(self.said(&texts));
        for section in &sections {
            answer.pass_on(section).map_err(error_text)?;
        }
        Ok(answer.finish())
    }
}

fn flag(set: bool) -> &'static str {
    if set { "1" } else { "0" }
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn lost(loss: &Loss) -> Vec<String> {
    let (status, signal, out_of_memory) = match loss.cause {
        Cause::Exit(status) => (status.to_string(), String::new(), false),
        Cause::Signal { signal, out_of_memory } => {
            (String::new(), signal.to_string(), out_of_memory)
        }
        Cause::MemoryLimit(_) => (String::new(), String::new(), true),
        _ => (String::new(), String::new(), false),
    };
    let Loss { worker, pid, host, stderr, .. } = loss;
    let (text, worker, pid) = (loss.to_string(), worker.to_string(), pid.to_string());
    let kind = "lost".to_owned();
    let out_of_memory = flag(out_of_memory).to_owned();
    vec![kind, text, worker, pid, host.clone(), status, signal, out_of_memory, stderr.clone()]
}
