//! Grids that functions of other grids open: how deep they may lie in each other.
//!
//! A function that opens a grid and submits itself would start processes without end. The depth goes
//! from process to process in the environment, so programs that functions run are counted as well.

/// The environment variable that tells a process how many grids it lies in.
const VARIABLE: &str = "GRIDRPC_DEPTH";
/// Grids that may lie in each other.
const DEEPEST: u32 = 3;

/// How many grids this process lies in; 0 in a client that nobody's function has started.
fn depth() -> u32 {
    std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What tells the processes of a grid that this process opens how deep they lie.
pub fn for_workers() -> (&'static str, String) {
    (VARIABLE, (depth().saturating_add(1)).to_string())
}

/// Says why this process cannot open a grid, if it lies too deep.
pub fn check() -> Result<(), String> {
    if depth() < DEEPEST {
        return Ok(());
    }
    Err(format!(
        "this process belongs to a grid that a function has opened in a grid, and so on, \
         {DEEPEST} deep, which is as deep as grids may lie in each other: run what is here in the \
         process itself, or submit it to the outer grid"
    ))
}
