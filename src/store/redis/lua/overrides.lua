-- Sets or removes the overrides of one subject under one rule. All overrides are in one hash:
--
--  * the hash of subject and rule: its overrides, one per line: window (`*`: all), end or `-`, rule,
--    quota, subject.
--  * `log:` and a version: the change with this number: its random id, subject and rule, then the lines of
--    the field after the change. The log has a bounded length.
--  * `head`: random id of the last change, version, number of overrides, how many of them have no end,
--    latest end, cursor of the sweep. A failover may lose a change. Then another change gets its version, but
--    not its id.
--
-- ARGV: verb, field, subject and rule, window, override, `server` or the time in microseconds (0: unknown),
-- id of this change, maximum number of overrides, length of the log. Returns how many overrides were
-- removed; -1 if there are too many; -2 if the head cannot be read, because a later version has written it.
-- A change costs the same for any number of overrides: it sweeps a few fields for ended overrides.
local verb, field, subject, window, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max, log = tonumber(ARGV[8]), tonumber(ARGV[9])
local key, now = KEYS[1], tonumber(ARGV[6])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local head = redis.call('TYPE', key).ok == 'hash' and redis.call('HGET', key, 'head')
local id, version, count, endless, latest, cursor = ARGV[7], 0, 0, 0, 0, '0'
if head then
  id, version, count, endless, latest, cursor =
    string.match(head, '^(%x+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not id then
    return -2
  end
else
  -- Not written by this crate.
  redis.call('DEL', key)
end
version, count, endless, latest = tonumber(version), tonumber(count), tonumber(endless), tonumber(latest)

-- Returns the instant at which a line ends; nil if never.
local function end_of(line)
  return tonumber(string.match(line, '^%S+ (%d+) '))
end
local function account(line, difference)
  count = count + difference
  local ends = end_of(line)
  if not ends then
    endless = endless + difference
  elseif difference > 0 then
    latest = math.max(latest, ends)
  end
end
-- Returns the lines of a field that have not ended and are not replaced, and how many were replaced.
local function filter(text, is_replaced)
  local kept, replaced = {}, 0
  for line in string.gmatch(text, '[^\n]+') do
    local ends = end_of(line)
    if is_replaced(string.match(line, '^%S+')) then
      account(line, -1)
      replaced = replaced + 1
    elseif ends and ends <= now then
      account(line, -1)
    else
      kept[#kept + 1] = line
    end
  end
  return kept, replaced
end
local function write(name, lines)
  if #lines == 0 then
    redis.call('HDEL', key, name)
  else
    redis.call('HSET', key, name, table.concat(lines, '\n'))
  end
end

-- Removes ended overrides from about this many fields.
local function sweep(fields)
  local page = redis.call('HSCAN', key, cursor, 'COUNT', fields)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    local name, text = page[2][i], page[2][i + 1]
    if name ~= 'head' and name ~= field and string.sub(name, 1, 4) ~= 'log:' then
      local before = count
      local kept = filter(text, function() return false end)
      if count < before then
        write(name, kept)
      end
    end
  end
end
local function write_head()
  head = string.format('%s %.0f %.0f %.0f %.0f %s', id, version, count, endless, latest, cursor)
  redis.call('HSET', key, 'head', head)
end

-- Ends a call that changes no override of the field. `count` and `endless` are those before the call.
local function unchanged(result, before)
  count, endless = before.count, before.endless
  if count == 0 then
    redis.call('DEL', key)
  else
    write_head()
  end
  return result
end

if now > 0 then
  sweep(count < max and 16 or 1000)
end
local before = { count = count, endless = endless }
local lines, removed = filter(redis.call('HGET', key, field) or '', function(stored_window)
  return verb == 'remove' or window == '*' or stored_window == '*' or stored_window == window
end)
if verb == 'remove' and removed == 0 then
  return unchanged(0, before)
end
if verb == 'set' then
  if count >= max then
    return unchanged(-1, before)
  end
  local line = window .. ' ' .. value
  account(line, 1)
  lines[#lines + 1] = line
end
write(field, lines)

if count == 0 then
  redis.call('DEL', key)
  return removed
end
version, id = version + 1, ARGV[7]
table.insert(lines, 1, id .. '\n' .. subject)
redis.call('HSET', key, 'log:' .. version, table.concat(lines, '\n'))
redis.call('HDEL', key, 'log:' .. (version - log))
write_head()
if endless > 0 or now == 0 then
  redis.call('PERSIST', key)
else
  redis.call('PEXPIRE', key, math.max(math.ceil((latest - now) / 1000), 1))
end
return removed
