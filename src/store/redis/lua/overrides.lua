-- Sets or removes the overrides of one subject under one rule, and drops those that are over. They
-- are the fields of one key: the hash of subject and rule, a colon, and the window, or a star for
-- those that are for all windows. Whoever changes something changes the version, too.
local verb, whose, window, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local key, by_server, removed, longest = KEYS[1], ARGV[5] == 'server', 0, 0
local now = 0
if by_server then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local function ends(text)
  return tonumber(string.match(text, '^%d+')) or math.huge
end

if redis.call('TYPE', key).ok ~= 'hash' then
  redis.call('DEL', key)
end
local fields = redis.call('HGETALL', key)
for i = 1, #fields, 2 do
  local name, text = fields[i], fields[i + 1]
  local of_them = string.sub(name, 1, #whose + 1) == whose .. ':'
  local its_window = string.sub(name, #whose + 2)
  local replaced = verb == 'remove' or window == '*' or its_window == '*' or its_window == window
  if of_them and replaced then
    redis.call('HDEL', key, name)
    removed = removed + 1
  elseif name ~= 'version' then
    if by_server and ends(text) <= now then
      redis.call('HDEL', key, name)
    else
      longest = math.max(longest, ends(text))
    end
  end
end
if verb == 'set' then
  redis.call('HSET', key, whose .. ':' .. window, value)
  longest = math.max(longest, ends(value))
end
if longest == 0 then
  redis.call('DEL', key)
else
  redis.call('HSET', key, 'version', ARGV[6])
  if longest == math.huge or not by_server then
    redis.call('PERSIST', key)
  else
    redis.call('PEXPIRE', key, math.max(math.ceil((longest - now) / 1000), 1))
  end
end
return removed
