"""What Redis runs for quotas: each script is one atomic step of the rules in `lifecycle/quota_account.py`.

Keys, all in one hash slot: `rate:KEY` a hash with the window's beginning `b`, its number `w`, requests `r`, tokens `t`,
carried debt `c`, and the least that was left, `lr` and `lt`; `slots:KEY` a sorted set of slots by end of lease. Time
is the Redis server's, in milliseconds, the same for all servers. Keys live no longer than they mean something.

A limit that a key has not is "". Scripts answer with integers; -1 stands for what there is none of.
"""

PREFIX = "tidegate:{quotas}:"
WINDOW_MS = 60_000
MAX_LIFE_MS = 30 * 24 * 3600 * 1000

_COMMON = f"""
local P, W = '{PREFIX}', {WINDOW_MS}
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function number(text) if text and text ~= '' then return tonumber(text) end end
local function text(value) if value then return string.format('%.0f', value) end return '' end
local function least(before, limit, used)
  if not limit then return nil end
  local left = math.max(0, limit - used)
  if before then left = math.min(before, left, limit) end
  return left
end
local function load(key, max_tokens)
  local h = redis.call('HMGET', P..'rate:'..key, 'b', 'w', 'r', 't', 'c', 'lr', 'lt')
  local a = {{
    is_known = h[2] and true or false, began = number(h[1]), window = number(h[2]) or now,
    requests = number(h[3]) or 0, tokens = number(h[4]) or 0, carried = number(h[5]) or 0,
    least_requests = number(h[6]), least_tokens = number(h[7]),
  }}
  if a.began and now >= a.began + W then
    local n = math.floor((now - a.began) / W)
    a.tokens = math.max(0, a.tokens - (max_tokens or a.tokens) * n)
    a.carried = a.tokens
    a.began = a.tokens > 0 and a.began + n * W or nil
    a.window = a.window + 1
    a.requests = 0
    a.least_requests, a.least_tokens = nil, nil
  end
  return a
end
local function save(key, a, max_tokens)
  local k = P..'rate:'..key
  redis.call('HSET', k, 'b', text(a.began), 'w', text(a.window), 'r', text(a.requests), 't', text(a.tokens),
    'c', text(a.carried), 'lr', text(a.least_requests), 'lt', text(a.least_tokens))
  local windows = 2 + (max_tokens and math.ceil(a.tokens / max_tokens) or 0)
  redis.call('PEXPIRE', k, math.min(windows * W, {MAX_LIFE_MS}))
end
local function answer(head, a)
  return {{head, now, a.began or -1, a.window, a.requests, a.tokens, a.least_requests or -1, a.least_tokens or -1}}
end
"""

RESERVE = (
    _COMMON
    + """
local key, num_tokens, max_requests, max_tokens = ARGV[1], tonumber(ARGV[2]), number(ARGV[3]), number(ARGV[4])
local a = load(key, max_tokens)
if (max_requests and a.requests >= max_requests) or (max_tokens and a.tokens >= max_tokens) then
  return answer(0, a)
end
a.began = a.began or now
a.requests = a.requests + 1
a.tokens = a.tokens + num_tokens
a.least_requests = least(a.least_requests, max_requests, a.requests)
a.least_tokens = least(a.least_tokens, max_tokens, a.tokens)
save(key, a, max_tokens)
return answer(1, a)
"""
)

SETTLE = (
    _COMMON
    + """
local key, window, unused, is_void, max_tokens = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], number(ARGV[5])
local a = load(key, max_tokens)
if not a.is_known then return answer(0, a) end
if a.window == window then
  a.tokens = a.tokens - unused
  if is_void == '1' then a.requests = a.requests - 1 end
else
  local paid_off = math.min(unused, a.carried)
  a.carried = a.carried - paid_off
  a.tokens = a.tokens - paid_off
end
save(key, a, max_tokens)
return answer(1, a)
"""
)

CLAIM_SLOT = (
    _COMMON
    + """
local key, slot, max_slots, lease, max_tokens = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), number(ARGV[5])
local k = P..'slots:'..key
redis.call('ZREMRANGEBYSCORE', k, '-inf', now)
local held = redis.call('ZCARD', k)
local a = load(key, max_tokens)
local is_ours = redis.call('ZSCORE', k, slot)
if held >= max_slots and not is_ours then return {-held, unpack(answer(0, a), 2)} end
redis.call('ZADD', k, now + lease, slot)
redis.call('PEXPIRE', k, 2 * lease)
return answer(1, a)
"""
)

RELEASE_SLOT = (
    _COMMON
    + """
redis.call('ZREM', P..'slots:'..ARGV[1], ARGV[2])
return {1}
"""
)

RENEW_SLOTS = (
    _COMMON
    + """
local lease = tonumber(ARGV[1])
for i = 2, #ARGV, 2 do
  local k = P..'slots:'..ARGV[i]
  redis.call('ZADD', k, now + lease, ARGV[i + 1])
  redis.call('PEXPIRE', k, 2 * lease)
end
return {1}
"""
)
