
local function forget(key, id, record)
  call('HDEL', key, id)
  if #record >= QUEUE_BYTES then
    -- A queue, with its chunks.
    local first, last = read('<I4I4', record, HEAD_BYTES + 12)
    for number = first, math.min(last - 1, first + MOST_CHUNKS) do
      call('HDEL', key, id .. write('<I4', number))
    end
  end
end

-- Drops the counters of a key that are worth nothing any more. Says for how long the others need
-- the key, and how many were dropped.
local function tend(key, now)
  local needed, dropped, fields = 0, 0, call('HGETALL', key)
  for i = 1, #fields, 2 do
    local id, record = fields[i], fields[i + 1]
    if #id == ID_BYTES then
      local expires = #record > HEAD_BYTES and read('<I7', record) or 0
      if expires > now then
        needed = expires - now > needed and expires - now or needed
      else
        forget(key, id, record)
        dropped = dropped + 1
      end
    end
  end
  return needed, dropped
end
