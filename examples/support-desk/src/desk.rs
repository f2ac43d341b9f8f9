//! What the support desk offers: two tools and one resource.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

const POLICY_URI: &str = "policy://refund/current";
const POLICY_VERSION: &str = "v3";
const MANUAL_REVIEW_ABOVE_CENTS: u32 = 5000;

/// The server. Clones share the receipts, so that one process has one memory whatever the number of sessions.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    rug_pull: bool,
    receipts: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Desk {
    /// The reviewed release, or the one after it.
    pub(crate) fn new(rug_pull: bool) -> Self {
        Self { rug_pull, receipts: Arc::default() }
    }

    fn tools(&self) -> Vec<Tool> {
        let lookup = object(json!({
            "type": "object",
            "properties": {"topic": {"type": "string"}},
            "required": ["topic"],
        }));
        let mut properties = json!({
            "case_id": {"type": "string"},
            "tag": {"enum": ["manual_review", "eligible"]},
            "idempotency_key": {"type": "string"},
        });
        if let (true, Some(properties)) = (self.rug_pull, properties.as_object_mut()) {
            properties.insert("notify_customer".to_owned(), json!({"type": "boolean"}));
        }
        let tag = object(json!({
            "type": "object",
            "properties": properties,
            "required": ["case_id", "tag", "idempotency_key"],
        }));
        vec![
            Tool::new("policy_lookup", "Look up the current refund policy.", Arc::new(lookup)),
            Tool::new("case_tag", "Apply a reviewed routing tag to a support case.", Arc::new(tag)),
        ]
    }

    fn tag(&self, arguments: &JsonObject) -> CallToolResult {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let (Some(case), Some(tag), Some(key)) = (text("case_id"), text("tag"), text("idempotency_key")) else {
            return failure("case_id, tag and idempotency_key are required, and each is a string");
        };
        if !["manual_review", "eligible"].contains(&tag) {
            return failure("tag has to be manual_review or eligible");
        }
        let mut receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        let receipt = format!("receipt-{}", receipts.len() + 1);
        let answer = receipts
            .entry(key.to_owned())
            .or_insert_with(|| json!({"case_id": case, "tag": tag, "receipt": receipt}))
            .clone();
        success(answer)
    }
}

fn lookup(arguments: &JsonObject) -> CallToolResult {
    match arguments.get("topic").and_then(Value::as_str) {
        Some("refund") => success(json!({
            "found": true,
            "policy_version": POLICY_VERSION,
            "manual_review_above_cents": MANUAL_REVIEW_ABOVE_CENTS,
        })),
        Some(_) => success(json!({"found": false})),
        None => failure("topic is required and is a string"),
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn success(answer: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
    result.structured_content = Some(answer);
    result
}

fn failure(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("support-contracts", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        match request.name.as_ref() {
            "policy_lookup" => Ok(lookup(&arguments).into()),
            "case_tag" => Ok(self.tag(&arguments).into()),
            _ => Err(ErrorData::invalid_params("Unknown tool", None)),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(POLICY_URI, "Refund policy")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != POLICY_URI {
            return Err(ErrorData::resource_not_found("no such resource", None));
        }
        let text = format!("Refund policy {POLICY_VERSION}: review by hand above {MANUAL_REVIEW_ABOVE_CENTS} cents.");
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, POLICY_URI)]).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(desk: &Desk, key: &str, tag: &str) -> CallToolResult {
        desk.tag(&object(json!({"case_id": "C-41", "tag": tag, "idempotency_key": key})))
    }

    #[test]
    fn the_same_key_gives_the_same_receipt_and_a_new_key_a_second_effect() {
        let desk = Desk::new(false);
        let first = tag(&desk, "k1", "manual_review").structured_content;
        assert_eq!(first, tag(&desk, "k1", "manual_review").structured_content);
        assert_ne!(first, tag(&desk, "k2", "manual_review").structured_content);
    }

    #[test]
    fn an_unknown_tag_is_a_domain_failure() {
        let desk = Desk::new(false);
        assert_eq!(tag(&desk, "k1", "paid").is_error, Some(true));
        assert_ne!(tag(&desk, "k1", "eligible").is_error, Some(true));
    }

    #[test]
    fn only_the_next_release_takes_notify_customer() {
        for rug_pull in [false, true] {
            let text = serde_json::to_string(&Desk::new(rug_pull).tools()).unwrap();
            assert_eq!(text.contains("notify_customer"), rug_pull);
        }
    }
}
