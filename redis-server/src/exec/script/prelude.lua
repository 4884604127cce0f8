-- What scripts see instead of Lua's own globals: tables that they cannot change, without the functions that reach out
-- of the sandbox. Run once per state. `native` holds functions in C's manner, `mark` the key of a read-only table's content, `server`
-- is `redis` again where scripts have it by that name, too.
local native, redis, mark, server = ...
local G = _G
local setmetatable, pairs, type, byte, match, concat = setmetatable, pairs, type, string.byte, string.match, table.concat
local loadstring, collectgarbage = loadstring, collectgarbage

-- A table in whose place scripts get an empty one, which looks up in it and refuses changes.
local function shield(content)
    return setmetatable({}, {
        __index = content, __newindex = native.read_only, __metatable = false, [mark] = content,
    })
end

-- Compiled code is not checked, and could do anything to the process. A name is cut at its first zero, because Lua would
-- make another string of it that nobody holds while it compiles.
local function compile(code, name)
    if byte(code, 1) == 27 then return nil, "compiled code is not loaded" end
    return loadstring(code, match(name, "^[^%z]*"))
end

for _, name in pairs { "insert", "remove", "sort", "setn" } do
    G.table[name] = native.guarded(G.table[name])
end
for _, name in pairs { "concat", "foreach", "foreachi", "getn", "maxn" } do
    G.table[name] = native.seeing(G.table[name])
end
G.math.random, G.math.randomseed = native.random, native.randomseed

-- An error of a library of ours is an object of its own until somebody catches it.
local plain, xpcall, resume = native.plain, xpcall, coroutine.resume
local function caught(ok, ...)
    if ok then return ok, ... end
    return ok, plain((...))
end
G.coroutine.resume = function(...) return caught(resume(...)) end

local globals = {
    server = server,
    xpcall = function(call, handler) return xpcall(call, function(e) return handler(plain(e)) end) end,
    redis = redis,
    pcall = native.pcall,
    next = native.next,
    pairs = native.pairs,
    rawget = native.seeing(G.rawget),
    rawset = native.guarded(G.rawset),
    setmetatable = native.guarded(G.setmetatable),
    loadstring = function(code, name)
        return compile(code, name or code)
    end,
    load = function(read, name)
        local parts = {}
        while true do
            local part = read()
            if part == nil or part == "" then break end
            parts[#parts + 1] = part
        end
        return compile(concat(parts), name or "=(load)")
    end,
    unpack = native.unpack,
    -- The collector's pace is the server's business: it serves all scripts.
    collectgarbage = function(option, argument)
        if option == "stop" or option == "restart" or option == "setpause" or option == "setstepmul" then return 0 end
        return collectgarbage(option, argument)
    end,
}
for _, name in pairs {
    "tostring", "assert", "tonumber", "rawequal", "getmetatable", "coroutine", "type", "select",
    "gcinfo", "ipairs", "_VERSION", "error", "string", "math", "table", "cjson", "cmsgpack", "bit", "struct",
} do
    globals[name] = G[name]
end

local texts = getmetatable("")
local shields = {}
for name, value in pairs(globals) do
    if type(value) == "table" then
        shields[value] = shields[value] or shield(value)
        globals[name] = shields[value]
    end
end
-- What `getmetatable` shows is what it shows in the genuine server.
texts.__metatable = shield { __index = globals.string }
local shown = shield { __index = native.missing }
local meta = { __index = globals, __newindex = native.read_only, __metatable = shown, [mark] = globals }
local env = setmetatable({}, meta)
globals._G = env
setmetatable(globals, { __index = native.missing })
return env, meta, globals
