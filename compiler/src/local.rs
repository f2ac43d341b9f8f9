//! On a laptop: what a container's manifest says, as a child process. Secrets and ConfigMaps come from the folder.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVar, EnvVarSource};

use crate::{
    plan::Notice,
    problem::Problems,
    server::Container,
    world::{Data, LocalSettings},
};

/// The program and its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) notices: Vec<Notice>,
}

/// Reads the environment as a kubelet would, and puts it into command and args where they say `$(NAME)`.
///
/// # Errors
/// Every variable whose source is not in the folder.
pub(crate) fn program(container: &Container, folder: &LocalSettings) -> Result<Program, Problems> {
    let mut problems = Problems::default();
    let mut notices = Vec::new();
    let mut env = BTreeMap::new();
    for (at, source) in container.env_from.iter().enumerate() {
        env.extend(all_of(&format!("spec.upstream.container.envFrom[{at}]"), source, folder, &mut problems));
    }
    for (at, variable) in container.env.iter().enumerate() {
        let path = format!("spec.upstream.container.env[{at}].valueFrom");
        let value = match &variable.value_from {
            None => Some(expand(variable.value.as_deref().unwrap_or_default(), &env)),
            Some(source) => one_of(&path, variable, source, folder, &mut problems, &mut notices),
        };
        if let Some(value) = value {
            env.insert(variable.name.clone(), value);
        }
    }
    let words = container.command.iter().chain(&container.args);
    let command = words.map(|word| expand(word, &env)).collect();
    problems.finish(Some(Program { command, env, notices }))
}

fn all_of(path: &str, source: &EnvFromSource, folder: &LocalSettings, problems: &mut Problems) -> Data {
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let (kind, name, optional, held) = if let Some(named) = &source.secret_ref {
        ("Secret", &named.name, named.optional, folder.secrets.get(&named.name))
    } else if let Some(named) = &source.config_map_ref {
        ("ConfigMap", &named.name, named.optional, folder.config_maps.get(&named.name))
    } else {
        return Data::new();
    };
    if held.is_none() && optional != Some(true) {
        problems
            .add(path, format_args!("there is no {kind} {name} in this folder: add one, or mark it optional: true"));
    }
    held.into_iter().flatten().map(|(key, value)| (format!("{prefix}{key}"), value.clone())).collect()
}

fn one_of(
    path: &str,
    variable: &EnvVar,
    source: &EnvVarSource,
    folder: &LocalSettings,
    problems: &mut Problems,
    notices: &mut Vec<Notice>,
) -> Option<String> {
    let (kind, name, key, optional, held) = if let Some(one) = &source.secret_key_ref {
        ("Secret", &one.name, &one.key, one.optional, folder.secrets.get(&one.name))
    } else if let Some(one) = &source.config_map_key_ref {
        ("ConfigMap", &one.name, &one.key, one.optional, folder.config_maps.get(&one.name))
    } else {
        let text = format!("the variable {} comes from the pod and is left out here", variable.name);
        notices.push(Notice { about: "server", text });
        return None;
    };
    let value = held.and_then(|data| data.get(key)).cloned();
    if value.is_none() && optional != Some(true) {
        problems.add(
            path,
            format_args!(
                "there is no {kind} {name} with the key {key} in this folder: add one, or mark it optional: true"
            ),
        );
    }
    value
}

/// Replaces `$(NAME)` by the variable of that name. An unknown name stays as it is, and `$$(NAME)` is the text `$(NAME)`,
/// as in a pod.
fn expand(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let named = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match (after.strip_prefix('$'), named) {
            (Some(tail), _) => {
                out.push('$');
                rest = tail;
            }
            (None, Some((name, tail))) => {
                match env.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.push_str(&format!("$({name})")),
                }
                rest = tail;
            }
            (None, None) => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_as_a_kubelet_does() {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        for (text, expected) in [
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("$", "$"),
            ("plain", "plain"),
        ] {
            assert_eq!(expand(text, &env), expected, "{text}");
        }
    }
}
