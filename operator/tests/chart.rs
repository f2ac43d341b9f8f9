//! The chart is held to what it installs.

// `cfg(test)` is true of the whole program; clippy asks for it before it lets a fixture unwrap.
#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, path::PathBuf};

    fn root() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn yaml_files(folder: &str) -> BTreeMap<String, String> {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
        files
            .map(|path| (path.file_name().unwrap().display().to_string(), fs::read_to_string(&path).unwrap()))
            .collect()
    }

    #[test]
    fn the_charts_definitions_are_those_of_the_repository() {
        let (charts, crates) = (yaml_files("charts/cotter/files/crds"), yaml_files("crds/yaml"));
        assert_eq!(charts.len(), 3);
        for (name, text) in &crates {
            assert!(charts.get(name) == Some(text), "{name} differs: cp crds/yaml/*.yaml charts/cotter/files/crds/");
            // What the template puts its annotation behind.
            assert_eq!(text.matches("\nmetadata:\n").count(), 1, "{name}");
        }
        assert_eq!(charts.keys().collect::<Vec<_>>(), crates.keys().collect::<Vec<_>>());
    }

    #[test]
    fn the_chart_gives_every_flag_that_an_installation_needs() {
        use clap::CommandFactory;
        let deployment = fs::read_to_string(root().join("charts/cotter/templates/deployment.yaml")).unwrap();
        // Where the chart keeps to the default of the program: ports, which the chart's Service and probes name, too.
        let kept = ["COTTER_STREAM_URL", "COTTER_STREAM_LISTEN", "COTTER_HEALTH_LISTEN", "COTTER_WORKERS"];
        // For tests, where the operator is not a program of its own.
        let for_tests = "COTTER_POLICY_CHECKER";
        let command = cotter_operator::settings::Settings::command();
        let variables = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
        let missing: Vec<_> = variables
            .filter(|name| *name != for_tests && !kept.contains(name) && !deployment.contains(*name))
            .collect();
        assert!(missing.is_empty(), "not in the chart: {missing:?}");
    }

    #[test]
    fn every_value_of_the_chart_is_in_its_schema() {
        let values = fs::read_to_string(root().join("charts/cotter/values.yaml")).unwrap();
        let schema = fs::read_to_string(root().join("charts/cotter/values.schema.json")).unwrap();
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let top = values.lines().filter_map(|line| line.split_once(':').map(|(name, _)| name));
        let top: Vec<_> = top.filter(|name| name.chars().all(|c| c.is_ascii_alphabetic())).collect();
        assert!(top.len() > 10, "{top:?}");
        for name in top {
            assert!(schema["properties"].get(name).is_some(), "{name} is not in values.schema.json");
        }
    }
}
