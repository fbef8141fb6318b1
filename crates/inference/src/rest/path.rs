//! Paths of the REST endpoints.

use percent_encoding::percent_decode_str;

use crate::error::InferenceError;
use crate::name::FunctionName;

/// An endpoint.
#[derive(Debug, PartialEq)]
pub(super) enum Endpoint {
    Live,
    Ready,
    Server,
    Index,
    Model(Model),
    ModelReady(Model),
    Infer(Model),
}

/// The function that a path names.
#[derive(Debug, PartialEq)]
pub(super) struct Model {
    pub(super) name: FunctionName,
    /// Empty: any.
    pub(super) version: String,
}

/// The endpoint of a path. A function is one segment, `module.function` or `module%2Ffunction`, or two.
pub(super) fn endpoint(path: &str) -> Result<Endpoint, InferenceError> {
    let unknown = || InferenceError::NoEndpoint(path.chars().take(200).collect());
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments[..] {
        ["v2"] => Ok(Endpoint::Server),
        ["v2", "health", "live"] => Ok(Endpoint::Live),
        ["v2", "health", "ready"] => Ok(Endpoint::Ready),
        ["v2", "repository", "index"] => Ok(Endpoint::Index),
        ["v2", "models", ref rest @ ..] => match rest {
            // A function's name has two parts, so that the last segment is not ambiguous.
            [rest @ .., "infer"] if is_model(rest) => Ok(Endpoint::Infer(model(rest)?)),
            [rest @ .., "ready"] if is_model(rest) => Ok(Endpoint::ModelReady(model(rest)?)),
            rest if is_model(rest) => Ok(Endpoint::Model(model(rest)?)),
            _ => Err(unknown()),
        },
        _ => Err(unknown()),
    }
}

/// Whether these segments can name a function with its version.
fn is_model(segments: &[&str]) -> bool {
    let name = match segments {
        [name @ .., "versions", _] if is_name(name) => name,
        name => name,
    };
    is_name(name)
}

fn is_name(segments: &[&str]) -> bool {
    match segments {
        [name] => name.contains('.') || name.contains("%2F") || name.contains("%2f"),
        [_, _] => true,
        _ => false,
    }
}

fn model(segments: &[&str]) -> Result<Model, InferenceError> {
    let (name, version) = match segments {
        [name @ .., "versions", version] if is_name(name) => (name, decoded(version)),
        name => (name, String::new()),
    };
    let name = match name {
        [module, function] => FunctionName::new(&decoded(module), &decoded(function))?,
        _ => decoded(&name.concat()).parse()?,
    };
    Ok(Model { name, version })
}

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, version: &str) -> Model {
        Model { name: name.parse().unwrap(), version: version.to_owned() }
    }

    #[test]
    fn functions_may_be_named_in_several_ways() {
        for name in ["m/f", "m.f", "m%2Ff", "m%2ff", "%6d/f"] {
            let infer = endpoint(&format!("/v2/models/{name}/infer")).unwrap();
            assert_eq!(infer, Endpoint::Infer(model("m/f", "")), "{name}");
            let ready = endpoint(&format!("/v2/models/{name}/versions/1/ready")).unwrap();
            assert_eq!(ready, Endpoint::ModelReady(model("m/f", "1")), "{name}");
            let metadata = endpoint(&format!("/v2/models/{name}")).unwrap();
            assert_eq!(metadata, Endpoint::Model(model("m/f", "")), "{name}");
        }
    }

    #[test]
    fn functions_may_have_the_names_of_endpoints() {
        let cases = [
            ("m/infer", Endpoint::Model(model("m/infer", ""))),
            ("m/infer/infer", Endpoint::Infer(model("m/infer", ""))),
            ("m/ready/ready", Endpoint::ModelReady(model("m/ready", ""))),
            ("versions/f/infer", Endpoint::Infer(model("versions/f", ""))),
            ("m/versions/versions/2", Endpoint::Model(model("m/versions", "2"))),
        ];
        for (path, wanted) in cases {
            assert_eq!(endpoint(&format!("/v2/models/{path}")).unwrap(), wanted, "{path}");
        }
    }

    #[test]
    fn other_paths_are_unknown() {
        for path in [
            "",
            "/",
            "/v1",
            "/v2/models",
            "/v2/models/f",
            "/v2/models/a/b/c/infer",
            "/v2/health",
            "/v2/models/../../etc/passwd",
            "/v2/models/%2E%2E%2Fx",
            "/v2/models/m%00.f/infer",
        ] {
            assert!(endpoint(path).is_err(), "{path}");
        }
    }
}
