//! The live page of a server, and parts shared with the page of `gridrpc top --web`.

/// Content type of scripts.
pub const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// Style sheet of both pages.
pub const STYLE: &str = include_str!("page.css");
/// Script of both pages: numbers, tables and charts.
pub const FORMATS: &str = include_str!("formats.js");
/// Script of the server's page.
pub(crate) const SERVER_SCRIPT: &str = include_str!("server.js");

/// The server's page. `query`: what its resources need behind their paths.
pub(crate) fn server_page(query: &str) -> String {
    include_str!("server.html").replace("{query}", query)
}
