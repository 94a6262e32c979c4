
-- What concerns whole keys: forgets some counters of one of them, or counts those of several, or
-- drops those that are worth nothing any more.
local verb, now, answer = ARGV[1], tonumber(ARGV[2]), 0
for _, key in ipairs(KEYS) do
  if verb == 'forget' then
    for i = 3, #ARGV do
      local record = redis.pcall('HGET', key, ARGV[i])
      if type(record) == 'string' then
        forget(key, ARGV[i], record)
      end
    end
  elseif call('TYPE', key).ok == 'hash' then
    if verb == 'sweep' then
      local _, dropped = tend(key, now)
      answer = answer + dropped
    else
      for _, id in ipairs(call('HKEYS', key)) do
        answer = answer + (#id == ID_BYTES and 1 or 0)
      end
    end
  end
end
return answer
