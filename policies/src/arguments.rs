//! The arguments of a call, as far as a rule set reads them.

use cotter_core::{
    fingerprint::canonical,
    reason::DenyReason,
    snapshot::Digest,
    strict::{self, Limits},
};
use regorus::Value;

use crate::{
    answer::bounded,
    engine::EvalError,
    exact::{self, Need},
    reads::Reads,
    value::text,
};

/// What is called where the caller sent no arguments.
const NONE: &str = "{}";

/// Arguments and their digest, each where it is read.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) value: Option<Value>,
    pub(crate) digest: Option<Value>,
}

impl Arguments {
    /// Reads the arguments of a call. Those that a caller did not send are empty.
    ///
    /// # Errors
    /// `ArgumentsNotExact` with the JSON pointer of the number; `PolicyError` for what is not JSON.
    pub(crate) fn read(raw: Option<&str>, reads: &Reads) -> Result<Self, EvalError> {
        let raw = raw.unwrap_or(NONE);
        let value = reads.arguments().then(|| value(raw)).transpose()?;
        let digest = reads.arguments_digest().then(|| digest(raw)).transpose()?;
        Ok(Self { value, digest: digest.map(|digest| text(&digest.to_string())) })
    }
}

fn value(raw: &str) -> Result<Value, EvalError> {
    // First the number: one that no double holds is not JSON to the engine.
    exact(raw, Need::Rules)?;
    Value::from_json_str(raw).map_err(unread)
}

fn digest(raw: &str) -> Result<Digest, EvalError> {
    exact(raw, Need::Digest)?;
    let value = strict::parse(raw.as_bytes(), Limits::default()).map_err(unread)?;
    canonical(&value).map(|bytes| Digest::of(&bytes)).map_err(unread)
}

fn exact(raw: &str, need: Need) -> Result<(), EvalError> {
    let code = DenyReason::ArgumentsNotExact;
    exact::inexact(raw, need).map_or(Ok(()), |pointer| Err(EvalError { code, message: bounded(&pointer) }))
}

fn unread(error: impl std::fmt::Display) -> EvalError {
    EvalError { code: DenyReason::PolicyError, message: format!("failed to read the arguments: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: Reads = Reads {
        whole: false,
        args: false,
        digest: true,
        annotations: false,
        now: false,
        history: false,
        operation: false,
    };

    fn digest_of(raw: Option<&str>) -> String {
        Arguments::read(raw, &DIGEST).unwrap().digest.unwrap().as_string().unwrap().to_string()
    }

    #[test]
    fn one_digest_is_one_meaning() {
        let digest = digest_of(Some(r#"{"a":1,"b":[2.50,"é"]}"#));
        assert_eq!(digest, "sha256:993a596f85e69c98594dbfaf7b03559ee8fd37252a1e46bbf131267d3daad9be");
        assert_eq!(digest, digest_of(Some("{ \"b\": [25e-1, \"\\u00e9\"],\n\"a\": 1.0}")));
        assert_ne!(digest, digest_of(Some(r#"{"a":1,"b":["é",2.5]}"#)));
    }

    #[test]
    fn no_arguments_are_empty_arguments() {
        assert_eq!(digest_of(None), digest_of(Some(" { } ")));
        assert_eq!(digest_of(None), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        let read = Arguments::read(None, &Reads { args: true, ..DIGEST }).unwrap();
        assert_eq!(read.value, Some(Value::new_object()));
    }

    #[test]
    fn what_is_not_read_is_not_looked_at() {
        let read = Arguments::read(Some("{\"a\":1e400}"), &Reads::default()).unwrap();
        assert!(read.value.is_none() && read.digest.is_none());
    }

    #[test]
    fn a_number_without_a_canonical_form_has_no_digest_and_may_still_be_compared() {
        let raw = Some("{\"ids\":[9007199254740993]}");
        let refused = Arguments::read(raw, &DIGEST).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (DenyReason::ArgumentsNotExact, "/ids/0"));
        assert!(Arguments::read(raw, &Reads { args: true, digest: false, ..DIGEST }).is_ok());
    }
}
