//! All tests of the core from outside are one program: whatever the core is made for, such as a policy, is
//! compiled once for all of them, and not once for each file.

mod chosen;
mod elastic;
mod failing_starts;
mod farm;
mod hosts;
mod many_workers;
mod nested;
mod owners;
mod policies;
mod resources;
mod simulation;
mod sizing;
