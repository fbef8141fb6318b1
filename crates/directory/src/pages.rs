//! Pages for people: all functions, and one function with example calls.

use std::fmt::Write as _;

use gridrpc_idl::Function;

use crate::examples::{by_curl, in_c, in_fortran, in_python};
use crate::registry::{FunctionOffer, FunctionState, ServerState};

/// The page of all functions that a search finds.
pub fn index(search: &str, functions: &[FunctionState], servers: &[ServerState]) -> String {
    let mut rows = String::new();
    for function in functions {
        let name = escaped(&function.name);
        let conflict = if function.signatures.len() > 1 {
            " <span class=\"bad\">different interfaces</span>"
        } else {
            ""
        };
        let _ = writeln!(
            rows,
            "<tr><td><a href=\"function/{name}\">{name}</a>{conflict}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
            escaped(function.description.as_deref().unwrap_or("").trim()),
            escaped(&function.servers.join(", ")),
        );
    }
    let body = format!(
        "<form><input type=\"search\" name=\"search\" value=\"{}\" aria-label=\"Search functions\"> \
         <button>Search</button></form>\n\
         <h2>Functions ({})</h2>\n<div class=\"wide\"><table>\n\
         <tr><th>function</th><th class=\"text\">description</th><th class=\"text\">servers</th></tr>\n{rows}</table></div>\n\
         <h2>Servers</h2>\n{}",
        escaped(search),
        functions.len(),
        server_table(servers.iter()),
    );
    document("gridrpc directory", "", &body)
}

/// The page of one function. `http`: the URL of the Open Inference Protocol of one of its servers.
pub fn function(
    name: &str,
    function: Option<&Function>,
    offers: &[FunctionOffer],
    http: Option<&str>,
) -> String {
    let mut body = String::from("<p><a href=\"../../\">All functions</a></p>\n");
    let address = offers.first().map_or("", |offer| offer.server.address.as_str());
    let server = format!("gridrpc://{address}");
    match function {
        None => {
            body.push_str(
                "<p>The function is in Python: it has no interface, and only Python programs call it.</p>\n",
            );
        }
        Some(function) => {
            let description = function.description.as_deref().unwrap_or("").trim();
            let _ = writeln!(body, "<p>{}</p>", escaped(description));
            section(&mut body, "Interface", &function.to_string());
            section(&mut body, "C", &in_c(name, function, &server));
            section(&mut body, "Fortran", &in_fortran(name, function, &server));
            section(&mut body, "Python", &in_python(name, function, &server));
            if let Some(call) = http.and_then(|http| by_curl(name, function, http)) {
                section(&mut body, "curl", &call);
            }
        }
    }
    let mut signatures: Vec<&String> =
        offers.iter().filter_map(|one| one.signature.as_ref()).collect();
    signatures.sort();
    signatures.dedup();
    if signatures.len() > 1 {
        let listed: String = signatures.iter().map(|one| format!("{one}\n")).collect();
        section(&mut body, "Servers have different interfaces", &listed);
    }
    body.push_str("<h2>Servers</h2>\n");
    body.push_str(&server_table(offers.iter().map(|offer| &offer.server)));
    document(name, "../../", &body)
}

fn section(body: &mut String, title: &str, code: &str) {
    let _ =
        writeln!(body, "<h2>{title}</h2>\n<pre class=\"wide\">{}</pre>", escaped(code.trim_end()));
}

fn server_table<'s>(servers: impl Iterator<Item = &'s ServerState>) -> String {
    let mut rows = String::new();
    for server in servers {
        let state = match (server.is_silent, server.is_full) {
            (true, _) => "<span class=\"bad\">silent</span>",
            (false, true) => "full",
            (false, false) => "ready",
        };
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{state}</td><td>{}</td><td>{:.2}</td><td>{}</td><td>{:.1} s</td></tr>",
            escaped(&server.name),
            escaped(&server.address),
            server.cores,
            server.load,
            server.queued,
            server.age,
        );
    }
    format!(
        "<div class=\"wide\"><table>\n<tr><th>server</th><th class=\"text\">address</th><th class=\"text\">state</th><th>cores</th><th>load</th>\
         <th>queued</th><th>last heard</th></tr>\n{rows}</table></div>\n"
    )
}

fn document(title: &str, root: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"{root}page.css\">\n</head>\n<body>\n\
         <header><h1>{title}</h1></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A text of others, as text in HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_servers_are_no_markup() {
        let function = FunctionState {
            name: "a/<b>".into(),
            description: Some("<script>alert('x')</script>".into()),
            signatures: Vec::new(),
            servers: vec!["\"lab\"".into()],
        };
        let page = index("<i>", &[function], &[]);
        assert!(
            !page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>"),
            "{page}"
        );
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"), "{page}");
    }
}
