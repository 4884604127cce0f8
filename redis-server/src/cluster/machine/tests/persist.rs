//! The file.

use super::*;

fn load(text: &str) -> Result<Machine, String> {
    Machine::new(settings(), [1, 2, 3, 4], Some(text), START).map_err(|error| error.to_string())
}

/// As Redis 7.0.15 and 7.2 write it.
#[test]
fn files_of_both_versions_come_back() {
    let (a, b, c) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
    let vars = "vars currentEpoch 7 lastVoteEpoch 6";
    let seven_0 = format!(
        "{a} 10.0.0.1:6379@16379 myself,master - 0 0 3 connected 0-5 7 [7->-{b}] [9-<-{b}]\n\
         {b} 10.0.0.2:7000@7001,host.b master,fail? - 0 0 7 disconnected 9 100-200\n\
         {c} fe80::1:6379@16379 slave,nofailover {b} 0 0 7 disconnected\n"
    );
    let machine = load(&format!("{seven_0}{vars}\n")).expect("a good file");
    let shard = machine.my_shard_id();
    assert_eq!(machine.saved_text(), format!("{seven_0}{vars} shardId {shard}\n"));
    let again = load(&machine.saved_text()).expect("a good file");
    assert_eq!((again.my_shard_id(), again.saved_text()), (shard, machine.saved_text()));

    let (s, t) = ("5".repeat(40), "6".repeat(40));
    let seven_2 = format!(
        "{a} 10.0.0.1:6379@16379,,shard-id={s} myself,master - 0 0 3 connected 0-5\n\
         {b} 10.0.0.2:7000@7001,host.b,nodename=bee,shard-id={t} master - 0 0 7 disconnected 9\n\
         {c} fe80::1:6379@16379,,shard-id={t} slave {b} 0 0 7 disconnected\n{vars}\n"
    );
    assert_eq!(load(&seven_2).expect("a good file").saved_text(), seven_2);
}

#[test]
fn damaged_files_are_refused() {
    let good = file('a');
    assert!(load(&good).is_ok());
    let check = |change: &dyn Fn(&str) -> String, expected: &str| {
        assert_eq!(load(&change(&good)).err().as_deref(), Some(expected));
    };
    let replace = |from: &'static str, to: &'static str| move |text: &str| text.replacen(from, to, 1);
    check(&replace("myself,", ""), "line 1: not exactly one node is this one");
    check(&replace(" slave ", " myself,slave "), "line 1: not exactly one node is this one");
    check(&replace("bbb", "xxx"), "line 2: a node's name is none");
    check(&replace("10-19", "10-16384"), "line 2: a slot is none");
    check(&replace("10-19", "9-19"), "line 2: a slot has two owners");
    check(&replace("10-19", "[10-x]"), "line 2: a slot is on no way");
    check(&replace("master", "master,new"), "line 1: an unknown flag");
    check(&replace("@16379", "@port"), "line 1: a port is no number");
    check(&replace("0 0 2", "0 0 x"), "line 2: an epoch is no number");
    check(&replace("currentEpoch 5", "currentEpoch"), "line 6: a variable has no value");
    check(&|text| text[..text.find("slave").expect("it is there")].to_owned(), "line 4: neither a node nor variables");
    check(&|text| format!("{text}\n{}", text.lines().nth(1).expect("it has two")), "line 8: a node has two lines");
    let unknown = |text: &str| text.replace(&format!("slave {}", "b".repeat(40)), &format!("slave {}", "9".repeat(40)));
    check(&unknown, "line 5: a node that is named has no line");
    let itself = |text: &str| text.replace(&format!("slave {}", "b".repeat(40)), &format!("slave {}", "e".repeat(40)));
    check(&itself, "line 5: a node follows itself");
}

/// Any cut of a file is refused or taken, and nothing else.
#[test]
fn cut_files() {
    let good = file('a');
    for end in 0..good.len() {
        let _ = load(&good[..end]);
    }
}

#[test]
fn a_new_node_saves_itself_first() {
    for saved in [None, Some(""), Some("\n")] {
        let mut machine = Machine::new(settings(), [1, 2, 3, 4], saved, START).expect("a new one");
        let Some(Action::Save { text, sync: true }) = machine.poll() else { panic!("it does not save itself") };
        assert_eq!(load(&text).expect("a good file").my_id(), machine.my_id());
    }
}

/// A replica goes on following after its restart.
#[test]
fn a_replica_follows_from_the_start() {
    let mut machine = Machine::new(settings(), [1; 4], Some(&file('d')), START).expect("a good file");
    let mut actions = Vec::new();
    while let Some(action) = machine.poll() {
        actions.push(action);
    }
    assert!(matches!(&actions[..], [Action::Route(_), Action::Follow { ip, port: 6379, .. }] if ip == "10.0.0.1"));
}
