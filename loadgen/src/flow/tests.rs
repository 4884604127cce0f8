//! Files with faults, and what is said of them.

use super::Plan;

/// A file without a fault.
const GOOD: &str = r#"slo = ["p99=1s"]

[random]
quantity = [1, 9]

[feeder.users]
file = "users.csv"

[[stage]]
duration = "10s"
users = 5

[[flow]]
name = "buy"

[[flow.step]]
name = "log in"
path = "/login"
json = '{"user":"{{users.name}}"}'
check = [{ status = 200 }]
take.token = { json = "$.token" }
think = ["1s", "2s"]
slo = ["p99=20ms"]

[[flow.step]]
name = "order"
method = "PUT"
path = "/orders/{{quantity}}/{{iteration}}/{{user}}"
headers = { Authorization = "Bearer {{token}}" }
body = "{{token}}"
"#;

/// A part of the file, its replacement, and the fault.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "p99=1s",
        "p99",
        "line 1: slo is `p99`, expected p99=2ms (any percentile), max=10ms, mean=1ms, errors=0.1% or rate=10000",
    ),
    (
        "p99=1s",
        "a:p99=1s",
        "line 1: slo is `a:p99=1s`, expected an objective without a name: it stands at its flow or step",
    ),
    ("[1, 9]", "[9, 1]", "line 4: random.quantity is `[9, 1]`, expected the least and the most, as in [1, 100]"),
    ("[1, 9]", "[1]", "line 4: random.quantity is `[1]`, expected the least and the most, as in [1, 100]"),
    (
        "[random]\n",
        "[random]\nuser = [1, 2]\n",
        "line 4: the name of random is `user`, expected a word of letters, digits, - and _, other than iteration and user",
    ),
    (
        "users.csv",
        "none.csv",
        "line 7: feeder.users.file is `none.csv`, expected a file that can be read (no such file)",
    ),
    (
        "users.csv",
        "bad.csv",
        "line 7: feeder.users.file is `bad.csv`, expected a file of CSV: line 2 has 1 fields, expected 2",
    ),
    (
        "\"users.csv\"",
        "\"users.csv\"\norder = \"shuffled\"",
        "line 8: unknown variant `shuffled`, expected `sequential` or `random`",
    ),
    ("\"10s\"", "\"soon\"", "line 10: stage.duration is `soon`, expected a time such as 500us, 2ms, 10s, 1m30s or 1h"),
    ("users = 5", "rate = -1.0", "line 11: stage.rate is `-1`, expected iterations per second from 0"),
    (
        "users = 5",
        "users = 5\nrate = 1.0",
        "line 9: the level of stage is `users and rate`, expected either users or rate, the same in all stages",
    ),
    ("users = 5", "", "line 9: the level of stage is ``, expected either users or rate, the same in all stages"),
    (
        "users = 5",
        "users = 0",
        "line 9: the length or the highest level of all stages is `0`, expected a number above 0",
    ),
    ("name = \"buy\"", "name = \"buy\"\nweight = 0", "line 15: flow.weight is `0`, expected a number from 1"),
    (
        "name = \"buy\"",
        "name = \"order\"",
        "line 26: step.name is `order`, expected a name that no other flow or step has",
    ),
    ("name = \"buy\"", "name = \"a:b\"", "line 14: flow.name is `a:b`, expected a name without a colon"),
    ("name = \"buy\"\n", "", "line 13: missing field `name`"),
    (
        "path = \"/login\"",
        "path = \"login\"",
        "line 18: step.path is `login`, expected a path of ASCII that begins with / or {{ and has no spaces",
    ),
    (
        "path = \"/login\"",
        "path = \"/log in\"",
        "line 18: step.path is `/log in`, expected a path of ASCII that begins with / or {{ and has no spaces",
    ),
    ("path = \"/login\"", "path = \"/{{id\"", "line 18: step.path is `/{{id`, expected }} behind each {{"),
    (
        "path = \"/login\"",
        "path = \"/login\"\nfollow = true",
        "line 19: unknown field `follow`, expected one of `name`, `method`, `path`, `headers`, `body`, `json`, `take`, `check`, `think`, `slo`",
    ),
    ("json = '", "body = \"\"\njson = '", "line 19: step.body is ``, expected either body or json"),
    (
        "{{users.name}}",
        "{{users.nam}}",
        "line 19: step.json is `{\"user\":\"{{users.nam}}\"}`, expected a known name for {{users.nam}}: iteration, user, quantity, users.name, users.age",
    ),
    (
        "{{users.name}}",
        "{{token}}",
        "line 19: step.json is `{\"user\":\"{{token}}\"}`, expected a known name for {{token}}: iteration, user, quantity, users.name, users.age",
    ),
    (
        "status = 200",
        "status = \"ok\"",
        "line 20: check.status is `ok`, expected a status such as 200, or several, as in [200, 201]",
    ),
    (
        "status = 200",
        "status = [200, 20]",
        "line 20: check.status is `[200, 20]`, expected a status such as 200, or several, as in [200, 201]",
    ),
    (
        "status = 200",
        "status = 200, json = \"$.a\"",
        "line 20: check is `status and more`, expected a check of its own for the status",
    ),
    (
        "{ status = 200 }",
        "{ name = \"a\" }",
        "line 20: check is `empty`, expected status, json, header, cookie, regex, is or contains",
    ),
    (
        "{ status = 200 }",
        "{ is = \"a\", contains = \"b\" }",
        "line 20: check.is is `a`, expected either is or contains",
    ),
    (
        "{ status = 200 }",
        "{ json = \"$.id\", is = \"{{x}}\" }",
        "line 20: check.is is `{{x}}`, expected a known name for {{x}}: iteration, user, quantity, users.name, users.age",
    ),
    (
        "$.token",
        "token",
        "line 21: json is `token`, expected a path such as $.items[0].id, made of .name, ['name'], [0] and [*]",
    ),
    (
        "{ json = \"$.token\" }",
        "{ regex = \"(\" }",
        "line 21: regex is `(`, expected a regular expression (unclosed group)",
    ),
    (
        "{ json = \"$.token\" }",
        "{ json = \"$.a\", header = \"b\" }",
        "line 21: the part of the answer is `several`, expected one of json, header and cookie",
    ),
    (
        "{ json = \"$.token\" }",
        "{ header = \"b\", pick = \"last\" }",
        "line 21: pick is `last`, expected json beside it",
    ),
    (
        "take.token = { json = \"$.token\" }",
        "take.token = { json = \"$.token\" }\ntake.quantity = { json = \"$.q\" }",
        "line 22: the name of step.take is `quantity`, expected a name that no random number has",
    ),
    (
        "[\"1s\", \"2s\"]",
        "[\"2s\", \"1s\"]",
        "line 22: step.think is `[2s, 1s]`, expected a time such as \"1s\", or the least and the most, as in [\"1s\", \"3s\"]",
    ),
    (
        "[\"1s\", \"2s\"]",
        "7",
        "line 22: step.think is `7`, expected a time such as \"1s\", or the least and the most, as in [\"1s\", \"3s\"]",
    ),
    ("p99=20ms", "p999=20ms", "line 23: slo is `p999=20ms`, expected the percentile is 999, expected 0 to 100"),
    ("method = \"PUT\"", "method = \"put it\"", "line 27: step.method is `put it`, expected a word such as GET"),
    (
        "Authorization =",
        "\"a b\" =",
        "line 29: a name in step.headers is `a b`, expected a header's name, other than Content-Length and Transfer-Encoding",
    ),
    (
        "Authorization =",
        "content-length =",
        "line 29: a name in step.headers is `content-length`, expected a header's name, other than Content-Length and Transfer-Encoding",
    ),
    ("Bearer {{token}}", "a\\nb", "line 29: step.headers.Authorization is `a\nb`, expected a value in one line"),
    (
        "[[flow.step]]\nname = \"order\"",
        "[[flow.steps]]\nname = \"order\"",
        "line 25: unknown field `steps`, expected one of `name`, `weight`, `slo`, `step`",
    ),
];

fn faults(text: &str) -> Vec<String> {
    let read = |name: &str| match name {
        "users.csv" => Ok("name,age\nann,7\n".to_owned()),
        "bad.csv" => Ok("name,age\nann\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let plan = Plan::parse(text, &read, &[]);
    plan.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_file_has_no_fault() {
    assert_eq!(faults(GOOD), [""; 0]);
}

#[test]
fn each_fault_names_line_field_value_and_expectation() {
    let troubles: Vec<String> = FAULTS
        .iter()
        .filter_map(|(from, to, expected)| {
            assert!(GOOD.contains(from), "{from}");
            let found = faults(&GOOD.replacen(from, to, 1));
            (found != [*expected]).then(|| format!("{to}\n  found    {}\n  expected {expected}", found.join("; ")))
        })
        .collect();
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

#[test]
fn all_faults_are_found_at_once() {
    let text = GOOD.replace("status = 200", "status = 2").replace("[1, 9]", "[]").replace("p99=20ms", "p99");
    let lines: Vec<_> =
        faults(&text).iter().map(|fault| fault.split(':').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(lines, ["line 4", "line 20", "line 23"]);
    assert_eq!(faults("flow = []"), ["line 1: there is no flow, expected at least one"]);
    assert_eq!(faults("[[flow]]\nname = 'f'\nstep = []"), ["line 2: the number of steps is `0`, expected 1 to 1000"]);
    assert_eq!(faults(""), ["line 1: missing field `flow`"]);
    assert_eq!(faults("[[flow]\n"), ["line 1: unclosed array table, expected `]`"]);
}

#[test]
fn a_step_has_no_cookies_beside_a_jar() {
    let text = GOOD.replace("Authorization =", "COOKIE =");
    assert_eq!(faults(&text), [""; 0]);
    let expected = "line 30: a name in step.headers is `COOKIE`, expected no Cookie beside `cookies = true`";
    assert_eq!(faults(&format!("cookies = true\n{text}")), [expected]);
}
