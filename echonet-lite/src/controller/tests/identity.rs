//! Nodes that change their addresses, and requests that are for one node only.

use std::borrow::ToOwned;
use std::string::ToString;
use std::vec;

use super::*;

const OTHER: &str = "192.0.2.8";
const DIVERTED: &str = "not sent: another node has the address";

fn number(last: &str) -> String {
    format!("83 11 FE000077000000000000000000000000{last}")
}

/// Nodes at addresses, which answer what the controller asks: by address, the end of the number (or none) and the objects.
struct Home<'a>(Vec<(&'a str, &'a str, &'a str)>);

impl Home<'_> {
    /// Answers everything that is asked until nothing more is; returns what was written where.
    fn answer(&self, table: &mut Table) -> Vec<String> {
        let mut written = Vec::new();
        loop {
            let sent = table.sent();
            if sent.is_empty() {
                return written;
            }
            for frame in sent {
                let words: Vec<_> = frame.split(' ').collect();
                let Some((_, id, list)) = self.0.iter().find(|(addr, ..)| *addr == words[0]) else { continue };
                let (eoj, service) = words[2][1..].split_at(6);
                let answer = match (eoj, service.get(..2).unwrap()) {
                    ("0EF001", "62") => profile(service, id, list),
                    (_, "62") => "72 03 9D 01 00 9E 01 00 9F 01 00".to_owned(),
                    (_, "61") => {
                        written.push(format!("{} {eoj}", words[0]));
                        "71 01 80 00".to_owned()
                    }
                    _ => panic!("{frame}"),
                };
                table.comes(words[0], &format!("{} {eoj} C {answer}", words[1]));
            }
        }
    }
}

/// The answer of a node profile: `asked` is the service, the count and the properties.
fn profile(asked: &str, id: &str, list: &str) -> String {
    let epcs = asked.as_bytes()[4..].chunks(4).map(|epc| std::str::from_utf8(&epc[..2]).unwrap());
    let objects = format!("{:02X} {:02X} {list}", 1 + list.len() / 2, list.len() / 6);
    let mut esv = "72";
    let told: Vec<_> = epcs
        .map(|epc| match epc {
            "82" => "82 04 010E0100".to_owned(),
            "83" if !id.is_empty() => number(id),
            "8A" => "8A 03 000077".to_owned(),
            "D3" => format!("D3 03 {:06X}", list.len() / 6),
            "D6" => format!("D6 {objects}"),
            "9D" | "9E" | "9F" => format!("{epc} 01 00"),
            _ => {
                esv = "52";
                format!("{epc} 00")
            }
        })
        .collect();
    format!("{esv} {:02X} {}", told.len(), told.join(" "))
}

fn announces(table: &mut Table, addr: &str, tid: &str, list: &str) {
    let objects = format!("{:02X} {:02X} {list}", 1 + list.len() / 2, list.len() / 6);
    table.comes(addr, &format!("{tid} 0EF001 0EF001 73 01 D5 {objects}"));
}

fn known(table: &Table, addr: &str) -> Option<NodeId> {
    table.controller.node(node(addr)).unwrap().id()
}

/// The nodes' news, without notifications.
fn news(table: &mut Table) -> Vec<String> {
    let told = table.told().into_iter();
    told.filter(|told| ["ready", "replaced", "moved"].iter().any(|word| told.starts_with(word))).collect()
}

/// Two lights that are known.
fn two_lights() -> Table {
    let mut table = Table::new(Config::new(1));
    announces(&mut table, NODE, "0A01", "029001");
    announces(&mut table, OTHER, "0B01", "029001");
    Home(vec![(NODE, "AA", "029001"), (OTHER, "BB", "029001")]).answer(&mut table);
    assert_eq!(news(&mut table), [format!("ready {NODE}"), format!("ready {OTHER}")]);
    table
}

#[test]
fn two_nodes_that_swap_their_addresses_are_told_apart() {
    for announced in [&[NODE, OTHER][..], &[OTHER, NODE], &[OTHER]] {
        let mut table = two_lights();
        let [first, second] = [NODE, OTHER].map(|addr| known(&table, addr).unwrap());
        table.wait(seconds(60));
        let home = Home(vec![(NODE, "BB", "029001"), (OTHER, "AA", "029001")]);
        for addr in announced {
            announces(&mut table, addr, "0001", "029001");
            assert!(!table.controller.node(node(addr)).unwrap().is_ready, "who is at {addr} is not certain");
        }
        // One of them asks after the other's address, too.
        home.answer(&mut table);
        let told = news(&mut table);
        for addr in [NODE, OTHER] {
            assert!(told.contains(&format!("replaced {addr}")), "{announced:?}: {told:?}");
            assert!(told.contains(&format!("ready {addr}")), "{announced:?}: {told:?}");
        }
        assert_eq!([known(&table, OTHER), known(&table, NODE)], [Some(first), Some(second)]);
    }
}

#[test]
fn a_new_node_at_a_known_address_has_nothing_of_the_old_one() {
    let mut table = two_lights();
    table.wait(seconds(60));
    announces(&mut table, NODE, "0001", "013001");
    Home(vec![(NODE, "CC", "013001"), (OTHER, "BB", "029001")]).answer(&mut table);
    assert_eq!(news(&mut table), [format!("replaced {NODE}"), format!("ready {NODE}")]);
    let info = table.controller.node(node(NODE)).unwrap();
    assert_eq!(info.objects.iter().map(|object| object.eoj).collect::<Vec<_>>(), [Eoj::new(1, 0x30, 1)]);
    assert_eq!(info.id().unwrap().to_string(), "fe000077000000000000000000000000cc");
}

#[test]
fn requests_for_one_node_reach_no_other_node() {
    let write = [(0x80, &[0x30][..])];
    let request = |table: &mut Table, id| {
        let request = Request::set(LIGHT, &write).only_to(id);
        table.controller.request(table.now, node(NODE), &request).unwrap();
    };
    // No message says that anything has changed.
    let mut table = two_lights();
    let id = known(&table, NODE).unwrap();
    request(&mut table, id);
    let home = Home(vec![(NODE, "AA", "029001")]);
    assert_eq!(home.answer(&mut table), [format!("{NODE} 029001")]);
    assert!(table.told()[0].ends_with(" 192.0.2.7 029001 80 written"));
    request(&mut table, id);
    let swapped = Home(vec![(NODE, "BB", "029001"), (OTHER, "AA", "029001")]);
    assert_eq!(swapped.answer(&mut table), Vec::<String>::new());
    let told = table.told();
    assert!(told.iter().any(|told| told.ends_with(DIVERTED)), "{told:?}");
    assert!(told.contains(&format!("replaced {NODE}")), "{told:?}");
    // A node that lost its number is another node; a node that answers nothing is none.
    let mut table = two_lights();
    request(&mut table, id);
    let numberless = Home(vec![(NODE, "", "029001")]);
    assert_eq!(numberless.answer(&mut table), Vec::<String>::new());
    let told = table.told();
    assert!(told.iter().any(|told| told.ends_with(DIVERTED)), "{told:?}");
    let mut table = two_lights();
    request(&mut table, id);
    // The questions who is there are sent first: before that the controller waits for no time.
    for _ in 0..100 {
        assert!(table.sent().iter().all(|sent| sent.ends_with("0EF00162018300")));
        if table.controller.poll_timeout().is_none() {
            break;
        }
        table.wait_for_timeout();
    }
    let told = table.told();
    assert!(told.iter().any(|told| told.contains("the node answers nothing")), "{told:?}");
}

#[test]
fn queued_writes_fail_when_nodes_swap_addresses() {
    let mut table = two_lights();
    let id = known(&table, NODE).unwrap();
    // A question that is not answered yet holds everything else up.
    table.request(&Request::get(LIGHT, &[0xB0]));
    let question = table.sent().pop().unwrap();
    let writes: [&[(u8, &[u8])]; 2] = [&[(0x80, &[0x30])], &[(0x80, &[0x31])]];
    for write in writes {
        table.controller.request(table.now, node(NODE), &Request::set(LIGHT, write).only_to(id)).unwrap();
    }
    announces(&mut table, NODE, "0001", "029001");
    let tid = question.split(' ').nth(1).unwrap().to_owned();
    table.comes(NODE, &format!("{tid} 029001 C 72 01 B0 01 01"));
    let swapped = Home(vec![(NODE, "BB", "029001"), (OTHER, "AA", "029001")]);
    assert_eq!(swapped.answer(&mut table), Vec::<String>::new());
    let told = table.told();
    let diverted = told.iter().filter(|told| told.ends_with(DIVERTED)).count();
    assert_eq!(diverted, 2, "{told:?}");
}

#[test]
fn retransmitted_writes_recheck_the_node_identity() {
    let light = LIGHT.class_code();
    let repeatable_writes = vec![(light, crate::wire::PropertySet::of(&[0x80]))];
    let mut table = Table::new(Config { repeatable_writes, ..Config::new(1) });
    announces(&mut table, NODE, "0A01", "029001");
    let home = Home(vec![(NODE, "AA", "029001")]);
    home.answer(&mut table);
    table.told();
    let id = known(&table, NODE).unwrap();
    table.controller.request(table.now, node(NODE), &Request::set(LIGHT, &[(0x80, &[0x30])]).only_to(id)).unwrap();
    let mut asked = Vec::new();
    for _ in 0..2 {
        let check = table.sent().pop().unwrap();
        asked.push(check.split(' ').nth(2).unwrap().to_owned());
        let tid = check.split(' ').nth(1).unwrap().to_owned();
        table.comes(NODE, &format!("{tid} 0EF001 C 72 01 {}", number("AA")));
        table.wait(seconds(1));
        asked.push(table.sent().pop().unwrap().split(' ').nth(2).unwrap().to_owned());
        table.wait_for_timeout();
    }
    assert_eq!(asked, ["C0EF00162018300", "C0290016101800130", "C0EF00162018300", "C0290016101800130"]);
    // The third time another one answers.
    Home(vec![(NODE, "BB", "029001")]).answer(&mut table);
    let told = table.told();
    assert!(told.iter().any(|told| told.contains("no answer to 2 tries")), "{told:?}");
}

#[test]
fn nodes_without_a_number_are_known_by_maker_and_objects() {
    let mut table = Table::new(Config::new(1));
    announces(&mut table, NODE, "0A01", "029001");
    Home(vec![(NODE, "", "029001")]).answer(&mut table);
    let id = known(&table, NODE).unwrap();
    assert!(matches!(id, NodeId::Likeness(_)), "{id}");
    assert_eq!(news(&mut table), [format!("ready {NODE}")]);
    // At another address it is the same; a further object does not make it another node, other objects do.
    announces(&mut table, OTHER, "0A01", "029001");
    Home(vec![(OTHER, "", "029001")]).answer(&mut table);
    assert_eq!((known(&table, OTHER), news(&mut table)), (Some(id), vec![format!("ready {OTHER}")]));
    table.wait(seconds(60));
    announces(&mut table, NODE, "0A02", "029001029002");
    Home(vec![(NODE, "", "029001029002")]).answer(&mut table);
    assert_eq!((known(&table, NODE), news(&mut table)), (Some(id), vec![format!("ready {NODE}")]));
    table.wait(seconds(60));
    announces(&mut table, NODE, "0A03", "013001");
    Home(vec![(NODE, "", "013001")]).answer(&mut table);
    assert_ne!(known(&table, NODE), Some(id));
    assert_eq!(news(&mut table), [format!("replaced {NODE}"), format!("ready {NODE}")]);
}

#[test]
fn an_address_of_a_node_with_two_can_become_another_nodes() {
    const V6: &str = "fe80::7%3";
    let mut table = Table::new(Config::new(1));
    table.controller.discover(table.now).unwrap();
    table.sent();
    for addr in [NODE, V6] {
        table.comes(addr, &format!("0001 0EF001 C 72 02 D6 04 01 029001 {}", number("AA")));
    }
    let both = Home(vec![(NODE, "AA", "029001"), (V6, "AA", "029001")]);
    both.answer(&mut table);
    assert_eq!(table.controller.nodes().count(), 1);
    let id = known(&table, NODE);
    table.told();
    table.wait(seconds(60));
    announces(&mut table, NODE, "0B01", "029001");
    Home(vec![(NODE, "BB", "029001"), (V6, "AA", "029001")]).answer(&mut table);
    assert_eq!(known(&table, V6), id);
    assert_eq!(known(&table, NODE).unwrap().to_string(), "fe000077000000000000000000000000bb");
    let told = news(&mut table);
    let expected = [format!("replaced {NODE}"), format!("moved {NODE} {V6}")];
    assert_eq!(told[..2], expected, "{told:?}");
    assert!(told.contains(&format!("ready {V6}")) && told.contains(&format!("ready {NODE}")), "{told:?}");
}
