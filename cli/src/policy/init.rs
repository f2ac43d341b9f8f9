//! `cotter policy init`: a module to begin with, its test and its cases.

use std::{fs, io::Write as _, path::PathBuf};

use clap::Args;

use crate::failure::{Doing as _, Outcome};

/// Write a commented starter module with its test and cases
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder to write to; existing files are never overwritten
    #[arg(default_value = ".")]
    folder: PathBuf,
}

const FILES: [(&str, &str); 3] = [
    ("starter.rego", include_str!("starter/starter.rego")),
    ("starter_test.rego", include_str!("starter/starter_test.rego")),
    ("starter.yaml", include_str!("starter/starter.yaml")),
];

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    fs::create_dir_all(&options.folder).doing(format!("make {}", options.folder.display()))?;
    for (name, text) in FILES {
        let path = options.folder.join(name);
        let file = fs::File::options().write(true).create_new(true).open(&path);
        file.doing(format!("write {}", path.display()))?
            .write_all(text.as_bytes())
            .doing(format!("write {}", path.display()))?;
        println!("{}", path.display());
    }
    let folder = options.folder.display();
    println!(
        "\nTry it:  cotter policy test {folder}\nUse it:  put starter.rego into a ConfigMap and name that in spec.policies of the McpServer"
    );
    Ok(())
}
