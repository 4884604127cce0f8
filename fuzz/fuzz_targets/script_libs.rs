//! For any input of scripts, `cjson.decode`, `cmsgpack.unpack` and `struct` return values or an error. A decoded value is encoded and
//! decoded again.

#![no_main]

use std::cell::LazyCell;

use libfuzzer_sys::fuzz_target;
use mlua::{Function, Lua};

/// Takes the choice of a function, a text and a second one.
const DRIVER: &str = r"
local choice, first, second = ...
if choice == 0 then
    local value = cjson.decode(first)
    local text = cjson.encode(value)
    assert(cjson.encode(cjson.decode(text)) ~= nil)
elseif choice == 1 then
    local values = { cmsgpack.unpack(first) }
    assert(cmsgpack.pack(values) ~= nil)
elseif choice == 2 then
    return struct.unpack(first, second)
elseif choice == 3 then
    return struct.pack(first, second, second, 1, 2, second), struct.size(first)
else
    return cmsgpack.unpack_limit(first, #second, #first)
end
";

thread_local! {
    static STATE: LazyCell<(Lua, Function)> = LazyCell::new(|| {
        let lua = Lua::new();
        redis_server::exec::script::lib::register(&lua).expect("a new state has room");
        lua.set_memory_limit(64 * 1024 * 1024).expect("the vendored Lua counts its memory");
        let driver = lua.load(DRIVER).into_function().expect("it is Lua");
        (lua, driver)
    });
}

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (choice, first, second) = input;
    STATE.with(|state| {
        let (lua, driver) = &**state;
        let text = |bytes: &[u8]| lua.create_string(bytes);
        let (Ok(first), Ok(second)) = (text(first), text(second)) else { return };
        // Errors are answers.
        let _ = driver.call::<()>((choice % 5, first, second));
    });
});
