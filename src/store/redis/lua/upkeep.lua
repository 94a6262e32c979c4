
-- Changes or counts whole keys. ARGV: verb, instant, ids.
--
--  * remove: removes the counters with these ids.
--  * remove_all: removes all counters.
--  * sweep: removes the counters that have expired at the instant.
--  * count: changes nothing.
--
-- Returns the number of counters that were removed, or counted. Logs are found by the records in the
-- value of their subject. Their keys have its hash tag, so they are on the same server.
local verb, now, answer, ids = ARGV[1], -1, 0, {}
if verb == 'sweep' then
  now = tonumber(ARGV[2])
end
for i = 3, #ARGV do
  ids[ARGV[i]] = true
end
local function is_removed(id)
  return verb == 'remove_all' or ids[id]
end
local function log_key(key, id)
  return key .. ':' .. string.gsub(id, '.', function(char)
    return string.format('%02x', char:byte())
  end)
end

-- Returns the value without the records that have expired at the instant and those that are removed; the
-- number of records left, the number that were dropped, and the ids of the logs among these.
local function without_removed(value)
  local kept, dropped, logs, at, size = {}, 0, {}, 1, #value
  while at <= size do
    local id, shape, expires = struct.unpack('<c5BI4', value, at)
    local following = at + RECORD_BYTES + shape % 16
    if is_removed(id) or expires * SECOND <= now and expires < LAST_SECOND then
      dropped = dropped + 1
      if shape == LOG then
        logs[#logs + 1] = id
      end
    else
      kept[#kept + 1] = value:sub(at, following - 1)
    end
    at = following
  end
  return table.concat(kept), #kept, dropped, logs
end

for _, key in ipairs(KEYS) do
  local value = whole_records(redis.pcall('GET', key) or '')
  if value ~= '' then
    local rest, kept, dropped, logs = without_removed(value)
    answer = answer + (verb == 'count' and kept or dropped)
    for _, id in ipairs(logs) do
      redis.call('UNLINK', log_key(key, id))
    end
    if kept == 0 then
      redis.call('UNLINK', key)
    elseif dropped > 0 then
      redis.call('SET', key, rest, 'KEEPTTL')
    end
  elseif verb == 'remove_all' then
    redis.call('UNLINK', key)
  end
end
return answer
