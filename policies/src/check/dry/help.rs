//! What to write where a rule fails on an input: which member of it has another type than the rule takes it for, and the test to put
//! before the line.

use serde_json::Value;

/// How the engine calls a type, how it is called here, and its test.
const TYPES: [(&str, &str, &str); 7] = [
    ("string", "text", "is_string"),
    ("numeric", "number", "is_number"),
    ("number", "number", "is_number"),
    ("array", "list", "is_array"),
    ("set", "list", "is_set"),
    ("object", "object", "is_object"),
    ("bool", "boolean", "is_boolean"),
];
/// Members that are told.
const TOLD: usize = 3;
/// Characters of a value that are shown.
const SHOWN: usize = 40;

/// What a person is told of a line that fails on an input.
pub(super) fn guard(line: &str, said: &str, input: &Value) -> String {
    let wanted = wanted(said);
    let mut members = members(line, input);
    if let Some((is, _)) = wanted
        && members.iter().any(|(_, value)| kind(value).0 != is)
    {
        members.retain(|(_, value)| kind(value).0 != is);
    }
    let test = wanted.map_or("is_string, is_number, …", |(_, test)| test);
    let Some((first, value)) = members.first() else {
        return format!(
            "a rule that fails refuses the request: test the type in the rule, before this line ({test}), or name a member of it"
        );
    };
    let told: Vec<String> =
        members.iter().take(TOLD).map(|(path, value)| format!("{path} is {} there", kind(value).1)).collect();
    let before = match (value, wanted) {
        (Value::Object(members), _) if !members.is_empty() => {
            let names: Vec<String> = members.keys().take(TOLD).map(|name| format!("{first}.{name}")).collect();
            let test = wanted.map_or("is_string", |(_, test)| test);
            format!("name a member of it ({}), or write {test}({first}) before this line", names.join(", "))
        }
        (_, Some((_, test))) => format!("write {test}({first}) before this line"),
        (Value::String(_), None) if said.contains("as number") => {
            format!("write regex.match(`^[0-9]+$`, {first}) before this line")
        }
        (_, None) => format!("test {first} before this line ({test})"),
    };
    format!("{}: {before}; a rule that fails refuses the request", told.join(", "))
}

/// What the engine says that a function takes: the type, and its test.
fn wanted(said: &str) -> Option<(&'static str, &'static str)> {
    let said = said.split("expects").nth(1)?;
    let first = TYPES.iter().filter_map(|(word, is, test)| Some((said.find(word)?, (*is, *test))));
    first.min_by_key(|(at, _)| *at).map(|(_, wanted)| wanted)
}

/// The members of the input that a line names and that are there, each once.
fn members<'a>(line: &str, input: &'a Value) -> Vec<(String, &'a Value)> {
    let mut found: Vec<(String, &Value)> = Vec::new();
    for (at, _) in line.match_indices("input.") {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if line.get(..at).and_then(|before| before.chars().next_back()).is_some_and(is_name) {
            continue;
        }
        let rest = line.get(at..).unwrap_or_default();
        let path = rest.split(|c: char| !is_name(c)).next().unwrap_or_default().trim_end_matches('.');
        let value = path.split('.').skip(1).try_fold(input, |value, name| value.get(name));
        if let Some(value) = value.filter(|_| found.iter().all(|(known, _)| known != path)) {
            found.push((path.to_owned(), value));
        }
    }
    found
}

/// The type of a value, and how it is told.
fn kind(value: &Value) -> (&'static str, String) {
    let shown = || value.to_string().chars().take(SHOWN).collect::<String>();
    match value {
        Value::Null => ("null", "null".to_owned()),
        Value::Bool(_) => ("boolean", shown()),
        Value::Number(_) => ("number", format!("the number {}", shown())),
        Value::String(_) => ("text", format!("the text {}", shown())),
        Value::Array(_) => ("list", "a list".to_owned()),
        Value::Object(_) => ("object", "an object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_member_of_another_type_is_named_with_its_test() {
        let input = json!({"principal": {"subject": "mia", "actor": {"issuer": "i", "subject": "bot"}}, "args": {"n": "seven"}});
        let said = "`startswith` expects string argument. Got `{}` instead";
        let line = "\tstartswith(input.principal.actor, input.principal.subject)";
        assert_eq!(
            guard(line, said, &input),
            "input.principal.actor is an object there: name a member of it (input.principal.actor.issuer, input.principal.actor.subject), or write is_string(input.principal.actor) before this line; a rule that fails refuses the request"
        );
        let said = guard("to_number(input.args.n) > 1", "could not parse string as number", &input);
        assert!(
            said.starts_with(
                "input.args.n is the text \"seven\" there: write regex.match(`^[0-9]+$`, input.args.n) before this line"
            ),
            "{said}"
        );
        assert!(guard("startswith(actor, \"x\")", said.as_str(), &input).contains("test the type in the rule"));
    }
}
