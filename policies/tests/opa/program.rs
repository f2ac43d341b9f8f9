//! The `opa` program, and a rule set in files for it.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use cotter_policies::Sandbox;
use serde_json::Value;
use tempfile::TempDir;

/// A file or folder of the checkout.
pub(crate) fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// What `opa` says.
///
/// # Panics
/// If the program is not there.
pub(crate) fn opa<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Output {
    let program = env::var_os("COTTER_TEST_OPA")
        .unwrap_or_else(|| panic!("COTTER_TEST_OPA names no program: run tests/run --only opa"));
    Command::new(program).args(arguments).output().unwrap()
}

/// The same, of a command that has to succeed.
pub(crate) fn good<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> String {
    let Output { status, stdout, stderr } = opa(arguments);
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{out}\n{err}");
    out.into_owned()
}

/// A rule set, in files.
pub(crate) struct Files {
    folder: TempDir,
}

/// What builtins do with what they cannot take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// The evaluation ends with an error, as in Cotter.
    End,
    /// They are undefined, as in `opa` by default.
    Undefined,
}

impl Files {
    /// The library with these modules. Files are numbered: a module's name need not be the name of a file.
    pub(crate) fn new(modules: &BTreeMap<String, String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("rules")).unwrap();
        for (number, (_, text)) in Sandbox::files(modules).unwrap().into_iter().enumerate() {
            fs::write(folder.path().join(format!("rules/{number}.rego")), text).unwrap();
        }
        Self { folder }
    }

    /// The folder with nothing but the rules.
    pub(crate) fn rules(&self) -> PathBuf {
        self.folder.path().join("rules")
    }

    /// What a rule says to each input, in one run of the program; nothing where it is undefined.
    ///
    /// # Errors
    /// What the program says where the evaluation ends with an error.
    pub(crate) fn answers(&self, rule: &str, inputs: &[Value], errors: Errors) -> Result<Vec<Option<Value>>, String> {
        let texts: Vec<String> = inputs.iter().map(Value::to_string).collect();
        self.answers_to(rule, &texts, errors)
    }

    /// The same for inputs as texts, so that every number is as it was written.
    ///
    /// # Errors
    /// As for [`Files::answers`].
    pub(crate) fn answers_to(
        &self,
        rule: &str,
        inputs: &[String],
        errors: Errors,
    ) -> Result<Vec<Option<Value>>, String> {
        let file = self.folder.path().join("input.json");
        fs::write(&file, format!("{{\"inputs\":[{}]}}", inputs.join(","))).unwrap();
        let query = format!("[[at, said] | some at, given in input.inputs; said := {rule} with input as given]");
        let (rules, file) = (self.rules(), file.display().to_string());
        let mut arguments = vec!["eval", "--format", "json", "--data", rules.to_str().unwrap(), "--input", &file];
        if errors == Errors::End {
            arguments.push("--strict-builtin-errors");
        }
        arguments.push(&query);
        let output = opa(arguments);
        let said: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        if let Some(errors) = said.get("errors") {
            let code = errors.pointer("/0/code").and_then(Value::as_str);
            assert!(matches!(code, Some("eval_builtin_error" | "eval_type_error")), "{errors}");
            return Err(errors.to_string());
        }
        let mut answers = vec![None; inputs.len()];
        for pair in said.pointer("/result/0/expressions/0/value").unwrap().as_array().unwrap() {
            let at = usize::try_from(pair[0].as_u64().unwrap()).unwrap();
            answers[at] = Some(pair[1].clone());
        }
        Ok(answers)
    }
}
