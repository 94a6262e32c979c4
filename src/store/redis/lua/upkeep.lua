
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
    return string.format('%02x', byte(char))
  end)
end

for _, key in ipairs(KEYS) do
  local value = fetch('GET', key)
  if value and scan(value) then
    local rest, kept, dropped, logs = without_expired(value, now, is_removed)
    answer = answer + (verb == 'count' and kept or dropped)
    for _, id in ipairs(logs) do
      call('UNLINK', log_key(key, id))
    end
    if kept == 0 then
      call('UNLINK', key)
    elseif dropped > 0 then
      call('SET', key, rest, 'KEEPTTL')
    end
  elseif verb == 'remove_all' then
    call('UNLINK', key)
  end
end
return answer
