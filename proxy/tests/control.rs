//! The sidecar's side of the snapshot stream, against an operator in this process: real TLS, real lines, and the ways in which
//! an operator can be wrong or away.

#[cfg(test)]
#[path = "control/operator.rs"]
mod operator;

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use cotter_core::{report::Report, snapshot::Sealed};
    use cotter_proxy::{
        contact::Contact,
        control::{self, Operator},
        ledger::{Budgets, Ledger},
    };
    use serde_json::json;
    use tokio::{sync::watch, task::JoinSet};
    use tokio_util::sync::CancellationToken;

    use crate::operator::{Fake, report, snapshot};

    const PATIENCE: Duration = Duration::from_secs(20);

    struct Sidecar {
        snapshots: watch::Receiver<Option<Sealed>>,
        reports: watch::Sender<Option<Arc<Report>>>,
        ledger: Arc<Ledger>,
        contact: Contact,
        token: tempfile::NamedTempFile,
        end: CancellationToken,
        tasks: JoinSet<()>,
    }

    impl Sidecar {
        fn follow(fake: &Fake) -> Self {
            let token = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(token.path(), "first\n").unwrap();
            let (sender, snapshots) = watch::channel(None);
            let (reports, receiver) = watch::channel(None);
            let ledger = Arc::new(Ledger::governed());
            let (contact, end) = (Contact::default(), CancellationToken::new());
            let operator = Operator {
                url: fake.url(),
                ca: fake.ca.clone(),
                token_file: token.path().to_owned(),
                server: serde_json::from_value(json!({"namespace": "support", "name": "support"})).unwrap(),
            };
            let tasks = control::start(operator, sender, receiver, Arc::clone(&ledger), contact.clone(), &end).unwrap();
            Self { snapshots, reports, ledger, contact, token, end, tasks }
        }

        async fn holds(&mut self, sealed: &Sealed) {
            let digest = sealed.digest();
            let held = self.snapshots.wait_for(|held| held.as_ref().is_some_and(|held| held.digest() == digest));
            tokio::time::timeout(PATIENCE, held).await.expect("the snapshot arrives").unwrap();
        }

        async fn end(mut self) {
            self.end.cancel();
            let ended = async { while self.tasks.join_next().await.is_some() {} };
            tokio::time::timeout(PATIENCE, ended).await.expect("everything ends");
        }
    }

    #[tokio::test]
    async fn snapshots_come_down_and_reports_go_up() {
        let mut fake = Fake::start().await;
        let mut sidecar = Sidecar::follow(&fake);
        let (one, two) = (snapshot(1), snapshot(2));
        fake.say(&one);
        sidecar.holds(&one).await;
        sidecar.reports.send_replace(Some(Arc::new(report(&one))));
        assert_eq!(fake.reported().await["enforced"], one.digest().to_string());
        fake.say_text("{}");
        fake.say(&two);
        sidecar.holds(&two).await;
        assert!(sidecar.contact.silence() < Duration::from_secs(10));
        assert_eq!(fake.heard().0, "/v1/namespaces/support/servers/support/snapshots");
        sidecar.end().await;
    }

    /// Charges go up by themselves, and again with each stream; what others charged comes down, before any snapshot.
    #[tokio::test]
    async fn what_is_charged_goes_up_and_what_others_charged_comes_down() {
        let mut fake = Fake::start().await;
        let sidecar = Sidecar::follow(&fake);
        let mut value = serde_json::to_value(snapshot(1).snapshot().as_ref()).unwrap();
        value["grants"] = json!([{
            "name": "triage", "delegate": {"claims": {"team": "desk"}}, "scopes": [], "effects": [], "tools": [], "tenants": [],
            "expiresAt": "2099-01-01T00:00:00Z", "budgets": [{"name": "triage", "uid": "u1", "calls": 10}],
        }]);
        let budgets = Budgets::of(&serde_json::from_value(value).unwrap());
        let charge = || sidecar.ledger.charge(&budgets, "triage", sidecar.contact.silence());
        assert!(charge().is_err(), "nobody told what was charged elsewhere");
        fake.say_text(r#"{"budgets":{"u1":{"elsewhere":8,"recent":0,"sidecars":1,"place":0}}}"#);
        let told = async {
            while charge().is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, told).await.expect("what was charged elsewhere comes down");
        let run = sidecar.ledger.run().to_owned();
        assert_eq!(fake.charged().await, json!({"run": run, "made": 1, "charged": {"u1": 1}}));
        assert!(charge().is_ok() && charge().is_err(), "8 elsewhere and 2 here");
        let told_all = tokio::time::timeout(PATIENCE, sidecar.ledger.told_all());
        told_all.await.expect("a sidecar that is told to stop knows when everything was accepted");
        assert_eq!(fake.charged().await["charged"]["u1"], 2);
        fake.hang_up().await;
        assert_eq!(fake.charged().await["charged"]["u1"], 2, "told again on connect");
        assert_eq!(fake.runs(), [run.clone(), run]);
        sidecar.end().await;
    }

    /// After a break the stream is opened again, with the token of that moment, and the report is sent again.
    #[tokio::test]
    async fn a_broken_stream_is_opened_again() {
        let mut fake = Fake::start().await;
        let mut sidecar = Sidecar::follow(&fake);
        let (one, two) = (snapshot(1), snapshot(2));
        fake.say(&one);
        sidecar.holds(&one).await;
        sidecar.reports.send_replace(Some(Arc::new(report(&one))));
        fake.reported().await;
        std::fs::write(sidecar.token.path(), "second").unwrap();
        fake.hang_up().await;
        fake.say(&two);
        sidecar.holds(&two).await;
        assert_eq!(fake.heard().1, "Bearer second");
        assert_eq!(fake.reported().await["enforced"], one.digest().to_string(), "the state of the world, on connect");
        sidecar.end().await;
    }

    #[tokio::test]
    async fn a_line_that_is_wrong_changes_nothing() {
        let fake = Fake::start().await;
        let mut sidecar = Sidecar::follow(&fake);
        let (one, two, three) = (snapshot(1), snapshot(2), snapshot(3));
        fake.say(&one);
        sidecar.holds(&one).await;
        for wrong in [
            format!(r#"{{"digest":"{}","snapshot":{}}}"#, one.digest(), two.bytes()),
            format!(r#"{{"snapshot":{}}}"#, two.bytes()),
            format!(r#"{{"digest":"{}","snapshot":{{}}}}"#, cotter_core::snapshot::Digest::of(b"{}")),
            "garbage".to_owned(),
        ] {
            fake.until_another_stream(|| fake.say_text(&wrong)).await;
            assert_eq!(sidecar.snapshots.borrow().as_ref().unwrap().digest(), one.digest(), "{wrong}");
        }
        fake.say(&three);
        sidecar.holds(&three).await;
        sidecar.end().await;
    }

    /// An operator whose certificate another authority signed is not the operator.
    #[tokio::test]
    async fn a_stranger_is_not_the_operator() {
        let (real, mut stranger) = (Fake::start().await, Fake::start().await);
        stranger.ca.clone_from(&real.ca);
        let sidecar = Sidecar::follow(&stranger);
        stranger.say(&snapshot(1));
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert!(sidecar.snapshots.borrow().is_none() && stranger.never_heard());
        sidecar.end().await;
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_said_at_once() {
        let fake = Fake::start().await;
        for (url, ca) in [("http://operator", fake.ca.as_str()), (&fake.url(), ""), (&fake.url(), "no certificate")] {
            let operator = Operator {
                url: url.to_owned(),
                ca: ca.to_owned(),
                token_file: "/nowhere".into(),
                server: serde_json::from_value(json!({"namespace": "support", "name": "support"})).unwrap(),
            };
            let (sender, _snapshots) = watch::channel(None);
            let (_reports, receiver) = watch::channel(None);
            let started = control::start(
                operator,
                sender,
                receiver,
                Arc::new(Ledger::governed()),
                Contact::default(),
                &CancellationToken::new(),
            );
            assert!(started.is_err(), "{url} {ca}");
        }
    }
}
