//! One question for the jobs of many servers: each server has a desk, and all of them would ask a batch system at
//! the same times.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::super::agents::lock;
use super::{Seen, Trouble};

/// How long no question is put after the one before.
const PAUSE: Duration = Duration::from_millis(50);

type Answer = Result<Vec<Seen>, Trouble>;

/// Puts questions of several threads together. One is under way at a time, and what is asked meanwhile is part of
/// the next.
#[derive(Debug, Default)]
pub(in crate::launcher) struct Asker {
    questions: Mutex<Questions>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Questions {
    is_asking: bool,
    /// When the last one was answered.
    last: Option<Instant>,
    next: Question,
}

/// One that has not been put.
#[derive(Debug, Default)]
struct Question {
    jobs: Vec<String>,
    answer: Arc<OnceLock<Answer>>,
}

impl Asker {
    /// How these jobs stand, by `look`, which one of the threads that ask together calls for all.
    pub(super) fn ask(&self, jobs: &[&str], look: impl Fn(&[&str]) -> Answer) -> Answer {
        let mut questions = lock(&self.questions);
        questions.next.jobs.extend(jobs.iter().map(|job| (*job).to_owned()));
        let answer = Arc::clone(&questions.next.answer);
        let seen = loop {
            if let Some(seen) = answer.get() {
                break seen.as_ref();
            }
            if questions.is_asking {
                questions = self.changed.wait(questions).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            questions.is_asking = true;
            let pause = questions.last.map(|last| PAUSE.saturating_sub(last.elapsed()));
            drop(questions);
            // Others join meanwhile.
            std::thread::sleep(pause.unwrap_or_default());
            // What has not been answered and is not being asked is what is asked next.
            let question = std::mem::take(&mut lock(&self.questions).next);
            let jobs: Vec<&str> = question.jobs.iter().map(String::as_str).collect();
            let _ = question.answer.set(look(&jobs));
            questions = lock(&self.questions);
            (questions.is_asking, questions.last) = (false, Some(Instant::now()));
            self.changed.notify_all();
        };
        drop(questions);
        let is_own = |seen: &&Seen| jobs.contains(&&*seen.task.job);
        seen.map(|seen| seen.iter().filter(is_own).cloned().collect()).map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::{Stand, Task};
    use super::*;

    fn seen(job: &str) -> Seen {
        let task = Task { job: job.to_owned(), number: None };
        Seen { task, stand: Stand::Runs(String::new()), left: None, run: String::new() }
    }

    fn waits_for(asker: &Asker, jobs: usize) {
        while lock(&asker.questions).next.jobs.len() < jobs {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_asked_meanwhile_is_one_question() {
        let asker = Asker::default();
        let (entered, has_entered) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let asked = Mutex::new(Vec::new());
        let (asker, asked) = (&asker, &asked);
        let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        std::thread::scope(|scope| {
            let first = scope.spawn(move || {
                asker.ask(&["first"], |jobs| {
                    let _ = entered.send(());
                    let _ = goes_on.recv();
                    Ok(jobs.iter().map(|job| seen(job)).collect())
                })
            });
            has_entered.recv().unwrap();
            let others: Vec<_> = names
                .iter()
                .map(|name| {
                    scope.spawn(move || {
                        asker.ask(&[name], |jobs| {
                            lock(asked).push(jobs.len());
                            Ok(jobs.iter().map(|job| seen(job)).collect())
                        })
                    })
                })
                .collect();
            waits_for(asker, names.len());
            go_on.send(()).unwrap();
            let told = |answer: Answer| {
                let seen = answer.unwrap().into_iter();
                seen.map(|seen| seen.task.job).collect::<Vec<_>>()
            };
            assert_eq!(told(first.join().unwrap()), ["first"]);
            for (name, other) in names.iter().zip(others) {
                assert_eq!(told(other.join().unwrap()), std::slice::from_ref(name));
            }
            assert_eq!(*lock(asked), [names.len()]);
        });
    }

    #[test]
    fn trouble_is_told_and_the_next_question_is_another() {
        let asker = Asker::default();
        let trouble = Trouble::Silent("no answer".to_owned());
        assert_eq!(asker.ask(&["a"], |_| Err(trouble.clone())).unwrap_err(), trouble);
        let answer = asker.ask(&["a", "b"], |jobs| Ok(vec![seen(jobs[1]), seen("other")]));
        let jobs: Vec<String> = answer.unwrap().into_iter().map(|seen| seen.task.job).collect();
        assert_eq!(jobs, ["b"]);
    }
}
