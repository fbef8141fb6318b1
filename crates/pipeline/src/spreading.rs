//! Where shared data is, while it spreads over hosts.
//!
//! A host needs it once, however many workers it has. Either the client sends it to each host that
//! comes to need it, or there is a chain: the client sends it to the first, and each host hands it
//! on to the next, piece by piece, so that one which joins at once has it when the first has. A host
//! that joins later is sent all of it by its neighbour, over a link that the client has no part in.

/// How a task's host gets the shared data.
#[derive(Debug, PartialEq, Eq)]
pub enum DataRoute {
    /// Along with this task, over the client's link.
    Along,
    /// It is there, or on its way.
    Otherwise,
    /// The host's neighbour sends it, from now on.
    HandedOn,
}

/// Which hosts have the data, and which tasks wait for it there.
pub struct Spreading {
    chained: bool,
    any_asked: bool,
    any_there: bool,
    /// By host.
    requested: Vec<bool>,
    there: Vec<bool>,
    waiting: Vec<Vec<u32>>,
    /// Hosts whose neighbours have handed on all that they have, and have not all yet.
    following: Vec<u32>,
    /// By worker: it has taken the data.
    taken: Vec<bool>,
}

impl Spreading {
    /// For so many workers and hosts.
    pub fn new(workers: usize, hosts: usize, chained: bool) -> Spreading {
        Spreading {
            chained,
            any_asked: false,
            any_there: false,
            requested: vec![false; hosts],
            there: vec![false; hosts],
            waiting: vec![Vec::new(); hosts],
            following: Vec::new(),
            taken: vec![false; workers],
        }
    }

    /// A task sets out for a host.
    pub fn comes(&mut self, host: u32) -> DataRoute {
        let requested = &mut self.requested[host as usize];
        if *requested {
            return DataRoute::Otherwise;
        }
        *requested = true;
        let first = !self.any_asked;
        self.any_asked = true;
        if self.chained && !first { DataRoute::HandedOn } else { DataRoute::Along }
    }

    /// It has come to a host over the client's link. The hosts that have it from now on.
    pub fn came(&mut self, host: u32) -> Vec<u32> {
        let mut hosts = vec![host];
        hosts.append(&mut self.following);
        hosts
    }

    /// A neighbour has sent all that it has. Whether the host has it from now on: no sooner than
    /// the first host has.
    pub fn handed_on(&mut self, host: u32) -> bool {
        if !self.any_there {
            self.following.push(host);
        }
        self.any_there
    }

    /// A host has it. The tasks that wait for it there.
    pub fn arrive(&mut self, host: u32) -> Vec<u32> {
        self.any_there = true;
        self.there[host as usize] = true;
        std::mem::take(&mut self.waiting[host as usize])
    }

    /// Whether a host has the data; if not, the task waits for it.
    pub fn is_there_for(&mut self, host: u32, task: u32) -> bool {
        let there = self.there[host as usize];
        if !there {
            self.waiting[host as usize].push(task);
        }
        there
    }

    /// Whether a worker has yet to take the data, which it is about to do.
    pub fn takes(&mut self, worker: u32) -> bool {
        !std::mem::replace(&mut self.taken[worker as usize], true)
    }
}
