//! Words that sound alike (PHONETIC). The replies are those of RediSearch 2.10.5.

use std::time::{Duration, Instant};

use super::{ask, find, run};
use crate::support::resp::Value;
use crate::support::server::Server;

#[test]
fn words_that_sound_alike_are_found() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i PREFIX 1 d: SCHEMA t TEXT PHONETIC dm:en u TEXT n TEXT NOSTEM PHONETIC dm:fr");
    run(client, "HSET d:1 t morfix u phonetic n smith");
    run(client, "HSET d:2 t 'the 2015 of www' u morfix");
    for (query, expected) in [
        ("morphix", &["d:1"][..]),
        ("@t:morphix", &["d:1"]),
        ("@u|t:morphix", &["d:1"]),
        ("@u:morphix", &[]),
        ("@n:smyth", &["d:1"]),
        ("fonetic", &[]),
        ("@t:morphix=>{$phonetic:true}", &["d:1"]),
        ("@t:morphix=>{$phonetic:false}", &[]),
        ("@t:(morphix)=>{$phonetic:0}", &[]),
        ("-morphix", &["d:1", "d:2"]),
        ("\"morphix\"", &[]),
        ("2016", &[]),
        ("2015", &["d:2"]),
    ] {
        assert_eq!(find(client, "i", query).iter().map(String::as_str).collect::<Vec<_>>(), expected, "{query}");
    }
    let explained = run(client, "FT.EXPLAIN i @t:running").text();
    assert_eq!(
        explained,
        "@t:UNION {\n  @t:running\n  @t:<RNNK(expanded)\n  @t:+run(expanded)\n  @t:run(expanded)\n}\n"
    );
    assert_eq!(run(client, "FT.EXPLAIN i running VERBATIM").text(), "running\n");
    for query in ["@u:xyz=>{$phonetic:true}", "@u:abc=>{$phonetic:false}"] {
        assert_eq!(ask(client, &format!("FT.SEARCH i {query}")).text(), "field does not support phonetics", "{query}");
    }
    let Value::Array(marked) = run(client, "FT.SEARCH i morphix HIGHLIGHT RETURN 2 t u") else { panic!("a list") };
    let Value::Array(fields) = &marked[2] else { panic!("fields: {marked:?}") };
    assert_eq!(fields.iter().map(Value::text).collect::<Vec<_>>(), ["t", "<b>morfix</b>", "u", "phonetic"]);
    // Short words have no sound, as far as the setting says.
    run(client, "HSET d:3 t ab");
    assert!(find(client, "i", "ap").is_empty());
    run(client, "FT.CONFIG SET MIN_PHONETIC_TERM_LEN 2");
    run(client, "FT.CREATE short PREFIX 1 d: SCHEMA t TEXT PHONETIC dm:en");
    assert_eq!(find(client, "short", "ap").len(), 1);
    // A field that comes later.
    run(client, "FT.ALTER short SCHEMA ADD u TEXT PHONETIC dm:es");
    assert_eq!(find(client, "short", "fonetic").len(), 1);
}

#[test]
fn long_words_cost_little() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i SCHEMA t TEXT PHONETIC dm:en");
    let began = Instant::now();
    for letters in ["A", "ch", "schw"] {
        let word = letters.repeat(8 << 20).split_off(0);
        let word = &word[..8 << 20];
        client.send(&["HSET", "d", "t", word]);
        drop(client.reply());
        client.send(&["FT.SEARCH", "i", &format!("@t:{word}=>{{$phonetic:true}}"), "NOCONTENT", "TIMEOUT", "0"]);
        assert!(!client.reply().is_error());
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
