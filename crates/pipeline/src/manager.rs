//! A run's manager that runs short of memory: what it does with tasks.

use crate::event::RunEvent;
use crate::run::Run;
use crate::throttling::{Data, Level, Shortage};

impl Run<'_> {
    // Tasks come in, one after the other.

    /// The client has submitted a task.
    pub(crate) fn reaches_door(&mut self, task: u32) {
        if let Some(shortage) = &mut self.shortage {
            shortage.at_door.push_back(task);
        }
        self.submitting = false;
        self.take_next();
    }

    /// The manager begins to take another task, unless it cannot afford that.
    pub(crate) fn take_next(&mut self) {
        let (Some(manager), Some(shortage)) = (&self.parameters.manager, &mut self.shortage) else {
            return;
        };
        if shortage.taking || shortage.level >= Level::Critical {
            return;
        }
        let Some(task) = shortage.at_door.pop_front() else { return };
        shortage.taking = true;
        let slower = shortage.throttling.slower.powf(f64::from(shortage.level as u8));
        let work = manager.inward.work(self.case.bytes_in) * slower;
        self.pass(self.inward, work, RunEvent::ReachesManager, task);
    }

    /// The manager has taken a task.
    pub(crate) fn taken_in(&mut self, task: u32) {
        let Some(shortage) = &mut self.shortage else { return };
        shortage.taking = false;
        shortage.in_memory.push(task);
        shortage.data[task as usize] = Data::InMemory;
        self.hold(self.case.bytes_in);
    }

    // What waits goes to disk.

    /// Writes the data of another task to disk, if memory is short.
    pub(crate) fn page(&mut self) {
        let size = self.case.bytes_in;
        let Some(shortage) = &mut self.shortage else { return };
        if shortage.writing || shortage.level == Level::Normal || size == 0.0 {
            return;
        }
        let Some(task) = shortage.newest() else { return };
        let work = size / shortage.throttling.disk;
        shortage.writing = true;
        shortage.pressure.disk_busy += work;
        self.stages.queue(shortage.disk, work, RunEvent::Written, task, false, None);
    }

    /// A task's data need not be kept in memory, unless it was sent meanwhile.
    pub(crate) fn written(&mut self, task: u32) {
        let Some(shortage) = &mut self.shortage else { return };
        shortage.writing = false;
        let data = &mut shortage.data[task as usize];
        let before = *data;
        if before == Data::InMemory || before == Data::Kept {
            *data = if before == Data::Kept { Data::Elsewhere } else { Data::OnDisk };
            shortage.pressure.paged += 1;
            self.hold(-self.case.bytes_in);
        }
        self.page();
    }

    // Tasks go out.

    /// Whether nothing is sent.
    pub(crate) fn has_halted(&self) -> bool {
        self.shortage.as_ref().is_some_and(|one| one.level >= Level::Halt)
    }

    /// A task is to be sent. Whether its data has to be read from disk first, which begins.
    pub(crate) fn needs_reading(&mut self, task: u32) -> bool {
        let Some(shortage) = &mut self.shortage else { return false };
        let data = std::mem::replace(&mut shortage.data[task as usize], Data::Elsewhere);
        if data != Data::OnDisk {
            shortage.keep(task);
            return false;
        }
        let work = self.case.bytes_in / shortage.throttling.disk;
        shortage.pressure.disk_busy += work;
        self.stages.queue(shortage.disk, work, RunEvent::ReadBack, task, true, None);
        true
    }

    /// A task's data is in memory again.
    pub(crate) fn read_back(&mut self, task: u32) {
        if let Some(shortage) = &mut self.shortage {
            shortage.keep(task);
        }
        self.hold(self.case.bytes_in);
        self.send_data(task);
    }

    /// A worker has a task's data, which need not be kept unless for recovery.
    pub(crate) fn worker_has(&mut self) {
        if self.shortage.as_ref().is_some_and(|one| !one.throttling.until_done) {
            self.hold(-self.case.bytes_in);
        }
    }

    // Results go back.

    /// The manager has a task's result, so that nothing needs the task's data any more.
    pub(crate) fn is_done(&mut self, task: u32) {
        let Some(shortage) = &mut self.shortage else { return };
        if shortage.data[task as usize] == Data::Kept {
            shortage.data[task as usize] = Data::Elsewhere;
            self.hold(-self.case.bytes_in);
        }
    }

    /// A task has its result. Whether that has to wait, as a manager that has halted takes none.
    pub(crate) fn holds_back(&mut self, task: u32) -> bool {
        match &mut self.shortage {
            Some(shortage) if shortage.level == Level::Halt => {
                shortage.held_results.push_back(task);
                true
            }
            _ => false,
        }
    }

    // Memory is taken and given back.

    /// So many bytes more, or less, are held; what that allows continues.
    pub(crate) fn hold(&mut self, size: f64) {
        let Some(shortage) = &mut self.shortage else { return };
        if size == 0.0 {
            return;
        }
        shortage.used += size;
        let before = shortage.level;
        shortage.level = shortage.throttling.level(shortage.used);
        shortage.pressure.most = shortage.pressure.most.max(shortage.used);
        shortage.pressure.worst = shortage.pressure.worst.max(shortage.level);
        if before == Level::Halt && !self.has_halted() {
            self.resume();
        }
        let affords = |one: &Shortage| before >= Level::Critical && one.level < Level::Critical;
        if self.shortage.as_ref().is_some_and(affords) {
            self.take_next();
        }
        self.page();
    }

    /// Resumes work that waited during the pause.
    fn resume(&mut self) {
        while let Some(task) = self.shortage.as_mut().and_then(|one| one.held_results.pop_front()) {
            self.answer(task);
        }
        self.dispatch();
    }
}
