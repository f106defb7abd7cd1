//! Writes the C header: `flexfile-header CAPI_DIRECTORY OUTPUT`.
//!
//! cbindgen is given the modules one by one: their order here is the order of the sections in the header.

use std::path::PathBuf;
use std::process::ExitCode;

/// Modules with something for C, in the order in which a reader wants them.
const MODULES: [&str; 17] = [
    "version",
    "status",
    "last_error",
    "buf",
    "options",
    "file",
    "read",
    "edit",
    "tag",
    "file_snapshot",
    "cursor",
    "space",
    "list",
    "snapshot",
    "group",
    "stats",
    "check",
];

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [capi, output] = arguments.as_slice() else {
        eprintln!("usage: flexfile-header CAPI_DIRECTORY OUTPUT");
        return ExitCode::from(2);
    };
    match write_header(capi.clone(), output.clone()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("flexfile-header: {text}");
            ExitCode::FAILURE
        }
    }
}

fn write_header(capi: PathBuf, output: PathBuf) -> Result<(), String> {
    let mut config = cbindgen::Config::from_file(capi.join("cbindgen.toml"))?;
    let manual = capi.join("header_manual.h");
    config.header = Some(std::fs::read_to_string(&manual).map_err(|error| format!("{}: {error}", manual.display()))?);
    let builder = MODULES.iter().fold(cbindgen::Builder::new().with_config(config), |builder, module| {
        builder.with_src(capi.join("src").join(module).with_extension("rs"))
    });
    let mut text = Vec::new();
    builder.generate().map_err(|error| error.to_string())?.write(&mut text);
    let mut lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(String::from).collect();
    for module in MODULES {
        let source = capi.join("src").join(module).with_extension("rs");
        let source = std::fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        insert_heading(&mut lines, &source).ok_or_else(|| format!("module {module} has nothing in the header"))?;
    }
    std::fs::write(&output, lines.join("\n") + "\n").map_err(|error| format!("{}: {error}", output.display()))
}

/// Puts the first line of the module's own documentation over its first function.
fn insert_heading(lines: &mut Vec<String>, source: &str) -> Option<()> {
    let heading = source.lines().next()?.strip_prefix("//! ")?.replace('`', "");
    let function = source.split("extern \"C\" fn ").nth(1)?.split('(').next()?;
    let call = format!("{function}(");
    let place = lines.iter().position(|line| line.starts_with(|c: char| c.is_alphabetic()) && line.contains(&call))?;
    let first = lines[..place].iter().rposition(|line| !line.starts_with("//"))? + 1;
    let rule = format!("// ======== {heading} {}", "=".repeat(94usize.saturating_sub(heading.len())));
    lines.splice(first..first, [rule, String::new()]);
    Some(())
}
