//! With Valkey, both ways: `VALKEY_SERVER` names the program.

use super::*;

fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Commands that both know; their expiry is looked at by other means than a digest, which Valkey has its own way of.
fn fill(client: &mut Client, seed: u64) {
    write(client, seed, COMMANDS, &AtomicBool::new(false));
}

/// Every key of one is there in the other, with the same value.
fn compare(ours: &mut Client, theirs: &mut Genuine) {
    for db in ["0", "1"] {
        ours.ask(&format!("SELECT {db}"));
        theirs.ask(&["SELECT", db]);
        let Value::Array(keys) = ours.ask("KEYS *") else { panic!("no keys") };
        for key in keys.iter().map(Value::text) {
            let (here, there) =
                (ours.ask(&format!("DEBUG DIGEST-VALUE {key}")), theirs.ask(&["DEBUG", "DIGEST-VALUE", &key]));
            assert_eq!(here, there, "{key} of database {db}");
        }
        until("as many keys", || ours.ask("DBSIZE") == theirs.ask(&["DBSIZE"]));
    }
}

#[test]
fn valkey_follows_ours() {
    for diskless in ["yes", "no"] {
        let folder = std::env::temp_dir().join(format!("valkey-primary-{}-{diskless}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let first = primary(&[("repl-diskless-sync", diskless), ("dir", folder.to_str().unwrap())]);
        fill(&mut first.connect(), 900);
        let Some(mut valkey) = Genuine::valkey(&[]) else { return };
        valkey.ask(&["REPLICAOF", "127.0.0.1", &first.addr.port().to_string()]);
        until("the link is up", || is_up(&mut valkey));
        fill(&mut first.connect(), 901);
        let mut client = first.connect();
        until("it is cut off", || client.ask("CLIENT KILL TYPE replica") == Value::Int(1));
        fill(&mut first.connect(), 902);
        until("it is back", || field(&client.ask("INFO stats"), "sync_partial_ok") == "1");
        client.ask("SET last one");
        assert_eq!(client.ask("WAIT 1 20000"), Value::Int(1));
        compare(&mut client, &mut valkey);
        // A chain of three: ours follows it.
        let third = Replica::of(valkey.listen().port(), &format!("behind-valkey-{diskless}"));
        until("the link is up", || third.is_up());
        // It has looked at another database last.
        client.ask("SELECT 0");
        client.ask("SET last two");
        until("the third has it", || third.server.connect().ask("GET last") == Value::Bulk(b"two".to_vec()));
        assert_eq!(third.server.connect().ask("DEBUG DIGEST"), first.connect().ask("DEBUG DIGEST"));
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn ours_follows_valkey() {
    for diskless in ["yes", "no"] {
        for load in ["disabled", "swapdb"] {
            let pairs = [("repl-diskless-sync", diskless), ("repl-diskless-sync-delay", "0")];
            let Some(mut valkey) = Genuine::valkey(&settings(&pairs)) else { return };
            let addr = valkey.listen();
            fill(&mut Client::connect(addr), 910);
            let replica = Replica::of(addr.port(), &format!("of-valkey-{diskless}-{load}"));
            replica.server.connect().ask(&format!("CONFIG SET repl-diskless-load {load}"));
            until("the link is up", || replica.is_up());
            fill(&mut Client::connect(addr), 911);
            until("it is among the clients", || valkey.ask(&["CLIENT", "KILL", "TYPE", "replica"]) == Value::Int(1));
            fill(&mut Client::connect(addr), 912);
            replica.reaches(offset_of(&mut valkey));
            compare(&mut replica.server.connect(), &mut valkey);
            assert_eq!(field(&valkey.ask(&["INFO", "stats"]), "sync_partial_ok"), "1");
            // It is promoted, and Valkey follows it without a snapshot.
            replica.server.connect().ask("REPLICAOF NO ONE");
            valkey.ask(&["REPLICAOF", "127.0.0.1", &replica.server.addr.port().to_string()]);
            until("the link is up", || is_up(&mut valkey));
            assert_eq!(field(&replica.server.connect().ask("INFO stats"), "sync_full"), "0");
        }
    }
}
