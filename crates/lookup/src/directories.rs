//! The directories of a program: cached answers, and measurements of their servers.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gridrpc_placement::{
    ANSWER_STALE, ANSWER_VALID, AnnouncedLoad, CallTimes, ClientCall, Measured, Measurements,
    Policy, Work, candidates, choose,
};
use gridrpc_sys::{lock, random};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::{DirectoryClient, LookupError, ServerOffer};

/// Time without requests to a directory that did not answer.
const PAUSE: Duration = Duration::from_secs(10);
/// How long a server is left out that refused a call or was lost.
const REFUSED: Duration = Duration::from_secs(3);
/// Time limits of connections: the start of a new one, and the return of one that was lost, s.
const LIMITS: &str = "start_timeout=5&reconnect_timeout=2";

/// The servers that offer a function.
#[derive(Debug)]
pub struct LookupAnswer {
    /// When it was fetched, s.
    at: f64,
    /// The servers.
    pub offers: Vec<ServerOffer>,
}

/// The server of a call.
#[derive(Clone, Debug)]
pub struct ChosenServer {
    /// Its address.
    pub address: String,
    /// Number of its cores.
    cores: u32,
    /// How long the call is expected to keep one of them, s.
    core_time: f64,
}

/// A server, and what this program knows of it.
#[derive(Debug, Default)]
struct KnownServer {
    measured: Measurements<String>,
    refused_until: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    answers: HashMap<String, Arc<LookupAnswer>>,
    fetching: HashSet<String>,
    servers: HashMap<String, KnownServer>,
    /// Until when a directory is not asked, by index.
    pauses: HashMap<usize, Instant>,
}

/// Directories that help a program to choose the server of each call.
#[derive(Debug)]
pub struct Directories {
    clients: Vec<DirectoryClient>,
    credentials: Option<PathBuf>,
    policy: Policy,
    state: Mutex<State>,
    turn: AtomicU64,
    opened: Instant,
}

impl Directories {
    /// Whether a server's name is the URL of a directory: `directory://HOST:PORT`, or that of its page.
    #[must_use]
    pub fn is_url(name: &str) -> bool {
        ["directory://", "https://", "http://"].iter().any(|scheme| name.starts_with(scheme))
    }

    /// The directories at these URLs, with commas between them. `directory://HOST:PORT` is `https://HOST:PORT`; options are
    /// `?credentials=DIR` and `?policy=NAME`.
    ///
    /// # Errors
    /// When a URL is malformed, or the credentials cannot be used.
    pub fn open(urls: &str) -> Result<Arc<Directories>, LookupError> {
        let (mut credentials, mut policy) = (None, Policy::default());
        let mut places = Vec::new();
        for text in urls.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let malformed = || LookupError::Url(text.to_owned());
            let (url, query) = text.split_once('?').unwrap_or((text, ""));
            for option in query.split('&').filter(|option| !option.is_empty()) {
                match option.split_once('=') {
                    Some(("credentials", folder)) => credentials = Some(PathBuf::from(folder)),
                    Some(("policy", name)) => policy = name.parse().map_err(LookupError::Policy)?,
                    _ => return Err(malformed()),
                }
            }
            let rest = url.strip_prefix("directory://");
            let url = rest.map_or_else(|| url.to_owned(), |rest| format!("https://{rest}"));
            places.push(url.trim_end_matches('/').to_owned());
        }
        if places.is_empty() {
            return Err(LookupError::Url(urls.to_owned()));
        }
        let open = |url: &String| DirectoryClient::new(url, credentials.clone());
        let clients = places.iter().map(open).collect::<Result<_, _>>()?;
        let (state, turn) = (Mutex::default(), AtomicU64::new(0));
        let opened = Instant::now();
        Ok(Arc::new(Directories { clients, credentials, policy, state, turn, opened }))
    }

    fn now(&self) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }

    /// The servers that offer a function. A recent answer is used again.
    ///
    /// # Errors
    /// When no server offers it, or no directory has ever answered.
    pub fn answer(self: &Arc<Self>, function: &str) -> Result<Arc<LookupAnswer>, LookupError> {
        let known = lock(&self.state).answers.get(function).cloned();
        let Some(known) = known.filter(|known| self.now() - known.at < ANSWER_STALE) else {
            return self.fetch(function);
        };
        if self.now() - known.at > ANSWER_VALID
            && lock(&self.state).fetching.insert(function.to_owned())
        {
            let (this, name) = (Arc::clone(self), function.to_owned());
            let fetched = thread::Builder::new().name("gridrpc-lookup".into()).spawn(move || {
                // Without a new answer, the old one is used.
                let _ = this.fetch(&name);
                lock(&this.state).fetching.remove(&name);
            });
            if fetched.is_err() {
                lock(&self.state).fetching.remove(function);
            }
        }
        Ok(known)
    }

    fn fetch(&self, function: &str) -> Result<Arc<LookupAnswer>, LookupError> {
        let mut found = HashMap::<String, ServerOffer>::new();
        let (mut missing, mut failure) = (None, None);
        for (index, client) in self.clients.iter().enumerate() {
            if lock(&self.state).pauses.get(&index).is_some_and(|until| Instant::now() < *until) {
                continue;
            }
            match client.offers(function) {
                Ok(offers) => {
                    for offer in offers {
                        // Of different answers, that of the directory which has heard the server last.
                        let other = found.get(&offer.address);
                        if other.is_none_or(|other| offer.age < other.age) {
                            found.insert(offer.address.clone(), offer);
                        }
                    }
                }
                Err(error @ LookupError::NotOffered(_)) => missing = Some(error),
                Err(error) => {
                    lock(&self.state).pauses.insert(index, Instant::now() + PAUSE);
                    failure = Some(error);
                }
            }
        }
        let mut state = lock(&self.state);
        let known = state.answers.get(function);
        let offers = if found.is_empty() {
            match known {
                // The directories are gone, or have forgotten the servers: those that are known stay.
                Some(known) => known.offers.clone(),
                None => {
                    let silent = || LookupError::Unreachable {
                        url: self
                            .clients
                            .iter()
                            .map(DirectoryClient::url)
                            .collect::<Vec<_>>()
                            .join(", "),
                        reason: "it did not answer a moment ago".into(),
                    };
                    return Err(missing.or(failure).unwrap_or_else(silent));
                }
            }
        } else {
            let mut offers: Vec<ServerOffer> = found.into_values().collect();
            offers.sort_by(|one, other| one.address.cmp(&other.address));
            offers
        };
        let answer = Arc::new(LookupAnswer { at: self.now(), offers });
        state.answers.insert(function.to_owned(), Arc::clone(&answer));
        Ok(answer)
    }

    /// URL of a server for clients.
    #[must_use]
    pub fn server_url(&self, address: &str) -> String {
        let credentials = self.credentials.as_ref().map(|folder| {
            let folder = folder.to_string_lossy();
            format!("&credentials={}", utf8_percent_encode(&folder, NON_ALPHANUMERIC))
        });
        format!("gridrpc://{address}?{LIMITS}{}", credentials.unwrap_or_default())
    }

    /// The server for a call, none of those that have been tried; none: no server is left. `signature`: the interface that
    /// the caller uses.
    ///
    /// # Errors
    /// As for `answer`.
    pub fn choose(
        self: &Arc<Self>,
        function: &str,
        signature: &str,
        work: &Work,
        has_cost: bool,
        tried: &[String],
    ) -> Result<Option<ChosenServer>, LookupError> {
        let answer = self.answer(function)?;
        let offers: Vec<&ServerOffer> = answer
            .offers
            .iter()
            .filter(|offer| offer.signature.as_deref() == Some(signature) && !offer.is_silent)
            .collect();
        let now = Instant::now();
        let mut state = lock(&self.state);
        for offer in &offers {
            state.servers.entry(offer.address.clone()).or_default();
        }
        let known = offers.iter().map(|offer| {
            let server = &state.servers[&offer.address];
            let is_refused = server.refused_until.is_some_and(|until| now < until);
            let announced = AnnouncedLoad {
                speed: offer.speed,
                load: offer.load,
                age: self.now() - answer.at + offer.age,
                cores: offer.cores,
                is_full: offer.is_full || is_refused || tried.contains(&offer.address),
            };
            let announced_at = answer.at - offer.age;
            let measured = server.measured.measured(function, announced_at, self.now());
            (announced, measured)
        });
        let known: Vec<(AnnouncedLoad, Measured)> = known.collect();
        let mut servers = Vec::new();
        candidates(&known, has_cost, &mut servers);
        let draw = match self.policy {
            Policy::LeastTime | Policy::Random | Policy::TwoChoices => {
                random().map_or(0, u64::from_ne_bytes)
            }
            _ => self.turn.fetch_add(1, Ordering::Relaxed),
        };
        let chosen = choose(self.policy, work, &servers, draw);
        Ok(chosen.map(|index| ChosenServer {
            address: offers[index].address.clone(),
            cores: offers[index].cores,
            core_time: servers[index].core_time(work),
        }))
    }

    /// Leaves a server out for a while.
    pub fn refuse(&self, address: &str) {
        let mut state = lock(&self.state);
        let server = state.servers.entry(address.to_owned()).or_default();
        server.refused_until = Some(Instant::now() + REFUSED);
    }

    /// Counts a call that begins. Returns what `end` needs.
    #[must_use]
    pub fn begin(&self, chosen: &ChosenServer) -> ClientCall {
        let mut state = lock(&self.state);
        let now = self.now();
        let server = state.servers.entry(chosen.address.clone()).or_default();
        server.measured.begin(now, chosen.core_time, chosen.cores)
    }

    /// A call has ended. `times`: of one that has returned.
    pub fn end(
        &self,
        chosen: &ChosenServer,
        begun: ClientCall,
        function: &str,
        times: Option<&CallTimes>,
    ) {
        let mut state = lock(&self.state);
        let now = self.now();
        let Some(server) = state.servers.get_mut(&chosen.address) else { return };
        server.measured.end(now, begun);
        if let Some(times) = times {
            server.measured.learn(function, times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_directories_have_two_options() {
        let urls = "http://localhost:1?policy=round-robin, http://localhost:2?credentials=/c d";
        let opened = Directories::open(urls).unwrap();
        assert_eq!((opened.clients.len(), opened.policy), (2, Policy::RoundRobin));
        assert!(opened.server_url("lab:1").ends_with("&credentials=%2Fc%20d"));
        for bad in ["", ",", "ftp://a", "http://a?x=1", "http://a?policy=best"] {
            assert!(Directories::open(bad).is_err(), "{bad}");
        }
    }
}
