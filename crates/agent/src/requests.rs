//! Requests to the daemon itself, which a program makes instead of being served. A request is a call of a function of
//! the daemon: it needs no worker, and its answer is a `Reply` or a `Failure`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gridrpc_client::{RequestError, RequestSections};
use gridrpc_link::payload::{Incoming, divide, section_bytes};
use gridrpc_link::{LinkError, Received};
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{FunctionForm, HostCall, Message, Order};

use crate::answers::{Answers, now};
use crate::handshake::BeforeServing;
use crate::service::Service;
use crate::user::User;

/// Requests of one connection that have threads of their own at a time.
const MOST: usize = 16;
/// Names of requests that a connection may use.
const MOST_NAMES: usize = 1024;

/// The requests of one connection.
pub(super) struct ClientRequests {
    service: Arc<dyn Service>,
    user: Arc<User>,
    names: HashMap<u32, String>,
    /// Number of requests that are being answered.
    running: Arc<AtomicUsize>,
}

impl ClientRequests {
    pub(super) fn new(service: Arc<dyn Service>, user: Arc<User>) -> ClientRequests {
        ClientRequests { service, user, names: HashMap::new(), running: Arc::default() }
    }

    /// Answers a request in a thread of its own, or in this one if there are many, or no other can be started.
    fn begin(&self, call: u64, name: &str, sections: RequestSections, answers: &Arc<Answers>) {
        let one = Arc::new(Request {
            service: Arc::clone(&self.service),
            user: Arc::clone(&self.user),
            running: Arc::clone(&self.running),
            answers: Arc::clone(answers),
            call,
            name: name.to_owned(),
            sections: Mutex::new(Some(sections)),
        });
        if self.running.fetch_add(1, Ordering::AcqRel) >= MOST {
            return one.answer();
        }
        let there = Arc::clone(&one);
        let thread = thread::Builder::new().name("gridrpc-request".to_owned());
        if thread.spawn(move || there.answer()).is_err() {
            one.answer();
        }
    }
}

/// A request that has arrived.
struct Request {
    service: Arc<dyn Service>,
    user: Arc<User>,
    running: Arc<AtomicUsize>,
    answers: Arc<Answers>,
    call: u64,
    name: String,
    sections: Mutex<Option<RequestSections>>,
}

impl Request {
    /// Answers it. It is answered once.
    fn answer(&self) {
        let mut sections = self.sections.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sections) = sections.take() else { return };
        match self.service.answer(&self.user, &self.name, sections) {
            Ok(parts) => reply(&self.answers, self.call, parts),
            Err(error) => fail(&self.answers, self.call, &error),
        }
        self.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl BeforeServing for ClientRequests {
    fn take(&mut self, received: Received<'_>, answers: &Arc<Answers>) -> Result<(), LinkError> {
        match received.message {
            Message::Function { function, form: FunctionForm::Named, name, .. } => {
                if self.names.len() >= MOST_NAMES && !self.names.contains_key(&function) {
                    let what = format!("more than {MOST_NAMES} names of requests");
                    return Err(LinkError::Unexpected(what));
                }
                self.names.insert(function, name.to_owned());
            }
            Message::HostCall(HostCall { call, function, ref sections, .. }) => {
                let sections = section_bytes(sections, received.streams);
                let sections = RequestSections { sections, order: received.order };
                match self.names.get(&function) {
                    Some(name) => self.begin(call, name, sections, answers),
                    None => fail(answers, call, &refusal("the request has no name")),
                }
            }
            Message::Ping { number } => {
                answers.tell(&Message::Pong { number, clock: monotonic_ns() });
                answers.send();
            }
            other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
        }
        Ok(())
    }

    fn takes_modules(&self) -> bool {
        self.service.may_send_code(&self.user)
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }
}

fn refusal(why: &str) -> RequestError {
    RequestError {
        error: "RuntimeError".to_owned(),
        message: why.to_owned(),
        ..RequestError::default()
    }
}

fn reply(answers: &Arc<Answers>, call: u64, answer: RequestSections) {
    let RequestSections { sections, order } = answer;
    let parts: Vec<Incoming> = sections.into_iter().map(Incoming::Bytes).collect();
    let (sections, streams) = divide(&parts);
    let reply = Message::Reply { call, stamps: now(), retained: Vec::new(), sections };
    match answers.push(order, reply, streams) {
        Ok(()) => answers.send(),
        Err(error) => fail(answers, call, &refusal(&format!("the answer cannot be sent: {error}"))),
    }
}

fn fail(answers: &Arc<Answers>, call: u64, error: &RequestError) {
    let parts: Vec<Incoming> = error.sections.iter().cloned().map(Incoming::Bytes).collect();
    let (sections, streams) = divide(&parts);
    let failure = Message::Failure {
        call,
        stamps: now(),
        retained: Vec::new(),
        error: &error.error,
        message: &error.message,
        trace: &error.trace,
        sections,
    };
    // Only sections could be too many, and an exception has few.
    let pushed = answers.push(Order::NATIVE, failure, streams);
    debug_assert!(pushed.is_ok(), "{pushed:?}");
    answers.send();
}
