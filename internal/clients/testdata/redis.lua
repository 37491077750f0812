-- redis-lua. Arguments: port; a process of its own waits, with "wait" and a queue
-- behind it. TLS is not in the library. Each step is printed once it has passed.
local redis = require 'redis'
local port, role, queue = arg[1], arg[2], arg[3]
io.stdout:setvbuf('line')

for _, name in ipairs { 'enqueue', 'fetch', 'ack', 'queue', 'stats', 'acl' } do
    redis.commands[name] = redis.command(name:upper())
end

local function passed(step) print('step ' .. step) end

local function want(so, what)
    if not so then
        io.stderr:write('not so: ' .. what .. '\n')
        os.exit(1)
    end
end

local function pairs_of(reply)
    local t = {}
    for i, name in pairs(reply) do -- null is a hole
        if i % 2 == 1 then t[name] = reply[i + 1] end
    end
    return t
end

local function dial()
    local r = redis.connect('127.0.0.1', port)
    r:auth('worker', 's3cret')
    r:raw_cmd('CLIENT SETNAME lua')
    return r
end

local r = dial()
if role == 'wait' then
    local late = pairs_of(r:fetch(queue, 60000, 'WAIT', 30000))
    want(late.payload == 'late' and r:ack(late.lease_id) == true, 'the job that came ends the wait')
    print('acknowledged')
    os.exit(0)
end
want(r:ping() == true, 'PING says PONG')
want(r:acl('WHOAMI') == 'worker', 'the user is worker')
want(r:raw_cmd('CLIENT GETNAME') == 'lua', 'the connection has its name')
want(r:info().server.redis_version:match('^[67]%.'), 'INFO is read')
passed('login')

local payload = '\0\r\n\255'
local job = pairs_of(r:enqueue('lua', payload))
want(#job.task_id == 26, 'ENQUEUE answers an ID')
local got = pairs_of(r:fetch('lua', 60000))
want(got.payload == payload and got.task_id == job.task_id, 'the payload came back')
passed('enqueue')
want(r:ack(got.lease_id) == true, 'ACK says OK')
local ok, err = pcall(r.ack, r, got.lease_id)
want(not ok and err:find('ERR lease does not exist', 1, true), 'a second ACK is refused')
want(r:fetch('lua', 60000) == nil, 'FETCH on an empty queue is nil')
passed('ack')

local waiter = io.popen(('%s %s %s wait lua'):format(arg[-1], arg[0], port))
repeat until pairs_of(r:queue('INFO', 'lua')).waiting == 1
r:enqueue('lua', 'late')
want(waiter:read() == 'acknowledged', 'the FETCH that waits is answered')
passed('wait')

local replies = r:pipeline(function(p)
    for i = 1, 10000 do p:enqueue('lua-many', i) end
end)
want(#replies == 10000 and #replies[10000][2] == 26, 'each command of the pipeline is answered')
passed('pipeline')

local both = r:transaction(function(t)
    t:enqueue('lua-tx', 'a')
    t:enqueue('lua-tx', 'b')
end)
want(#both == 2, 'EXEC answers both')
passed('transaction')

print('restart')
io.read()
want(not pcall(r.ping, r), 'the old connection is over')
r = dial()
want(pairs_of(r:stats('lua-many')).ready == 10000, 'all jobs are there')
passed('restart')
print('done ' .. redis._VERSION:match('%S+$'))
