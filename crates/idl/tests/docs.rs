//! Examples in the reference parse, except those marked as wrong.

use std::path::Path;

use gridrpc_idl::parse;

#[test]
fn the_examples_of_the_reference_have_no_errors_and_no_warnings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/idl.md");
    let text = std::fs::read_to_string(path).expect("the reference");
    let mut count = 0;
    for block in text.split("```idl\n").skip(1) {
        let example = block.split("```").next().expect("an end");
        let source = match example.starts_with("Module") {
            true => example.to_owned(),
            false => format!("Module example;\n{example}"),
        };
        let parsed = parse(&source);
        let found: String =
            parsed.diagnostics.iter().map(|found| found.render("idl.md", &source)).collect();
        assert_eq!(found.is_empty(), !example.starts_with("Module wrong;"), "{example}{found}");
        count += 1;
    }
    assert!(count > 8, "only {count} examples");
}
