//! What a directory knows of servers and their functions. Pure: time comes with each event, from the directory's own
//! clock, so that the clocks of servers do not matter.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gridrpc_config::ServerAddress;
use gridrpc_idl::{Function, Module};
use gridrpc_server::directory::{AnnouncedModule, Announcement, DirectoryReply};
use gridrpc_typed::{interface_hash, parse_interface};
use serde::Serialize;
use thiserror::Error;

/// A server is silent after so many intervals without an announcement.
const INTERVALS: f64 = 3.0;
/// Least time after which a server is silent.
const LEAST_LIFETIME: Duration = Duration::from_secs(2);
/// Longest time after which a server is silent.
const LONGEST_LIFETIME: Duration = Duration::from_secs(3 * 3600);
/// How long a silent server is listed.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Most servers.
const MOST_SERVERS: usize = 10_000;
/// Most modules of a server.
const MOST_MODULES: usize = 10_000;
/// Most names that a message proposes.
const MOST_SIMILAR: usize = 5;

/// Why an announcement is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnnouncementError {
    /// Clients cannot connect to the address.
    #[error("`address` is {0:?}: write HOST:PORT, where clients reach the server by TLS")]
    Address(String),
    /// Another user announces the address.
    #[error("{address} is announced by user `{owner}`, not by `{user}`")]
    Owner {
        /// The address.
        address: String,
        /// Who announces it.
        owner: String,
        /// Who wants to.
        user: String,
    },
    /// There is no room.
    #[error("the directory has no room for more than {0}")]
    Full(&'static str),
    /// An interface that cannot be used.
    #[error("the interface {hash} cannot be used: {why}")]
    Interface {
        /// Its hash.
        hash: String,
        /// The problem.
        why: String,
    },
}

/// No server offers a function.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no server offers `{function}`{}", proposal(similar))]
pub struct NotOffered {
    /// The function.
    pub function: String,
    /// Functions with similar names.
    pub similar: Vec<String>,
}

fn proposal(similar: &[String]) -> String {
    if similar.is_empty() {
        return "; `gridrpc directory search TEXT` searches names and descriptions".to_owned();
    }
    let quoted: Vec<String> = similar.iter().map(|name| format!("`{name}`")).collect();
    format!("; similar names: {}", quoted.join(", "))
}

/// An interface of a module.
#[derive(Debug)]
pub struct Interface {
    /// Its text, as in the module's file.
    pub text: String,
    /// The module.
    pub module: Module,
}

/// A server.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its last announcement, without interfaces.
    pub announcement: Announcement,
    /// The user who announces it.
    pub owner: String,
    /// Time of the last announcement.
    pub heard: Duration,
    /// Whether the server has announced itself to this directory, not to another one.
    pub is_direct: bool,
}

/// The state of a server, for clients and people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// Where clients connect.
    pub address: String,
    /// Version of gridrpc.
    pub version: String,
    /// Number of cores for calls.
    pub cores: u32,
    /// Calls that run or wait, for each core.
    pub load: f64,
    /// Calls that wait.
    pub queued: u64,
    /// Operations per second of a call that runs alone.
    pub speed: f64,
    /// Whether it takes no calls now.
    pub is_full: bool,
    /// Whether it has not been heard for a while.
    pub is_silent: bool,
    /// Time since its last announcement, s.
    pub age: f64,
    /// Number of its modules.
    pub modules: usize,
}

/// A server that offers a function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionOffer {
    /// The server. It is full if the queue of the module is.
    #[serde(flatten)]
    pub server: ServerState,
    /// Hash of the interface; none: the function is in Python.
    pub hash: Option<String>,
    /// The parameters, for people; of a class, its name.
    pub signature: Option<String>,
}

/// A function, and the servers that offer it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionState {
    /// `module/function`.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Its parameters; several, if servers have different interfaces.
    pub signatures: Vec<String>,
    /// Names of the servers that offer it and are not silent.
    pub servers: Vec<String>,
}

/// All servers and interfaces.
#[derive(Debug, Default)]
pub struct Registry {
    /// By address.
    servers: BTreeMap<String, Entry>,
    interfaces: HashMap<String, Arc<Interface>>,
}

impl Entry {
    fn lifetime(&self) -> Duration {
        let lifetime = Duration::try_from_secs_f64(self.announcement.interval * INTERVALS);
        lifetime.unwrap_or(LONGEST_LIFETIME).clamp(LEAST_LIFETIME, LONGEST_LIFETIME)
    }

    fn is_silent(&self, now: Duration) -> bool {
        now.saturating_sub(self.heard) > self.lifetime()
    }

    fn state(&self, now: Duration) -> ServerState {
        let Announcement {
            name,
            address,
            version,
            cores,
            load,
            queued,
            speed,
            accepts,
            modules,
            ..
        } = &self.announcement;
        let age = now.saturating_sub(self.heard);
        ServerState {
            name: name.clone(),
            address: address.clone(),
            version: version.clone(),
            cores: *cores,
            load: *load,
            queued: *queued,
            speed: *speed,
            is_full: !accepts,
            is_silent: self.is_silent(now),
            age: age.as_secs_f64(),
            modules: modules.len(),
        }
    }
}

impl Registry {
    /// Adds the interface of a module.
    ///
    /// # Errors
    /// When the text does not fit the hash, or is no interface.
    pub fn add_interface(&mut self, hash: &str, text: &str) -> Result<(), AnnouncementError> {
        let wrong = |why: &str| AnnouncementError::Interface {
            hash: hash.chars().take(80).collect(),
            why: why.to_owned(),
        };
        if interface_hash(text) != hash {
            return Err(wrong("it has another hash"));
        }
        let module = parse_interface(text, Path::new("the announcement"))
            .map_err(|error| wrong(&error.to_string()))?;
        let interface = Interface { text: text.to_owned(), module };
        self.interfaces.insert(hash.to_owned(), Arc::new(interface));
        Ok(())
    }

    /// The interface with this hash.
    #[must_use]
    pub fn interface(&self, hash: &str) -> Option<&Arc<Interface>> {
        self.interfaces.get(hash)
    }

    /// A server announces its state. Returns the missing interfaces, and whether its modules or its address have changed.
    ///
    /// # Errors
    /// When the announcement makes no sense, or another user announces the address.
    pub fn announce(
        &mut self,
        announcement: Announcement,
        user: &str,
        now: Duration,
    ) -> Result<(DirectoryReply, bool), AnnouncementError> {
        if let Some(known) = self.servers.get(&announcement.address)
            && known.owner != user
            && !known.is_silent(now)
        {
            let (owner, user) = (known.owner.clone(), user.to_owned());
            return Err(AnnouncementError::Owner { address: announcement.address, owner, user });
        }
        self.accept(announcement, user, now, true)
    }

    /// Another directory has accepted an announcement. Of two that name different users, the later one counts.
    ///
    /// # Errors
    /// When the announcement makes no sense.
    pub fn replicate(
        &mut self,
        announcement: Announcement,
        user: &str,
        now: Duration,
    ) -> Result<(DirectoryReply, bool), AnnouncementError> {
        self.accept(announcement, user, now, false)
    }

    fn accept(
        &mut self,
        mut announcement: Announcement,
        user: &str,
        now: Duration,
        is_direct: bool,
    ) -> Result<(DirectoryReply, bool), AnnouncementError> {
        let address = announcement.address.clone();
        let valid = ServerAddress::parse(&address);
        if !matches!(&valid, Some(valid @ ServerAddress::Tls { .. }) if valid.to_string() == address)
        {
            return Err(AnnouncementError::Address(address.chars().take(80).collect()));
        }
        if announcement.modules.len() > MOST_MODULES {
            return Err(AnnouncementError::Full("10,000 modules of a server"));
        }
        if announcement.is_leaving {
            let has_changed = self.servers.remove(&address).is_some();
            return Ok((DirectoryReply::default(), has_changed));
        }
        if !self.servers.contains_key(&address) && self.servers.len() >= MOST_SERVERS {
            return Err(AnnouncementError::Full("10,000 servers"));
        }
        for (hash, text) in std::mem::take(&mut announcement.interfaces) {
            if announcement.modules.iter().any(|module| module.hash.as_ref() == Some(&hash)) {
                self.add_interface(&hash, &text)?;
            }
        }
        let is_same = self.servers.get(&address).is_some_and(|known| {
            let without_load = |modules: &[AnnouncedModule]| -> Vec<AnnouncedModule> {
                let settled =
                    |module: &AnnouncedModule| AnnouncedModule { is_full: false, ..module.clone() };
                modules.iter().map(settled).collect()
            };
            known.owner == user
                && known.announcement.name == announcement.name
                && without_load(&known.announcement.modules) == without_load(&announcement.modules)
        });
        let hashes = announcement.modules.iter().filter_map(|module| module.hash.clone());
        let missing = hashes.filter(|hash| !self.interfaces.contains_key(hash));
        let announced = DirectoryReply { missing: missing.collect() };
        let entry = Entry { announcement, owner: user.to_owned(), heard: now, is_direct };
        self.servers.insert(address, entry);
        Ok((announced, !is_same))
    }

    /// The entry of a server.
    #[must_use]
    pub fn entry(&self, address: &str) -> Option<&Entry> {
        self.servers.get(address)
    }

    /// Addresses of the servers that have announced themselves to this directory and are not silent.
    #[must_use]
    pub fn announced_here(&self, now: Duration) -> Vec<String> {
        let heard = self.servers.iter().filter(|(_, one)| one.is_direct && !one.is_silent(now));
        heard.map(|(address, _)| address.clone()).collect()
    }

    /// Whether a server is silent, or unknown.
    #[must_use]
    pub fn is_silent(&self, address: &str, now: Duration) -> bool {
        self.servers.get(address).is_none_or(|entry| entry.is_silent(now))
    }

    /// Forgets servers that have been silent for a day, and interfaces that no server has. Returns the addresses of the
    /// servers and the hashes of the interfaces.
    pub fn expire(&mut self, now: Duration) -> (Vec<String>, Vec<String>) {
        let is_old = |entry: &Entry| now.saturating_sub(entry.heard) > KEPT;
        let old: Vec<String> = self
            .servers
            .iter()
            .filter(|(_, entry)| is_old(entry))
            .map(|(address, _)| address.clone())
            .collect();
        old.iter().for_each(|address| drop(self.servers.remove(address)));
        let used: BTreeSet<&String> =
            self.modules().filter_map(|(_, module)| module.hash.as_ref()).collect();
        let unused = self.interfaces.keys().filter(|hash| !used.contains(hash));
        let unused: Vec<String> = unused.cloned().collect();
        unused.iter().for_each(|hash| drop(self.interfaces.remove(hash)));
        (old, unused)
    }

    /// All servers.
    #[must_use]
    pub fn servers(&self, now: Duration) -> Vec<ServerState> {
        self.servers.values().map(|entry| entry.state(now)).collect()
    }

    /// The functions with all words of a text in their names and descriptions; those with all of them in the name come
    /// first. An empty text: all functions.
    #[must_use]
    pub fn search(&self, text: &str, now: Duration) -> Vec<FunctionState> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let has_all = |text: &str| {
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        };
        let mut found: Vec<(bool, FunctionState)> = self
            .functions(now)
            .into_values()
            .filter_map(|function| {
                let description = function.description.as_deref().unwrap_or("");
                let is_found = has_all(&format!("{} {description}", function.name));
                is_found.then(|| (!has_all(&function.name), function))
            })
            .collect();
        found.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
        found.into_iter().map(|(_, function)| function).collect()
    }

    /// The servers that offer `module/function` or `module/Class`, those that are not silent first.
    ///
    /// # Errors
    /// When there is none: names of similar functions.
    pub fn offers(&self, function: &str, now: Duration) -> Result<Vec<FunctionOffer>, NotOffered> {
        let (module_name, member) = function.split_once('/').unwrap_or((function, ""));
        let mut offers: Vec<FunctionOffer> = self
            .modules()
            .filter(|(_, module)| module.name == module_name)
            .filter_map(|(entry, module)| {
                let signature = match self.interface_of(module) {
                    Some(interface) => Some(signature_of(&interface.module, member)?),
                    None if module.functions.iter().any(|name| name == member) => None,
                    None => return None,
                };
                let mut server = entry.state(now);
                server.is_full |= module.is_full;
                Some(FunctionOffer { server, hash: module.hash.clone(), signature })
            })
            .collect();
        offers.sort_by_key(|offer| offer.server.is_silent);
        if offers.is_empty() {
            let similar = self.similar(function, now);
            return Err(NotOffered { function: function.to_owned(), similar });
        }
        Ok(offers)
    }

    /// The description of a function in the interface of one of its servers.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<(Arc<Interface>, Function)> {
        let (module_name, member) = name.split_once('/')?;
        self.modules().filter(|(_, module)| module.name == module_name).find_map(|(_, module)| {
            let interface = self.interface_of(module)?;
            Some((Arc::clone(interface), member_of(&interface.module, member)?.clone()))
        })
    }

    /// Names that a user may have meant.
    fn similar(&self, function: &str, now: Duration) -> Vec<String> {
        let all = self.functions(now);
        let bare = |name: &str| {
            name.rsplit_once('/').map_or_else(|| name.to_owned(), |(_, own)| own.to_owned())
        };
        let wanted = bare(function);
        let own_names: BTreeSet<String> = all.keys().map(|name| bare(name)).collect();
        let near = gridrpc_idl::nearest(&wanted, own_names.iter().map(String::as_str));
        let full = gridrpc_idl::nearest(function, all.keys().map(String::as_str));
        let lower = wanted.to_lowercase();
        let is_similar = |name: &&String| {
            let own = bare(name);
            Some(own.as_str()) == near
                || Some(name.as_str()) == full
                || own.to_lowercase().contains(&lower) && !lower.is_empty()
        };
        all.keys().filter(is_similar).take(MOST_SIMILAR).cloned().collect()
    }

    /// All modules, with the servers that offer them.
    fn modules(&self) -> impl Iterator<Item = (&Entry, &AnnouncedModule)> {
        self.servers
            .values()
            .flat_map(|entry| entry.announcement.modules.iter().map(move |module| (entry, module)))
    }

    fn interface_of(&self, module: &AnnouncedModule) -> Option<&Arc<Interface>> {
        self.interfaces.get(module.hash.as_ref()?)
    }

    /// All functions, by name.
    fn functions(&self, now: Duration) -> BTreeMap<String, FunctionState> {
        let mut all = BTreeMap::<String, FunctionState>::new();
        let mut add = |entry: &Entry, name: String, function: Option<&Function>| {
            let known = all.entry(name.clone()).or_insert_with(|| FunctionState {
                name,
                description: None,
                signatures: Vec::new(),
                servers: Vec::new(),
            });
            if let Some(function) = function {
                let description = || function.description.clone();
                known.description = known.description.take().or_else(description);
                let signature = function.signature();
                if !known.signatures.contains(&signature) {
                    known.signatures.push(signature);
                }
            }
            if !entry.is_silent(now) {
                known.servers.push(entry.announcement.name.clone());
            }
        };
        for (entry, module) in self.modules() {
            match self.interface_of(module) {
                Some(interface) => {
                    for function in &interface.module.functions {
                        add(entry, format!("{}/{}", module.name, function.name), Some(function));
                    }
                }
                None => {
                    for function in &module.functions {
                        add(entry, format!("{}/{function}", module.name), None);
                    }
                }
            }
        }
        all
    }
}

/// The parameters of a function, or the name of a class, for people.
fn signature_of(module: &Module, name: &str) -> Option<String> {
    let class = || module.class(name).map(|class| format!("class {}", class.name));
    member_of(module, name).map(Function::signature).or_else(class)
}

/// A function of a module. Methods of classes need an object, whose server is fixed.
fn member_of<'m>(module: &'m Module, name: &str) -> Option<&'m Function> {
    module.functions.iter().find(|function| function.name == name)
}
