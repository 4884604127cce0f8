//! Libraries that keep vectors, documents and agents' memory in Redis 8: their own tests, unmodified, by our server.
//!
//! redisvl's tests come with its package. Variables such as `LANGCHAIN_REDIS_REPOSITORY` name git repositories of the others.
//! `tests/peers/search-suites` stands for Docker and for models, and refuses connections to other machines.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_peers::{Kit, kit, printed};

use super::newer::{Newer, check};
use super::suites::{Tests, Verdict};
use crate::support::server::Server;

const KIT: Kit = kit! {
    name: "redis-search-suites",
    sources: &["tests/peers/search-suites"],
    programs: &["python3"],
    install: "sh install.sh",
};

/// Tests in TypeScript.
const NODE_KIT: Kit =
    kit! { name: "redis-om-node", sources: &["tests/peers/redis-om"], programs: &["npm", "git"], install: "true" };

/// Tests in Java, with a model that Maven has.
const JAVA_KIT: Kit = kit! {
    name: "redis-langchain4j",
    sources: &["tests/peers/langchain4j"],
    programs: &["javac", "mvn", "git"],
    install: "mvn --batch-mode --quiet package dependency:copy-dependencies -DoutputDirectory=lib",
};

/// The gate's part of redisvl's tests: indexes and queries.
const REDISVL_PART: Newer = Newer {
    tests: Tests { name: "redisvl, indexes and queries", command: |ports, _| pytest(ports, PART), ..ALL.tests },
    least: 100,
    ..ALL
};

const PART: &str = "-p hybrid tests/integration/test_aggregation.py tests/integration/test_hybrid.py \
                    tests/integration/test_multi_prefix.py tests/integration/test_query.py \
                    tests/integration/test_search_index.py tests/integration/test_unf_noindex_integration.py";

const REDISVL: Newer = Newer {
    tests: Tests { name: "redisvl", command: |ports, _| pytest(ports, "-p hybrid tests/integration"), ..ALL.tests },
    known: &[
        ("tests/integration/test_llmcache.py::test_drop_documents", MODEL),
        ("tests/integration/test_llmcache.py::test_async_drop_documents", MODEL),
        ("tests/integration/test_llmcache.py::test_cache_filtering", MODEL),
        ("tests/integration/test_llmcache.py::test_cache_index_overwrite", MODEL),
        ("tests/integration/test_llmcache.py::test_no_key_collision_on_identical_prompts", MODEL),
        (
            "tests/integration/test_llmcache.py::test_create_index_false_works_under_a_read_write_acl",
            "FT.INFO only reads, so @read allows it",
        ),
        ("tests/integration/test_message_history.py::test_semantic_add_and_get_relevant", MODEL),
        ("tests/integration/test_semantic_router.py::test_routes_different_distance_thresholds_get_two", MODEL),
    ],
    least: 700,
    ..ALL
};

const LANGGRAPH: Newer = Newer {
    tests: Tests { name: "langgraph-checkpoint-redis", command: |ports, _| pytest(ports, "tests"), ..ALL.tests },
    known: &[
        (
            "tests/integration/test_conversation_memory_integration.py::TestConversationMemoryMiddlewareIntegration::test_notebook_scenario_diverse_prompts",
            MODEL,
        ),
        (
            "tests/integration/test_responses_api_duplicate_ids.py::TestConversationMemoryResponsesApi::test_multi_turn_with_list_content",
            MODEL,
        ),
        ("tests/test_async.py::test_from_conn_string_errors", OLDER),
        ("tests/test_shallow_async.py::test_from_conn_string_errors", OLDER),
    ],
    least: 700,
    ..ALL
};

const REDIS_OM: Newer = Newer {
    tests: Tests { name: "Redis OM", command: |ports, _| pytest(ports, REDIS_OM_TESTS), ..ALL.tests },
    least: 500,
    ..ALL
};

/// Benchmarks measure. The tests of the command line connect to a port of their own choice.
const REDIS_OM_TESTS: &str = "tests tests_sync --ignore=tests/test_benchmarks.py \
                              --ignore=tests/test_cli_migrate.py --ignore=tests_sync/test_cli_migrate.py";

const LANGCHAIN: Newer = Newer {
    tests: Tests {
        name: "langchain-redis",
        command: |ports, _| {
            let mut pytest = pytest(ports, "tests/integration_tests");
            pytest.env("REDIS_URL", format!("redis://127.0.0.1:{}", ports[0]));
            pytest
        },
        ..ALL.tests
    },
    least: 190,
    ..ALL
};

const REDIS_OM_NODE: Newer = Newer {
    tests: Tests {
        name: "Redis OM for Node.js",
        kit: NODE_KIT,
        command: |ports, _| {
            let mut tests = Command::new("sh");
            tests.arg("../run.sh").env("SEARCH_SUITE_PORT", ports[0].to_string());
            tests
        },
        verdict: vitest_verdict,
    },
    known: &[
        (
            "spec/functional/search/search-hash.spec.ts: search for hashes throw an error when searching a text with an exact match and stop words",
            STOP_WORDS,
        ),
        (
            "spec/functional/search/search-json.spec.ts: search for JSON documents throws an error when searching a text with an exact match and stop words",
            STOP_WORDS,
        ),
    ],
    least: 90,
    ..ALL
};

const LANGCHAIN4J: Newer = Newer {
    tests: Tests {
        name: "langchain4j-community-redis",
        kit: JAVA_KIT,
        command: |ports, _| {
            let mut junit = Command::new("java");
            junit
                .args(["-cp", "classes:../target/classes:../lib/*", "org.junit.platform.console.ConsoleLauncher"])
                .args(["execute", "--scan-classpath", "classes", "--include-classname", ".*(IT|Test)"])
                .args(["--details", "testfeed", "--disable-banner", "--disable-ansi-colors"])
                .env("SEARCH_SUITE_PORT", ports[0].to_string());
            junit
        },
        verdict: junit_verdict,
    },
    least: 110,
    ..ALL
};

/// Reasons of failures.
const MODEL: &str = "texts without common words are near each other for a real model alone";
const STOP_WORDS: &str = "dialect 1 of RediSearch refuses stop words in quotes, ours takes them";
const OLDER: &str = "the test expects the error of redisvl 0.15, which later versions wrap";

/// All suites' common part.
const ALL: Newer = Newer {
    tests: Tests { name: "", kit: KIT, command: |ports, _| pytest(ports, ""), verdict },
    level: "8.0",
    // The one that the libraries choose.
    protocols: &["2"],
    cluster: false,
    known: &[],
    least: 0,
};

/// Runs the tests that these words name.
fn pytest(ports: &[u16], words: &str) -> Command {
    let mut pytest = Command::new("../venv/bin/python");
    pytest
        .args(["-m", "pytest", "-p", "loopback", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore"])
        .args(["-o", "log_cli=false", "-o", "addopts="])
        .args(words.split_whitespace())
        .env("PYTHONPATH", "..")
        // Without a key, tests take a model of their own.
        .env_remove("OPENAI_API_KEY")
        // A line is not cut at the width of a terminal.
        .env("COLUMNS", "1000")
        .env("SEARCH_SUITE_PORT", ports[0].to_string())
        .env("REDIS_OM_URL", format!("redis://127.0.0.1:{}?decode_responses=True", ports[0]));
    pytest
}

/// Reads `PASSED tests/file.py::Class::name`, `FAILED tests/file.py::Class::name - message`.
fn verdict(line: &str) -> Option<Verdict> {
    let (state, rest) = line.split_once(' ').filter(|(_, rest)| rest.starts_with("tests"))?;
    let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
    match state {
        "PASSED" => Some((name.to_owned(), Ok(()))),
        "FAILED" | "ERROR" => Some((name.to_owned(), Err(message.to_owned()))),
        _ => None,
    }
}

/// Reads `passed spec/file.ts: suite test`.
fn vitest_verdict(line: &str) -> Option<Verdict> {
    let (state, name) = line.split_once(' ').filter(|(_, name)| name.starts_with("spec/"))?;
    let result = if state == "passed" { Ok(()) } else { Err(state.to_owned()) };
    Some((name.to_owned(), result))
}

/// Reads `JUnit Jupiter > Class > test() :: SUCCESSFUL`.
fn junit_verdict(line: &str) -> Option<Verdict> {
    let (name, state) = line.rsplit_once(" :: ")?;
    let name = name.strip_prefix("JUnit Jupiter > ")?.to_owned();
    match state {
        "SUCCESSFUL" => Some((name, Ok(()))),
        "FAILED" => Some((name, Err("fails".to_owned()))),
        _ => None,
    }
}

/// The tests of a version in a git repository, beside the kit's packages.
#[track_caller]
fn checkout(kit: &Kit, variable: &str, tag: &str) -> Option<PathBuf> {
    let Some(repository) = env::var_os(variable) else {
        println!("skipped: {variable} names no git repository");
        return None;
    };
    let kit = kit.installed()?;
    let folder = kit.join(variable.to_lowercase());
    let mut script = Command::new("sh");
    script.arg("checkout.sh").args([Path::new(&repository), Path::new(tag), &folder]).current_dir(&kit);
    let _ = printed(&script);
    Some(folder)
}

#[test]
fn redisvl_indexes_and_queries() {
    let Some(folder) = REDISVL_PART.tests.installed() else { return };
    check(&[(&REDISVL_PART, folder, "2")]);
}

#[test]
#[ignore = "minutes: full runs of the gates"]
fn redisvl_own_tests() {
    let Some(folder) = REDISVL.tests.installed() else { return };
    check(&[(&REDISVL, folder, "2")]);
}

#[test]
#[ignore = "minutes: full runs of the gates"]
fn langgraph_own_tests() {
    let Some(folder) = checkout(&KIT, "LANGGRAPH_REDIS_REPOSITORY", "0.5.2") else { return };
    check(&[(&LANGGRAPH, folder, "2")]);
}

#[test]
#[ignore = "minutes: full runs of the gates"]
fn redis_om_own_tests() {
    let Some(folder) = checkout(&KIT, "REDIS_OM_REPOSITORY", "v1.1.0") else { return };
    check(&[(&REDIS_OM, folder, "2")]);
}

#[test]
#[ignore = "minutes: full runs of the gates"]
fn langchain_own_tests() {
    let Some(folder) = checkout(&KIT, "LANGCHAIN_REDIS_REPOSITORY", "libs/redis/v0.2.5:libs/redis") else { return };
    check(&[(&LANGCHAIN, folder, "2")]);
}

#[test]
#[ignore = "minutes: full runs of the gates"]
fn redis_om_node_own_tests() {
    // Version 0.4.7 has no tag.
    let Some(folder) = checkout(&NODE_KIT, "REDIS_OM_NODE_REPOSITORY", "fe1eea9") else { return };
    check(&[(&REDIS_OM_NODE, folder, "2")]);
}

#[test]
#[ignore = "minutes: full runs of the gates"]
fn langchain4j_own_tests() {
    let tests = "1.11.0-beta19:embedding-stores/langchain4j-community-redis/src/test";
    let Some(folder) = checkout(&JAVA_KIT, "LANGCHAIN4J_REPOSITORY", tests) else { return };
    check(&[(&LANGCHAIN4J, folder, "2")]);
}

/// The example of the documents: passages of our own manual, embedded by a model that a package ships.
#[test]
fn questions_find_passages_of_the_manual() {
    let Some(kit) = KIT.installed() else { return };
    let server = Server::start();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let questions = [
        ("After how many seconds does an unused cursor of a query close?", "search.md"),
        ("Which setting decides how often the append-only file is synced to disk?", "persistence.md"),
        ("How do I add a replica of a primary?", "replication.md"),
    ];
    let mut example = Command::new(kit.join("venv/bin/python"));
    example
        .arg(workspace.join("redis-server/examples/rag.py"))
        .arg(workspace.join("docs/redis"))
        .args(questions.map(|(question, _)| question))
        .env("REDIS_URL", format!("redis://{}", server.addr));
    // Twice: the passages are replaced, not doubled.
    let first = printed(&example);
    assert_eq!(printed(&example), first);
    let answers: Vec<&str> = first.split("# ").skip(1).collect();
    assert_eq!(answers.len(), questions.len(), "{first}");
    for ((question, source), answer) in questions.iter().zip(answers) {
        assert!(answer.starts_with(question) && answer.contains(source), "{question}: {answer}");
    }
}
