//! Number of common workers of this machine, which may change at any time.

use std::cmp::Reverse;

use crate::core::Core;
use crate::ids::{Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::workers::{Phase, Worker};

impl<T: Clone, P: Policy> Core<T, P> {
    /// Sets the number of common workers of this machine. Surplus workers get no more calls: idle ones are dismissed at
    /// once, busy ones when they have run the calls that they have begun. Without any worker, calls wait, as does a
    /// call that needs more cores than are left. A grid whose workers cannot be started stays as it is.
    pub fn set_workers(&mut self, now: Time, count: u32, out: &mut Vec<Action<T>>) {
        if self.closed || self.broken.is_some() {
            return;
        }
        let wanted = self.workers_here();
        match (count as usize).checked_sub(wanted) {
            Some(0) => return,
            Some(more) => self.add_workers(more, out),
            None => self.remove_workers(now, wanted - count as usize, out),
        }
        let given_up = self.is_given_up_here();
        for group in self.here.iter().filter(|_| !given_up) {
            self.groups[group.index()].lost = None;
        }
        // Calls may wait for a worker that is leaving.
        self.pump(now, out);
    }

    /// Number of common workers of this machine that are wanted.
    #[must_use]
    pub fn workers_here(&self) -> usize {
        self.workers.iter().filter(|worker| worker.is_common() && !worker.unwanted).count()
    }

    /// Whether the place of a worker is wanted. Otherwise its process ends after the calls that it has begun.
    #[must_use]
    pub fn is_wanted(&self, id: WorkerId) -> bool {
        !self.workers[id.index()].is_asleep()
    }

    fn add_workers(&mut self, more: usize, out: &mut Vec<Action<T>>) {
        self.places += more;
        let mut unwanted = self.common_places(|worker| worker.unwanted);
        // Processes that are still there come first.
        unwanted.sort_by_key(|id| match self.workers[id.index()].phase {
            Phase::Ready => 0,
            Phase::Starting | Phase::Ending => 1,
            Phase::Absent => 2,
        });
        unwanted.truncate(more);
        for id in &unwanted {
            let worker = &mut self.workers[id.index()];
            worker.unwanted = false;
            worker.useless = 0;
            self.ready += usize::from(worker.is_ready_here());
            if worker.phase == Phase::Absent {
                self.start(*id, out);
            }
        }
        for _ in unwanted.len()..more {
            let id = WorkerId(self.workers.len() as u32);
            self.workers.push(Worker::new(self.settings.calls_per_process));
            self.start(id, out);
        }
    }

    fn remove_workers(&mut self, now: Time, surplus: usize, out: &mut Vec<Action<T>>) {
        self.places -= surplus;
        let mut wanted = self.common_places(|worker| !worker.unwanted);
        wanted.sort_by_key(|id| {
            let worker = &self.workers[id.index()];
            let use_of = match worker.phase {
                _ if worker.given_up => 0,
                Phase::Absent => 1,
                Phase::Ending => 2,
                Phase::Starting => 3,
                Phase::Ready => 4,
            };
            (use_of, worker.sent.len(), Reverse(*id))
        });
        wanted.truncate(surplus);
        for id in wanted {
            self.remove_worker(now, id, out);
        }
    }

    fn remove_worker(&mut self, now: Time, id: WorkerId, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        self.ready -= usize::from(worker.is_ready_here());
        worker.unwanted = true;
        worker.failed_starts = 0;
        if std::mem::take(&mut worker.given_up) {
            let left = self.given_up.take().map(|(places, loss)| (places - 1, loss));
            self.given_up = left.filter(|(places, _)| *places > 0);
        }
        let worker = &self.workers[id.index()];
        match worker.phase {
            Phase::Absent | Phase::Ending => {}
            Phase::Starting => {
                // It may take long to start, and is then to end, not to be killed.
                self.workers[id.index()].phase = Phase::Ending;
                out.push(Action::Dismiss(id));
            }
            Phase::Ready if worker.sent.is_empty() => {
                self.idle.remove(id, &mut self.workers);
                self.dismiss(now, id, out);
            }
            Phase::Ready if worker.sent.len() > worker.finished + 1 => {
                out.push(Action::TakeBack { worker: id, head: None, below: worker.sent_ever });
            }
            // It is dismissed when it has answered.
            Phase::Ready => {}
        }
    }

    /// Common places of this machine that satisfy a condition.
    fn common_places(&self, is_one: impl Fn(&Worker<T>) -> bool) -> Vec<WorkerId> {
        let all = self.workers.iter().enumerate();
        let fitting = all.filter(|(_, worker)| worker.is_common() && is_one(worker));
        fitting.map(|(index, _)| WorkerId(index as u32)).collect()
    }
}
