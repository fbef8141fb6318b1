//! Nesting depth of grids that functions of other grids open.
//!
//! A function that opens a grid and submits itself would start processes without end. The depth is passed from
//! process to process in the environment, so it includes programs that functions run.

/// Environment variable with the nesting depth of a process.
const VARIABLE: &str = "GRIDRPC_DEPTH";
/// Maximum nesting depth.
const DEEPEST: u32 = 3;

/// Nesting depth of this process; 0 in a client that no function has started.
fn depth() -> u32 {
    std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Environment variable that passes the depth to the processes of a grid opened here.
pub fn for_workers() -> (&'static str, String) {
    (VARIABLE, (depth().saturating_add(1)).to_string())
}

/// Checks that this process may open a grid. The error explains why it may not.
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
