
-- What sliding logs and sliding buckets have in common: a queue of entries, oldest first, each an
-- instant (or the number of a bucket, of this width) and what was charged then. Buckets without a
-- charge have no entry. See algorithm/sliding_log.rs and algorithm/sliding_buckets.rs.
--
-- The newest entries are in the record, which is all there is of most queues. When they are too
-- many, they become a chunk in a field of its own, with their sum in front. So one decision reads
-- and writes a few hundred bytes, however long the queue is.
local function chunk_name(id, number)
  return id .. write('<I4', number)
end

steps[QUEUE] = function(what, record, now, cost, charged_at, amount, window, width, _, key, id)
  -- The chunks from `first` up to, but not including, `last`; of the first, `skip` entries are gone.
  local total, entries, first, last, skip, tail = 0, 0, 0, 0, 0, ''
  if record and #record >= QUEUE_BYTES and (#record - QUEUE_BYTES) % ENTRY_BYTES == 0 then
    total, entries, first, last, skip = read('<I7I4I4I4I1', record, HEAD_BYTES + 1)
    tail = string.sub(record, QUEUE_BYTES + 1)
  end
  if first > last or last - first > MOST_CHUNKS then
    -- Nothing of ours; and nobody should wait for somebody who counts to four billion.
    total, entries, first, last, skip, tail = 0, 0, 0, 0, 0, ''
  end
  local function slot(at)
    return width > 0 and (at - at % width) / width or at
  end
  -- When an entry leaves the window; a bucket does with its last instant.
  local function leaves_at(at)
    return width > 0 and (at + 1) * width - 1 + window or at + window
  end
  local function entry(part, number)
    return read('<I7I7', part, number * ENTRY_BYTES + 1)
  end
  -- The entries of a chunk and their sum; or those in the record, whose sum nobody knows.
  local function load(number)
    if number == last then
      return tail, #tail / ENTRY_BYTES
    end
    local chunk = call('HGET', key, chunk_name(id, number))
    if not chunk or #chunk < SUM_BYTES or (#chunk - SUM_BYTES) % ENTRY_BYTES > 0 then
      return '', 0, 0
    end
    return string.sub(chunk, SUM_BYTES + 1), (#chunk - SUM_BYTES) / ENTRY_BYTES, (read('<I7', chunk))
  end

  -- What has left: everything before entry `skip` of chunk `number`.
  local number, gone, gone_entries = first, 0, 0
  local part, size, sum = load(number)
  while number < last or skip < size do
    if skip == size then
      number, skip = number + 1, 0
      part, size, sum = load(number)
    elseif sum and skip == 0 and leaves_at((entry(part, size - 1))) <= now then
      gone, gone_entries, skip = gone + sum, gone_entries + size, size
    else
      local at, charged = entry(part, skip)
      if leaves_at(at) > now then
        break
      end
      gone, gone_entries, skip = gone + charged, gone_entries + 1, skip + 1
    end
  end
  if number == last and skip == size then
    gone, gone_entries = total, entries
  end
  total, entries = total - gone, entries - gone_entries

  if what <= TAKE then
    if cost > amount or cost == 0 and total <= amount then
      local whole_at = total > 0 and leaves_at((entry(tail, #tail / ENTRY_BYTES - 1))) or now
      return cost > amount and NEVER or ALLOWED, total, whole_at
    end
    local needed = total - (amount - cost)
    if needed <= 0 then
      -- The chunks are written when everybody has agreed.
      return ALLOWED, total + cost, leaves_at(slot(now)), what == TAKE
    end
    -- The entry with which enough will have left. Whole chunks are passed over by their sums.
    while number < last or skip < size do
      if skip == size then
        number, skip = number + 1, 0
        part, size, sum = load(number)
      elseif sum and skip == 0 and sum < needed then
        needed, skip = needed - sum, size
      else
        local at, charged = entry(part, skip)
        if charged >= needed then
          return DENIED, total, leaves_at(at)
        end
        needed, skip = needed - charged, skip + 1
      end
    end
    return DENIED, total, now
  end

  for old = first, number - 1 do
    call('HDEL', key, chunk_name(id, old))
  end
  first = number
  if first == last then
    tail, skip = string.sub(tail, skip * ENTRY_BYTES + 1), 0
  end

  if what == GIVE_BACK then
    -- From the newest backwards, to where the entry must be.
    local wanted, begin = slot(charged_at), 0
    number = last
    part, size, sum = load(number)
    while number > first and (size == 0 or entry(part, 0) > wanted) do
      number = number - 1
      part, size, sum = load(number)
    end
    if number == first then
      begin = skip
    end
    for place = begin, size - 1 do
      local at, charged = entry(part, place)
      if at == wanted then
        local given = cost < charged and cost or charged
        local before = string.sub(part, 1, place * ENTRY_BYTES)
        local rest = string.sub(part, (place + 1) * ENTRY_BYTES + 1)
        if given < charged then
          rest = write('<I7I7', at, charged - given) .. rest
        else
          entries = entries - 1
        end
        total, part = total - given, before .. rest
        if number == last then
          tail = part
        elseif #part == 0 then
          call('HDEL', key, chunk_name(id, number))
        else
          call('HSET', key, chunk_name(id, number), write('<I7', sum - given) .. part)
        end
        break
      end
    end
    -- The newest entry is always in the record: if that is empty, it takes the last chunk back.
    while #tail == 0 and first < last do
      tail = load(last - 1)
      last = last - 1
      call('HDEL', key, chunk_name(id, last))
      if first == last then
        tail, skip = string.sub(tail, skip * ENTRY_BYTES + 1), 0
      end
    end
    if #tail == 0 then
      total, entries = 0, 0
    end
  elseif total < MAX_COUNT then
    cost = cost < MAX_COUNT - total and cost or MAX_COUNT - total
    total = total + cost
    local at, count = slot(now), #tail / ENTRY_BYTES
    local newest, charged = nil, 0
    if count > 0 then
      newest, charged = entry(tail, count - 1)
    end
    if newest and (newest == at or width == 0 and entries >= amount) then
      -- Only charges that nobody asked about can overfill a log. They then share the last entry,
      -- which leaves no earlier than any of them should.
      tail = string.sub(tail, 1, -ENTRY_BYTES - 1) .. write('<I7I7', at, charged + cost)
    else
      if count == CHUNK_ENTRIES then
        sum = 0
        for place = 0, count - 1 do
          local _, charged = entry(tail, place)
          sum = sum + charged
        end
        call('HSET', key, chunk_name(id, last), write('<I7', sum) .. tail)
        last, tail = last + 1, ''
      end
      tail, entries = tail .. write('<I7I7', at, cost), entries + 1
    end
  end
  local expires = #tail > 0 and leaves_at((entry(tail, #tail / ENTRY_BYTES - 1))) or 0
  local head = write('<I7I7I7I4I4I4I1', expires, now, total, entries, first, last, skip)
  return ALLOWED, total, expires, head .. tail, expires
end
