//! Expressions that give here what they give in a genuine server.

use mlua::{Error, Function, Lua, LuaString, Table, Value};

use super::register;
use crate::protocol::oracle::{Oracle, Reply};

/// Evaluates EXPR and describes every result, or the error: numbers by all their digits, strings in hexadecimal where
/// they are not plain, tables by their entries in the order of their keys' descriptions.
const FRAME: &str = r#"
local function show(v, depth)
    local t = type(v)
    if t == 'string' then return "'" .. v:gsub('[^ -~]', function(c) return string.format('\\x%02x', c:byte()) end) .. "'" end
    if t == 'number' then return string.format('%.17g', v) end
    if t ~= 'table' then return tostring(v) end
    if depth > 20 then return '...' end
    local all = {}
    for k, w in pairs(v) do all[#all + 1] = show(k, depth + 1) .. '=' .. show(w, depth + 1) end
    table.sort(all)
    return '{' .. table.concat(all, ' ') .. '}'
end
local function all(...)
    local shown = {}
    for i = 1, select('#', ...) do shown[i] = show((select(i, ...)), 0) end
    return table.concat(shown, ' ')
end
return all(pcall(function() EXPR end))
"#;

/// Around Lua's own functions that return errors, which are mlua's for functions in Rust: the text of them.
const CATCHERS: &str = r"
local plain, pcall0, xpcall0, resume = ...
local function caught(ok, ...)
    if ok then return ok, ... end
    return ok, plain((...))
end
function pcall(...) return caught(pcall0(...)) end
function xpcall(call, handler) return caught(xpcall0(call, function(e) return handler(plain(e)) end)) end
function coroutine.resume(...) return caught(resume(...)) end
";

fn text(error: &Error) -> String {
    match error {
        Error::CallbackError { cause, .. } => text(cause),
        Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    }
}

fn state() -> Lua {
    let lua = Lua::new();
    register(&lua).unwrap();
    let plain = lua.create_function(|lua, value: Value| match value {
        Value::Error(error) => lua.create_string(text(&error)).map(Value::String),
        other => Ok(other),
    });
    let globals = lua.globals();
    let function = |table: &Table, name: &str| -> Function { table.get(name).unwrap() };
    let resume = function(&globals.get("coroutine").unwrap(), "resume");
    let parts = (plain.unwrap(), function(&globals, "pcall"), function(&globals, "xpcall"), resume);
    lua.load(CATCHERS).call::<()>(parts).unwrap();
    lua
}

fn ours(expression: &str) -> String {
    let lua = state();
    let script = FRAME.replace("EXPR", expression).replace('\n', " ");
    let shown: LuaString = lua.load(script).set_name("@user_script").eval().unwrap();
    shown.to_string_lossy()
}

/// The table: a line that begins with `--` is a remark, an empty line is nothing.
const EXPRESSIONS: &str = include_str!("expressions.txt");

#[test]
fn results_and_errors_are_those_of_a_genuine_server() {
    let lines: Vec<&str> = EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).collect();
    // Without a genuine server, that nothing panics is still worth knowing.
    let results: Vec<String> = lines.iter().map(|line| ours(line)).collect();
    let Some(mut oracle) = Oracle::start("script-libs") else { return };
    let mut differences = 0;
    for (line, result) in lines.iter().zip(results) {
        let script = FRAME.replace("EXPR", line).replace('\n', " ");
        let reply = oracle.run(&[vec![b"EVAL", script.as_bytes(), b"0"]]).remove(0);
        let expected = match reply {
            Reply::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            other => format!("{other:?}"),
        };
        if result != expected {
            differences += 1;
            let cut = |text: &str| text.chars().take(600).collect::<String>();
            eprintln!("{line}\n    ours:    {}\n    genuine: {}", cut(&result), cut(&expected));
        }
    }
    assert_eq!(differences, 0, "of {} expressions", lines.len());
}

#[test]
fn an_uncaught_error_keeps_its_text() {
    let error = state().load("\nreturn cjson.decode('x')").set_name("@user_script").exec().unwrap_err();
    assert_eq!(text(&error), "user_script:2: Expected value but found invalid token at character 1");
}

#[test]
fn small_inputs_with_huge_encodings_are_refused() {
    let check = |expression: &str| {
        let result = ours(expression);
        assert!(result.contains("not enough memory"), "{expression}: {result:.100}");
    };
    check("local t = {('x'):rep(100)} for i = 1, 100 do t = {t, t} end return cjson.encode(t)");
    check("cjson.encode_sparse_array(true, 0) return cjson.encode({[2 ^ 31 - 1] = 1})");
    check(
        "local t = {} for i = 1, 15 do local u = {} for j = 1, 100 do u[j] = t end t = u end return cmsgpack.pack(t)",
    );
}

#[test]
fn nothing_overflows_the_stack() {
    let check = |expression: &str, expected: &str| {
        let result = ours(expression);
        assert!(result.contains(expected), "{expression}: {result:.100}");
    };
    let allow = "cjson.encode_max_depth(1e6) cjson.decode_max_depth(1e6)";
    let encode = |table| format!("{allow} local t = {{}} for i = 1, 9000 do t = {table} end return cjson.encode(t)");
    check(&encode("{t}"), "excessive nesting (1501)");
    check(&encode("{a = t}"), "excessive nesting (1501)");
    check(&format!("{allow} return cjson.decode(('['):rep(9000))"), "nested data structures (1501)");
    check(&format!("{allow} return cjson.decode(('{{\"a\":'):rep(9000))"), "nested data structures (1501)");
    check(&format!("{allow} return #cjson.encode(cjson.decode(('['):rep(1500) .. (']'):rep(1500)))"), "true 3000");
    check("return cmsgpack.unpack(('\\145'):rep(9000))", "stack overflow");
    check("return cmsgpack.unpack(('\\129\\1'):rep(9000))", "stack overflow");
    check("return cmsgpack.unpack(('\\145'):rep(1400) .. '\\1')", "true");
}
