//! Why a decision is what it is: what each layer of the library finds on an input, by itself.

use std::collections::BTreeMap;

use regorus::Value;
use serde::{Deserialize, Serialize};

use super::{Coverage, RuleReport, Sandbox, SandboxError};
use crate::{document::Output, engine};

/// The layers, in the order in which a person asks: a name, what it refuses, what it asks for, and what it found.
const LAYERS: [(&str, &str, &str, &str); 5] = [
    ("tenants", "data.cotter.tenants.refusals", "", "{\"admitted\": data.cotter.tenants.admitted}"),
    (
        "scopes",
        "data.cotter.scopes.refusals(input.tool)",
        "",
        "{\"needs\": input.tool.scope, \"satisfied\": data.cotter.scopes.satisfied(input.tool)}",
    ),
    (
        "effects",
        "data.cotter.effects.refusals(input.tool)",
        "{\"its owner wants a person to agree\" | input.tool.approval != \"Never\"}",
        "{\"effect\": input.tool.effect}",
    ),
    (
        "delegation",
        "{refusal | data.cotter.delegation.required; \
          some refusal in data.cotter.delegation.refusals(input.tool) | data.cotter.delegation.absent}",
        "",
        "{\"permitting\": data.cotter.delegation.permitting(input.tool), \
          \"gaps\": {name: gaps | some name, grant in input.grants; gaps := data.cotter.delegation.gaps(grant, input.tool)}}",
    ),
    ("modules", "data.cotter.modules.denied(input.tool)", "data.cotter.modules.approvals(input.tool)", "{}"),
];

/// A decision on one input, with its explanation where one is wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluation {
    /// The decision, as it is documented.
    pub decision: Output,
    /// Why, where that is wanted.
    pub explanation: Option<Explanation>,
}

/// Why a decision is what it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// What each layer finds.
    pub layers: Vec<Layer>,
    /// Which rules fired, and why the others did not.
    pub rules: Vec<RuleReport>,
    /// Lines that were evaluated for the decision.
    pub coverage: Vec<Coverage>,
}

impl Evaluation {
    /// Decides on one input.
    ///
    /// # Errors
    /// Modules that do not pass the check, and an input that is not a JSON value the engine takes.
    pub fn of(
        modules: &BTreeMap<String, String>,
        input: &serde_json::Value,
        explain: bool,
    ) -> Result<Self, SandboxError> {
        let mut sandbox = Sandbox::new(modules)?;
        let (decision, delegations) = sandbox.decide(input)?;
        let explanation = match explain {
            false => None,
            true => Some(Explanation {
                coverage: sandbox.coverage(),
                layers: sandbox.explain(input)?,
                rules: sandbox.rules(modules, input)?,
            }),
        };
        Ok(Self { decision: Output::new(decision, delegations), explanation })
    }
}

/// What one layer finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name: the package of the library.
    #[serde(rename = "layer")]
    pub name: String,
    /// Why it refuses; empty where it does not.
    pub refuses: serde_json::Value,
    /// Why it asks for a person's agreement; empty where it does not.
    pub asks: serde_json::Value,
    /// What it looked at; null where there is nothing to say.
    pub found: serde_json::Value,
}

impl Sandbox {
    /// What each layer finds on an input. A layer that fails says so as its refusal: the decision then fails too.
    ///
    /// # Errors
    /// As for [`Sandbox::decide`].
    pub fn explain(&self, input: &serde_json::Value) -> Result<Vec<Layer>, SandboxError> {
        let input = Value::from_json_str(&input.to_string()).map_err(|error| SandboxError::Input(error.to_string()))?;
        let ask = |query: &str| match query {
            "" => serde_json::json!([]),
            query => self.query(query, &input),
        };
        let layer = |(name, refuses, asks, found): &(&'static str, &str, &str, &str)| Layer {
            name: (*name).to_owned(),
            refuses: ask(refuses),
            asks: ask(asks),
            found: ask(found),
        };
        Ok(LAYERS.iter().map(layer).collect())
    }

    fn query(&self, query: &str, input: &Value) -> serde_json::Value {
        let mut engine = self.engine.clone();
        engine.set_input(input.clone());
        engine::begin();
        engine.set_execution_timer_config(engine::timer(engine::BUDGET));
        let began = std::time::Instant::now();
        let found = engine.eval_query(query.to_owned(), false);
        let value =
            found.map(|found| found.result.into_iter().next().and_then(|row| row.expressions.into_iter().next()));
        match value {
            Ok(_) if began.elapsed() > engine::BUDGET => serde_json::json!(["the time was over"]),
            Ok(Some(expression)) => serde_json::to_value(&expression.value).unwrap_or_default(),
            Ok(None) => serde_json::Value::Null,
            Err(error) => serde_json::json!([error.to_string()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn input() -> Value {
        serde_saphyr::from_str(include_str!("../../cases/base.yaml")).unwrap()
    }

    fn layer(layers: &[Layer], name: &str) -> Layer {
        layers.iter().find(|layer| layer.name == name).unwrap().clone()
    }

    #[test]
    fn an_allowed_input_is_refused_by_no_layer() {
        let layers = Sandbox::new(&BTreeMap::new()).unwrap().explain(&input()).unwrap();
        for layer in &layers {
            assert_eq!((&layer.refuses, &layer.asks), (&json!([]), &json!([])), "{}", layer.name);
        }
        assert_eq!(layer(&layers, "scopes").found, json!({"needs": "case:write", "satisfied": true}));
    }

    #[test]
    fn the_layer_that_refuses_says_so_and_the_others_do_not() {
        let sandbox = Sandbox::new(&BTreeMap::new()).unwrap();
        let changes: [(&str, Value, &str, Value); 3] = [
            ("/principal/scopes", json!([]), "scopes", json!([{"code": "MissingScope", "detail": "case:write"}])),
            (
                "/principal/tenant",
                json!("tenant-8"),
                "tenants",
                json!([{"code": "TenantNotAdmitted", "detail": "tenant-8"}]),
            ),
            ("/principal/delegated", json!(true), "delegation", json!([{"code": "NoDelegation"}])),
        ];
        for (pointer, value, name, refuses) in changes {
            let mut input = input();
            *input.pointer_mut(pointer).unwrap() = value;
            let layers = sandbox.explain(&input).unwrap();
            assert_eq!(layer(&layers, name).refuses, refuses);
            for other in layers.iter().filter(|layer| layer.name != name) {
                assert_eq!(other.refuses, json!([]), "{name}: {}", other.name);
            }
        }
    }

    #[test]
    fn a_module_that_refuses_is_named_by_its_words() {
        let text = "package cotter.user.x\ndeny contains \"closed\"\nrequire_approval contains \"big\"\n";
        let modules = BTreeMap::from([("x.rego".to_owned(), text.to_owned())]);
        let layers = Sandbox::new(&modules).unwrap().explain(&input()).unwrap();
        let modules = layer(&layers, "modules");
        assert!(modules.refuses.to_string().contains("closed"), "{modules:?}");
        assert!(modules.asks.to_string().contains("big"), "{modules:?}");
    }
}
