//! Workers whose processes are lost or cannot start: the fate of their calls, and the time of the next start.

use std::sync::Arc;

use crate::core::Core;
use crate::end::{Cause, End, Loss};
use crate::host_summary::summarise_hosts;
use crate::ids::{Time, WorkerId};
use crate::interface::Action;
use crate::policy::Policy;
use crate::timers::Timer;
use crate::workers::{Phase, Worker, has_begun};

/// Pause before a failed worker starts again, ns. Doubles with each failure, up to the maximum.
const PAUSE: u64 = 100_000_000;
const LONGEST_PAUSE: u64 = 30_000_000_000;
/// Hosts that fail within this time of each other are requested together, ns, so that a batch system gets one job and
/// not one for each.
const TOGETHER: u64 = 500_000_000;
/// Consecutive failed starts after which a worker that worked once is given up, unless the system is short of a
/// resource. Including the pauses, they take 13 s.
const LATER_STARTS: u32 = 8;

impl<T: Clone, P: Policy> Core<T, P> {
    /// A worker's process is gone. `begun`: the number of calls that it had begun (the low bits of the count), if
    /// known; the others are sent elsewhere.
    pub fn worker_lost(
        &mut self,
        now: Time,
        id: WorkerId,
        begun: Option<u32>,
        loss: Loss,
        out: &mut Vec<Action<T>>,
    ) {
        let was = self.workers[id.index()].phase;
        if was == Phase::Absent {
            return;
        }
        self.idle.remove(id, &mut self.workers);
        let worker = &mut self.workers[id.index()];
        // A worker that its owner released, or that is replaced in time, ends as planned.
        let released = worker.reserved.as_ref().is_some_and(|reserved| reserved.released);
        worker.losses += u64::from(was == Phase::Ready && !released && !self.closed);
        let was_of_use = begun.map_or(worker.sent_ever > 0, |begun| begun != 0);
        let common = worker.is_common();
        self.ready -= usize::from(worker.is_ready_here());
        let sent = worker.reset();
        sent.iter().for_each(|sent| self.gives_back(id, sent));
        let worker = &self.workers[id.index()];
        let is_host = worker.host.is_some();
        let has_served = worker.host.as_ref().is_none_or(|host| host.serves);
        self.lost_slots(id);
        self.blobs.forget_worker(id, out);
        self.wanted.retain(|_, worker| *worker != id);
        let loss = Arc::new(loss);
        if is_host {
            self.note_loss_of_host(now, id, &loss);
            self.lose_guests(now, id, &loss, out);
            self.lose_nearby(id, out);
        } else if !common {
            self.reserved_lost(now, id, sent, &loss, out);
            return self.relieve(now, out);
        }
        let began = |serial| begun.is_none_or(|begun| has_begun(begun, serial));
        // An idle worker may have died of the first call that it was sent, while it received the arguments. Then so
        // would the next worker, and this must not repeat forever.
        let was_at_none = !sent.iter().any(|sent| began(sent.serial));
        let suspect = sent.front().filter(|_| was_at_none).map(|sent| sent.serial);
        for sent in sent {
            if sent.abandoned {
                out.push(Action::Forget(sent.payload));
                continue;
            }
            let Some(call) = self.calls.get_mut(sent.call) else { continue };
            let again = if began(sent.serial) {
                call.losses += 1;
                call.task.options.idempotent && call.losses <= self.settings.retries
            } else {
                call.false_starts += u32::from(suspect == Some(sent.serial));
                call.false_starts < self.settings.max_failed_starts
            };
            if again {
                self.put_back(sent.call, out);
            } else {
                self.end(now, sent.call, End::WorkerLost(Arc::clone(&loss)), out);
            }
        }
        if self.closed {
            return;
        }
        if self.workers[id.index()].is_asleep() {
            // It was given back, or its place is not wanted.
            if let Some(host) = &mut self.workers[id.index()].host {
                (host.loss, host.absent_since) = (None, None);
            }
            return self.pump(now, out);
        }
        if was == Phase::Starting || !has_served {
            self.start_failed(now, id, loss, out);
        } else {
            self.start_again(now, id, was_of_use, out);
        }
        self.pump(now, out);
    }

    /// The last failed start, if workers are given up and fewer are left than wanted. While some of those still fail,
    /// nothing is reported: there may turn out to be none.
    #[must_use]
    pub fn too_few(&self, wanted: usize) -> Option<Arc<Loss>> {
        let (given_up, loss) = self.given_up.as_ref()?;
        let fails = |worker: &Worker<T>| {
            worker.reserved.is_none() && worker.failed_starts > 0 && !worker.given_up
        };
        (wanted > self.places - given_up && !self.workers.iter().any(fails))
            .then(|| self.with_other_hosts(loss))
    }

    /// Merges the loss of a host with those of all others that are given up. Each has its own cause, which the user
    /// needs to know.
    fn with_other_hosts(&self, loss: &Arc<Loss>) -> Arc<Loss> {
        let all = self.hosts_given_up();
        let others = all.iter().filter(|other| !Arc::ptr_eq(other, loss));
        let lines = summarise_hosts(others.map(|other| (other.host.clone(), other.to_string())));
        if lines.is_empty() {
            return Arc::clone(loss);
        }
        let with_lines = |why: &String| format!("{why}\n{}", lines.join("\n"));
        let cause = match &loss.cause {
            Cause::Failed(why) => Cause::Failed(with_lines(why)),
            Cause::Shortage(why) => Cause::Shortage(with_lines(why)),
            other => other.clone(),
        };
        Arc::new(Loss { cause, ..Loss::clone(loss) })
    }

    fn note_loss_of_host(&mut self, now: Time, id: WorkerId, loss: &Arc<Loss>) {
        if let Some(host) = &mut self.workers[id.index()].host {
            (host.serves, host.loss) = (false, Some(Arc::clone(loss)));
            host.absent_since.get_or_insert(now);
        }
    }

    pub(crate) fn start(&mut self, id: WorkerId, out: &mut Vec<Action<T>>) {
        self.workers[id.index()].phase = Phase::Starting;
        out.push(Action::Start(id));
    }

    /// Replaces a process that was ready: at once, unless processes are repeatedly lost before they begin a call.
    fn start_again(&mut self, now: Time, id: WorkerId, was_of_use: bool, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        worker.useless = if was_of_use { 0 } else { worker.useless.saturating_add(1) };
        match worker.useless {
            0 | 1 => self.start(id, out),
            useless => self.set_timer(now + pause(useless - 1), Timer::Restart(id)),
        }
    }

    fn start_failed(&mut self, now: Time, id: WorkerId, loss: Arc<Loss>, out: &mut Vec<Action<T>>) {
        let worker = &mut self.workers[id.index()];
        worker.failed_starts = worker.failed_starts.saturating_add(1);
        let failures = worker.failed_starts;
        let retry = worker.host.as_ref().map(|host| {
            let returns_by = host.absent_since.unwrap_or(now) + host.retry.timeout;
            (returns_by, host.retry.pause_after(failures))
        });
        let has_hope = match (&loss.cause, retry) {
            _ if !worker.has_worked => failures < self.settings.max_failed_starts,
            // The condition passes sooner or later.
            (Cause::Shortage(_) | Cause::Signal { out_of_memory: true, .. }, _) => true,
            (_, Some((returns_by, _))) => now < returns_by,
            (_, None) => failures < LATER_STARTS.max(self.settings.max_failed_starts),
        };
        if has_hope {
            let at = match retry {
                // The last request is made when its time ends.
                Some((returns_by, pause)) => {
                    let at = now + pause;
                    let at = if now < returns_by { at.min(returns_by) } else { at };
                    self.with_others(now, at)
                }
                None => now + pause(failures),
            };
            self.set_timer(at, Timer::Restart(id));
            return;
        }
        if self.rests(now, id) {
            return;
        }
        let worker = &mut self.workers[id.index()];
        worker.given_up = true;
        let places = worker.host.as_ref().map_or(1, |host| host.wanted);
        let given_up = places + self.given_up.as_ref().map_or(0, |(places, _)| *places);
        self.given_up = Some((given_up, Arc::clone(&loss)));
        self.lose_guests(now, id, &loss, out);
        if given_up == self.places {
            let loss = self.with_other_hosts(&loss);
            self.end_all(now, &End::NoWorkers(Arc::clone(&loss)), out);
            self.broken = Some(loss);
        } else {
            self.lose_groups(now, id, &loss, out);
        }
    }

    /// When to request a host again: together with the previous one, if that is only slightly earlier.
    fn with_others(&mut self, now: Time, at: Time) -> Time {
        if self.hosts_again <= now
            || !(self.hosts_again..=self.hosts_again + TOGETHER).contains(&at)
        {
            self.hosts_again = at;
        }
        self.hosts_again
    }
}

/// The pause after this many failures, ns.
fn pause(failures: u32) -> u64 {
    (PAUSE << (failures - 1).min(16)).min(LONGEST_PAUSE)
}
