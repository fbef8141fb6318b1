//! One status query for the jobs of many groups. Each group has a tracker, and all would query the batch
//! system at the same times.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;

use super::commands::Failure;
use super::task::TaskStatus;

/// Shortest pause between two queries.
const PAUSE: Duration = Duration::from_millis(50);
/// How often waiting threads check whether they still need the answer.
const GLANCE: Duration = Duration::from_millis(100);
/// The answer for the others when the group that ran the query closes.
const AGAIN: &str = "the question was broken off, and will be put again";

type Answer = Result<Vec<TaskStatus>, Failure>;

/// Combines the queries of several threads. One query runs at a time; requests that arrive meanwhile join the
/// next one.
#[derive(Debug, Default)]
pub(crate) struct StatusQuery {
    questions: Mutex<QueryState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueryState {
    /// The process that created them. After a fork, nobody in the child answers them.
    process: u32,
    is_asking: bool,
    /// When the last one was answered.
    last: Option<Instant>,
    next: PendingQuery,
}

/// A query that has not started.
#[derive(Debug, Default)]
struct PendingQuery {
    jobs: Vec<String>,
    answer: Arc<OnceLock<Answer>>,
}

impl StatusQuery {
    /// Queries the state of these jobs. One of the waiting threads calls `look` for all of them. A thread
    /// stops waiting and does not query once `is_over` returns true.
    pub(super) fn ask(
        &self,
        jobs: &[&str],
        is_over: impl Fn() -> bool,
        look: impl Fn(&[&str]) -> Answer,
    ) -> Answer {
        let mut questions = lock(&self.questions);
        let process = std::process::id();
        if questions.process != process {
            *questions = QueryState { process, ..QueryState::default() };
        }
        questions.next.jobs.extend(jobs.iter().map(|job| (*job).to_owned()));
        let answer = Arc::clone(&questions.next.answer);
        let seen = loop {
            if let Some(seen) = answer.get() {
                break seen.as_ref();
            }
            if is_over() {
                return Err(Failure::Silent("this grid is being closed".to_owned()));
            }
            if questions.is_asking {
                let waited = self.changed.wait_timeout(questions, GLANCE);
                questions = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            questions.is_asking = true;
            let pause = questions.last.map(|last| PAUSE.saturating_sub(last.elapsed()));
            drop(questions);
            // Others join during the pause.
            std::thread::sleep(pause.unwrap_or_default());
            // Everything that is neither answered nor under way joins the next query.
            let question = std::mem::take(&mut lock(&self.questions).next);
            let jobs: Vec<&str> = question.jobs.iter().map(String::as_str).collect();
            let outcome = look(&jobs);
            // If this grid's end interrupted the query, the result is no answer for the others.
            let outcome = if is_over() { Err(Failure::Silent(AGAIN.to_owned())) } else { outcome };
            let _ = question.answer.set(outcome);
            questions = lock(&self.questions);
            (questions.is_asking, questions.last) = (false, Some(Instant::now()));
            self.changed.notify_all();
        };
        drop(questions);
        let is_own = |seen: &&TaskStatus| jobs.contains(&&*seen.task.job);
        seen.map(|seen| seen.iter().filter(is_own).cloned().collect()).map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::super::task::{JobState, Task};
    use super::*;

    fn seen(job: &str) -> TaskStatus {
        let task = Task { job: job.to_owned(), number: None };
        TaskStatus {
            task,
            job_state: JobState::Runs(String::new()),
            left: None,
            run: String::new(),
        }
    }

    fn waits_for(status_query: &StatusQuery, jobs: usize) {
        while lock(&status_query.questions).next.jobs.len() < jobs {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_asked_meanwhile_is_one_question() {
        let status_query = StatusQuery::default();
        let (entered, has_entered) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let query_sizes = Mutex::new(Vec::new());
        let (status_query, query_sizes) = (&status_query, &query_sizes);
        let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        std::thread::scope(|scope| {
            let first = scope.spawn(move || {
                status_query.ask(
                    &["first"],
                    || false,
                    |jobs| {
                        let _ = entered.send(());
                        let _ = goes_on.recv();
                        Ok(jobs.iter().map(|job| seen(job)).collect())
                    },
                )
            });
            has_entered.recv().unwrap();
            let others: Vec<_> = names
                .iter()
                .map(|name| {
                    scope.spawn(move || {
                        status_query.ask(
                            &[name],
                            || false,
                            |jobs| {
                                lock(query_sizes).push(jobs.len());
                                Ok(jobs.iter().map(|job| seen(job)).collect())
                            },
                        )
                    })
                })
                .collect();
            waits_for(status_query, names.len());
            go_on.send(()).unwrap();
            let outcome = |answer: Answer| {
                let seen = answer.unwrap().into_iter();
                seen.map(|seen| seen.task.job).collect::<Vec<_>>()
            };
            assert_eq!(outcome(first.join().unwrap()), ["first"]);
            for (name, other) in names.iter().zip(others) {
                assert_eq!(outcome(other.join().unwrap()), std::slice::from_ref(name));
            }
            assert_eq!(*lock(query_sizes), [names.len()]);
        });
    }

    #[test]
    fn trouble_is_reported_and_the_next_question_is_another() {
        let status_query = StatusQuery::default();
        let failure = Failure::Silent("no answer".to_owned());
        assert_eq!(
            status_query.ask(&["a"], || false, |_| Err(failure.clone())).unwrap_err(),
            failure
        );
        let answer =
            status_query.ask(&["a", "b"], || false, |jobs| Ok(vec![seen(jobs[1]), seen("other")]));
        let jobs: Vec<String> = answer.unwrap().into_iter().map(|seen| seen.task.job).collect();
        assert_eq!(jobs, ["b"]);
    }

    #[test]
    fn who_closes_waits_for_nobody_and_what_it_broke_off_is_no_answer() {
        let status_query = StatusQuery::default();
        let (entered, has_entered) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let is_over = AtomicBool::new(false);
        let (status_query, is_over) = (&status_query, &is_over);
        std::thread::scope(|scope| {
            let leader = scope.spawn(move || {
                status_query.ask(
                    &["first"],
                    || is_over.load(Ordering::Acquire),
                    |jobs| {
                        let _ = entered.send(());
                        let _ = goes_on.recv();
                        Ok(jobs.iter().map(|job| seen(job)).collect())
                    },
                )
            });
            has_entered.recv().unwrap();
            let follower = status_query.ask(&["second"], || true, |_| panic!("it does not ask"));
            assert!(matches!(follower, Err(Failure::Silent(_))), "it does not wait");
            is_over.store(true, Ordering::Release);
            go_on.send(()).unwrap();
            assert_eq!(leader.join().unwrap().unwrap_err(), Failure::Silent(AGAIN.to_owned()));
        });
        let answer =
            status_query.ask(&["third"], || false, |jobs| Ok(vec![seen(jobs[jobs.len() - 1])]));
        assert_eq!(answer.unwrap().len(), 1);
    }
}
