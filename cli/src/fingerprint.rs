//! `cotter fingerprint`: what each tool of a file hashes to.

use clap::Args;
use cotter_core::fingerprint::{Ignore, Scheme, fingerprint};

use crate::{
    failure::{Failure, Outcome},
    tools_file,
};

/// Print the fingerprint of each tool: a line a tool, its name, a tab, the fingerprint
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 all hashed, 2 one could not be hashed or read.")]
pub(crate) struct Options {
    /// What is hashed, and how: cotter.tool/v1, cotter.tool/v1+effective or name-description-schema/v0
    #[arg(long, default_value = "cotter.tool/v1", value_parser = scheme)]
    scheme: Scheme,
    /// A member to leave out of the fingerprint, as a JSON pointer (RFC 6901); may be repeated
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<String>,
    /// One tool object, an array of tools, a tools/list result or a whole JSON-RPC response; - for standard input
    file: String,
}

fn scheme(text: &str) -> Result<Scheme, String> {
    text.parse::<Scheme>().map_err(|error| error.to_string())
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let ignore = Ignore::parse(&options.ignore).map_err(|error| Failure::cannot(error.to_string()))?;
    let mut failed = 0;
    for tool in tools_file::read(&options.file)? {
        let name = tools_file::shown(&tool.name);
        match fingerprint(&tool.value, options.scheme, &ignore) {
            Ok(found) => println!("{name}\t{found}"),
            Err(error) => {
                failed += 1;
                eprintln!("cotter: {name}: {error}");
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(Failure::cannot(format!("{failed} tools have no fingerprint"))) }
}
