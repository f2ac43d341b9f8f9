//! Conversations with servers that misbehave.

mod http;
mod stdio;

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

const PATIENT: Duration = Duration::from_secs(10);

/// Calls a tool with these arguments, with a bound of 64 KiB.
async fn call(conversation: &Conversation, arguments: &str) -> Result<Answer, CallError> {
    call_within(conversation, arguments, PATIENT).await
}

async fn call_within(conversation: &Conversation, arguments: &str, deadline: Duration) -> Result<Answer, CallError> {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let call = Call { arguments: Some(&arguments), meta: None, deadline, result_bytes: 64 * 1024 };
    conversation.send("case_tag", call, None).await
}

fn result(answer: Result<Answer, CallError>) -> Value {
    match answer {
        Ok(Answer::Result(bytes)) => serde_json::from_slice(&bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}
