//! What is listed is callable, and what is not listed does not exist: in generated worlds, for every caller and every tool.

use http::Method;
use serde_json::{Value, json};

use crate::{
    issuer::{ISSUER, claims},
    rig::{LEGACY, Rig, Told, initialize},
};

/// A small generator (xorshift64*): the same worlds in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }
}

const SCOPES: [&str; 3] = ["policy:read", "case:write", "case:admin"];
const TENANTS: [&str; 3] = ["tenant-7", "tenant-8", "*"];
const EFFECTS: [&str; 4] = ["Read", "Write", "Destructive", "External"];
const TOOLS: [&str; 4] = ["policy_lookup", "case_tag", "wipe_all", "no_such_tool"];

fn world(dice: &mut Dice, snapshot: &mut Value) {
    for tool in ["policy_lookup", "case_tag"] {
        snapshot["tools"][tool]["scope"] = json!(dice.pick(&SCOPES));
        snapshot["tools"][tool]["effect"] = json!(dice.pick(&EFFECTS));
        if dice.roll(6) == 0 {
            snapshot["tools"].as_object_mut().unwrap().remove(tool);
        }
        if dice.roll(5) == 0 {
            snapshot["pin"]["tools"][tool]["mismatched"] = json!(true);
        }
    }
    if dice.roll(3) == 0 {
        snapshot["tools"]["wipe_all"] = json!({"scope": dice.pick(&SCOPES), "effect": "Destructive"});
        snapshot["pin"]["onDrift"]["Added"] = json!(dice.pick(&["Quarantine", "Report"]));
    }
    snapshot["access"]["tenants"] = json!([dice.pick(&TENANTS), "tenant-7"]);
    let grants = (0..dice.roll(4).saturating_sub(1)).map(|number| {
        let mut grant = json!({
            "name": format!("grant-{number}"),
            "delegate": {"subject": {"issuer": ISSUER, "subject": dice.pick(&["alice", "bot"])}},
            "scopes": [dice.pick(&SCOPES), dice.pick(&SCOPES)], "effects": [dice.pick(&EFFECTS), dice.pick(&EFFECTS)],
            "tools": [[dice.pick(&["*", "case_*", "policy_lookup"])]], "tenants": [dice.pick(&["tenant-7", "tenant-7", "tenant-8"])],
            "expiresAt": dice.pick(&["2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z"]),
        });
        if dice.roll(4) == 0 {
            grant["inactive"] = json!("Suspended");
        }
        grant
    });
    snapshot["grants"] = grants.collect();
    if dice.roll(3) == 0 {
        let rule = "deny contains \"closed\" if input.tool.effect == \"Write\"";
        snapshot["policies"] = json!({"rules.rego": format!("package cotter.user.rules\n\n{rule}\n")});
    }
}

fn token(dice: &mut Dice, rig: &Rig) -> String {
    let mut claims = claims(&format!("{} {}", dice.pick(&SCOPES), dice.pick(&SCOPES)));
    claims["sub"] = json!(dice.pick(&["alice", "bob"]));
    claims["tenant"] = json!(dice.pick(&["tenant-7", "tenant-7", "tenant-7", "tenant-8"]));
    match dice.roll(8) {
        0 => drop(claims.as_object_mut().unwrap().remove("scope")),
        1 => claims["act"] = json!({"sub": "bot"}),
        _ => {}
    }
    rig.issuer.sign(&claims)
}

/// The names that an answer lists; `None` where the list was refused as a whole.
fn names(told: &Told) -> Option<Vec<String>> {
    let tools = told.json()["result"]["tools"].as_array()?.clone();
    Some(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
}

/// How often what came out, in both eras.
#[derive(Debug, Default)]
struct Tally {
    listed: usize,
    hidden: usize,
    refused: usize,
}

/// Where a caller speaks: by single requests, or in a session of its own.
struct Line<'a> {
    rig: &'a Rig,
    token: &'a str,
    session: Option<String>,
}

impl Line<'_> {
    async fn say(&self, method: &str, params: Value) -> Told {
        match &self.session {
            None => self.rig.modern(self.token, method, params).await,
            Some(session) => self.rig.legacy(self.token, session, method, params).await,
        }
    }

    async fn call(&self, tool: &str) -> Told {
        self.say("tools/call", json!({"name": tool, "arguments": {"topic": "refund"}})).await
    }

    /// Asks for the list and then for every tool; what it was listed.
    async fn agrees(&self, tally: &mut Tally) -> Option<Vec<String>> {
        let list = self.say("tools/list", json!({})).await;
        let unknown = self.call("no_such_tool").await;
        let names = names(&list);
        for tool in TOOLS {
            let told = self.call(tool).await;
            match &names {
                Some(names) if names.iter().any(|name| name == tool) => {
                    assert!(told.json()["result"].is_object(), "{tool} is listed: {told:?}");
                    tally.listed += 1;
                }
                Some(_) => {
                    assert_eq!(told.face(), unknown.face(), "{tool} is not listed");
                    assert_eq!(told.json()["error"]["message"], "Unknown tool");
                    tally.hidden += 1;
                }
                None => {
                    assert_eq!((told.status, &told.body), (list.status, &list.body), "{tool}");
                    tally.refused += 1;
                }
            }
        }
        names
    }
}

/// The same caller in a session of its own, where it gets one; it ends with the check.
async fn in_a_session(rig: &Rig, token: &str, tally: &mut Tally) -> Option<Vec<String>> {
    let opened = rig.post(token, &[], &initialize(LEGACY)).await;
    let session = opened.header("mcp-session-id")?.to_owned();
    let line = Line { rig, token, session: Some(session.clone()) };
    let names = line.agrees(tally).await;
    let bearer = format!("Bearer {token}");
    let end = [("authorization", bearer.as_str()), ("mcp-session-id", session.as_str())];
    assert_eq!(rig.send(Method::DELETE, "/mcp", &end, "").await.status, 200);
    names
}

#[tokio::test]
async fn list_and_call_agree_in_both_eras() {
    let rig = Rig::start().await;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut modern, mut legacy) = (Tally::default(), Tally::default());
    for generation in 2..82 {
        rig.enforce(|snapshot| {
            world(&mut dice, snapshot);
            snapshot["generation"] = json!(generation);
        })
        .await;
        for _ in 0..3 {
            let token = token(&mut dice, &rig);
            let line = Line { rig: &rig, token: &token, session: None };
            let alone = line.agrees(&mut modern).await;
            assert_eq!(
                in_a_session(&rig, &token, &mut legacy).await,
                alone,
                "a session shows what single requests show"
            );
        }
    }
    let sides = [modern.listed, modern.hidden, modern.refused, legacy.listed, legacy.hidden];
    assert!(sides.iter().all(|times| *times > 60), "the worlds differ: {modern:?} {legacy:?}");
}

/// A session that is open while the rules change shows and permits what the new rules say, tool by tool.
#[tokio::test]
async fn an_open_session_follows_every_change() {
    let rig = Rig::start().await;
    let mut dice = Dice(0x0123_4567_89ab_cdef);
    let token = rig.issuer.token("policy:read case:write");
    let session = rig.session(&token).await;
    let line = Line { rig: &rig, token: &token, session: Some(session) };
    let single = Line { rig: &rig, token: &token, session: None };
    let (mut seen, mut tally) = (Vec::new(), Tally::default());
    for generation in 2..32 {
        rig.enforce(|snapshot| {
            world(&mut dice, snapshot);
            snapshot["generation"] = json!(generation);
        })
        .await;
        let names = line.agrees(&mut tally).await;
        assert_eq!(names, single.agrees(&mut tally).await, "generation {generation}");
        seen.push(names);
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 3 && tally.listed > 20 && tally.hidden > 20 && tally.refused > 8, "{seen:?} {tally:?}");
}
