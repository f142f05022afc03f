"""What Redis runs for the ledger: each script is one atomic step of the table in `lifecycle/ledger.py`.

Keys, all in one hash slot: `e:OPERATION` a hash with fingerprint `f`, generation `g`, state `s` (p or s) and answer
`a`; `pending` and `settled` sorted sets of operations, by end of lease and by time of record; `sizes` and `bytes` the
accounts. Time is the Redis server's, in milliseconds. Each script may be sent twice: the second time changes nothing.
Keys have a time to live only so that nothing stays behind when no server of ours comes again.
"""

PREFIX = "tidegate:{idempotency}:"
BATCH_ENTRIES = 64

_COMMON = f"""
local P = '{PREFIX}'
local PENDING, SETTLED, SIZES, BYTES = P..'pending', P..'settled', P..'sizes', P..'bytes'
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function entry(op) return P..'e:'..op end
local function num_entries() return redis.call('ZCARD', PENDING) + redis.call('ZCARD', SETTLED) end
local function num_bytes() return tonumber(redis.call('GET', BYTES) or '0') end
local function forget(op)
  redis.call('DEL', entry(op))
  redis.call('ZREM', PENDING, op)
  redis.call('ZREM', SETTLED, op)
  local size = redis.call('HGET', SIZES, op)
  if size then
    redis.call('HDEL', SIZES, op)
    redis.call('DECRBY', BYTES, size)
  end
end
local function oldest()
  return redis.call('ZRANGE', SETTLED, 0, 0)[1]
end
local function keep(op, retention)
  local ttl = retention + 3600000
  redis.call('PEXPIRE', entry(op), ttl)
  for _, key in ipairs({{PENDING, SETTLED, SIZES, BYTES}}) do redis.call('PEXPIRE', key, ttl) end
end
local function tidy(retention)
  local lapsed = redis.call('ZRANGEBYSCORE', PENDING, '-inf', now, 'LIMIT', 0, {BATCH_ENTRIES})
  for _, op in ipairs(lapsed) do forget(op) end
  local expired = redis.call('ZRANGEBYSCORE', SETTLED, '-inf', now - retention, 'LIMIT', 0, {BATCH_ENTRIES})
  for _, op in ipairs(expired) do forget(op) end
end
"""

CLAIM = (
    _COMMON
    + f"""
local op, fingerprint, generation = ARGV[1], ARGV[2], ARGV[3]
local lease, retention, max_entries = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
tidy(retention)
local found = redis.call('HMGET', entry(op), 'f', 's', 'g')
if found[1] then
  local is_pending = found[2] == 'p'
  local at = redis.call('ZSCORE', is_pending and PENDING or SETTLED, op)
  local ends = at and (tonumber(at) + (is_pending and 0 or retention))
  if not ends or ends <= now then
    forget(op)
  elseif is_pending and found[3] == generation then
    return {{'fresh', num_entries(), num_bytes(), 0}}
  elseif found[1] ~= fingerprint then
    return {{'mismatch', num_entries(), num_bytes(), 0}}
  elseif is_pending then
    return {{'in_flight', num_entries(), num_bytes(), 0}}
  else
    return {{'replay', num_entries(), num_bytes(), 0, redis.call('HGET', entry(op), 'a')}}
  end
end
local num_evicted = 0
while num_entries() + 1 > max_entries and num_evicted < {BATCH_ENTRIES} do
  local old = oldest()
  if not old then break end
  forget(old)
  num_evicted = num_evicted + 1
end
if num_entries() + 1 > max_entries and num_evicted == 0 then
  return {{'full', num_entries(), num_bytes(), 0}}
end
redis.call('HSET', entry(op), 'f', fingerprint, 'g', generation, 's', 'p')
redis.call('ZADD', PENDING, now + lease, op)
keep(op, retention)
return {{'fresh', num_entries(), num_bytes(), num_evicted}}
"""
)

RECORD = (
    _COMMON
    + """
local op, fingerprint, generation, answer = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local retention, max_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local found = redis.call('HMGET', entry(op), 'g', 's')
if found[1] and found[1] ~= generation then return {0, num_entries(), num_bytes(), 0} end
if found[1] and found[2] == 's' then return {1, num_entries(), num_bytes(), 0} end
local num_evicted = 0
while num_bytes() + #answer > max_bytes do
  local old = oldest()
  if not old then break end
  forget(old)
  num_evicted = num_evicted + 1
end
redis.call('HSET', entry(op), 'f', fingerprint, 'g', generation, 's', 's', 'a', answer)
redis.call('ZREM', PENDING, op)
redis.call('ZADD', SETTLED, now, op)
redis.call('HSET', SIZES, op, #answer)
redis.call('INCRBY', BYTES, #answer)
keep(op, retention)
return {1, num_entries(), num_bytes(), num_evicted}
"""
)

RELEASE = (
    _COMMON
    + """
local op, generation = ARGV[1], ARGV[2]
local found = redis.call('HMGET', entry(op), 'g', 's')
if found[1] == generation and found[2] == 'p' then forget(op) end
return {1, num_entries(), num_bytes(), 0}
"""
)

RENEW = (
    _COMMON
    + """
local lease, retention = tonumber(ARGV[1]), tonumber(ARGV[2])
local lost = {}
tidy(retention)
for i = 3, #ARGV, 3 do
  local op, fingerprint, generation = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local found = redis.call('HMGET', entry(op), 'g', 's')
  if not found[1] then
    redis.call('HSET', entry(op), 'f', fingerprint, 'g', generation, 's', 'p')
  end
  if not found[1] or (found[1] == generation and found[2] == 'p') then
    redis.call('ZADD', PENDING, now + lease, op)
    keep(op, retention)
  elseif found[1] ~= generation then
    lost[#lost + 1] = generation
  end
end
return {lost, num_entries(), num_bytes(), 0}
"""
)
