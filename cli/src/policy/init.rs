//! `cotter policy init`: a module to begin with, its test and its cases.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::failure::{Doing as _, Failure, Outcome};

/// Write a commented starter module with its test and cases
#[derive(Debug, Args)]
#[command(after_help = "All files are written, or none: where one of them exists already nothing is.")]
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
    let files = FILES.map(|(name, text)| (options.folder.join(name), text));
    let taken = files.iter().filter(|(path, _)| fs::symlink_metadata(path).is_ok());
    let taken: Vec<String> = taken.map(|(path, _)| path.display().to_string()).collect();
    if !taken.is_empty() {
        let exist = if taken.len() == 1 { "exists" } else { "exist" };
        let taken = taken.join(", ");
        return Err(Failure::cannot(format!("{taken} {exist} already, and nothing was written: name another folder")));
    }
    fs::create_dir_all(&options.folder).doing(format!("make {}", options.folder.display()))?;
    for (at, (path, text)) in files.iter().enumerate() {
        if let Err(failure) = write(path, text) {
            // It is whole or it is not there; what cannot be removed either is told by the next attempt.
            files.iter().take(at).for_each(|(path, _)| drop(fs::remove_file(path)));
            return Err(failure);
        }
    }
    files.iter().for_each(|(path, _)| println!("{}", path.display()));
    let folder = options.folder.display();
    println!(
        "\nTry it:  cotter policy test {folder}\nUse it:  put starter.rego into a ConfigMap and name that in spec.policies of the McpServer"
    );
    Ok(())
}

/// Writes a file that is not there yet, whole or not at all.
fn write(path: &Path, text: &str) -> Outcome {
    let name = path.display();
    let file = fs::File::options().write(true).create_new(true).open(path);
    let mut file = file.doing(format!("write {name}"))?;
    let written = file.write_all(text.as_bytes()).doing(format!("write {name}"));
    if written.is_err() {
        drop(fs::remove_file(path));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_neither_overwritten_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, "mine").unwrap();
        assert!(write(&path, "other").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
