
-- Sliding logs and sliding buckets: a queue of entries, oldest first, each an instant (or the number of
-- a bucket of `width`) and what was charged then. Buckets without a charge have no entry. See
-- algorithm/sliding_log.rs and algorithm/sliding_buckets.rs.
--
-- State of the record: shift I7. The queue is counted in a time of its own, which is `shift` ahead of the
-- clock. The shift grows when the server's clock is set back, so the time of the queue never goes back.
-- The queue is a hash with a key of its own:
--
--  * field `h`: total I7, start I7, entries I4, index I4, first I4, last I4, skip I1, and the newest
--    entries (at I7, charged I7), the tail. At least one, unless the queue is empty.
--  * field of a number I4, from `first` up to, but not including, `last`: a chunk of older entries.
--    before I7, index I4, from I7, entries. The first `skip` entries of the first chunk have left.
--
-- `before` is the sum of all charges before the chunk, `index` the number of entries before it, both
-- since the queue began and without those that were refunded. In field `h`, `start` and `index` are the
-- sum and the number before the oldest entry that is left. `from` is no later than the first entry of the chunk, and
-- later than every entry before it. Sums are taken modulo 2^53, numbers of entries modulo 2^32: only
-- differences matter, and these are smaller.
--
-- So a chunk is found by instant or by sum in a binary search. A decision reads a few chunks however
-- long the queue is, and expired chunks are dropped, or left out, without being read.

local read, write, call, sub = struct.unpack, struct.pack, redis.call, string.sub

-- a + b and a - b modulo 2^53, without a result beyond it in between.
local function plus(a, b)
  local room = TWO_TO_53 - b
  return a >= room and a - room or a + b
end
local function minus(a, b)
  return a >= b and a - b or a + (TWO_TO_53 - b)
end

formats[LOG] = '<c6I4I7I7'
steps[LOG] = function(what, now, cost, amount, window, width, _, _, key, seen, shift)
  shift = seen and shift or 0
  now = now + shift
  local total, start, entries, index, first, last, skip, tail = 0, 0, 0, 0, 0, 0, 0, ''
  local record = seen and redis.pcall('HGET', key, 'h')
  if record and record.err then
    if not record.err:find('WRONGTYPE', 1, true) then
      error(record)
    end
    record = nil
  end
  local is_new = not record or #record < LOG_HEAD_BYTES
    or (#record - LOG_HEAD_BYTES) % ENTRY_BYTES > 0
  if not is_new then
    total, start, entries, index, first, last, skip = read('<I7I7I4I4I4I4I1', record)
    tail = sub(record, LOG_HEAD_BYTES + 1)
    if first > last or last - first > MOST_CHUNKS then
      -- Malformed. A loop over four billion chunks would block the server.
      is_new, total, start, entries, index, first, last, skip, tail = true, 0, 0, 0, 0, 0, 0, 0, ''
    end
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
  -- The entries of a chunk, their number, and its head; or the tail, which has no head. A chunk that is
  -- missing or malformed has no entries.
  local function load(number)
    if number == last then
      return tail, #tail / ENTRY_BYTES
    end
    local chunk = call('HGET', key, write('<I4', number))
    if not chunk or #chunk < CHUNK_HEAD_BYTES or (#chunk - CHUNK_HEAD_BYTES) % ENTRY_BYTES > 0 then
      return '', 0
    end
    local before, stored_index, from = read('<I7I4I7', chunk)
    return sub(chunk, CHUNK_HEAD_BYTES + 1), (#chunk - CHUNK_HEAD_BYTES) / ENTRY_BYTES, before,
      stored_index, from
  end
  local function tail_sum()
    local sum = 0
    for number = 0, #tail / ENTRY_BYTES - 1 do
      local _, charged = entry(tail, number)
      sum = sum + charged
    end
    return sum
  end
  -- Returns the last of the chunks from `low` to `high` for which `is_before` holds. Precondition: it
  -- holds for `low`, which is not tested.
  local function search(low, high, is_before)
    while low < high do
      local middle = low + math.ceil((high - low) / 2)
      if is_before(middle) then
        low = middle
      else
        high = middle - 1
      end
    end
    return low
  end

  -- What has left: everything before entry `place` of chunk `number`.
  local number, place, gone, gone_entries = first, skip, 0, 0
  local tail_size = #tail / ENTRY_BYTES
  local newest = tail_size > 0 and leaves_at((entry(tail, tail_size - 1))) or 0
  local part, size
  if newest <= now then
    number, place, gone, gone_entries, part, size = last, tail_size, total, entries, tail, tail_size
  else
    part, size = load(number)
    if number < last and (size == 0 or leaves_at((entry(part, size - 1))) <= now) then
      number = search(first + 1, last, function(middle)
        if middle == last then
          return leaves_at((entry(tail, 0))) <= now
        end
        local _, _, _, _, from = load(middle)
        return not from or leaves_at(from) <= now
      end)
      local before, stored_index
      part, size, before, stored_index = load(number)
      if number == last then
        gone, gone_entries = total - tail_sum(), entries - tail_size
      elseif before then
        gone, gone_entries = minus(before, start), (stored_index - index) % TWO_TO_32
      end
      place = 0
    end
    while place < size do
      local at, charged = entry(part, place)
      if leaves_at(at) > now then
        break
      end
      gone, gone_entries, place = gone + charged, gone_entries + 1, place + 1
    end
  end
  -- `gone` exceeds `total` only if a chunk was lost.
  total = total > gone and total - gone or 0
  entries = entries > gone_entries and entries - gone_entries or 0
  start, index = plus(start, gone % TWO_TO_53), (index + gone_entries) % TWO_TO_32

  -- When enough will have left for this much more than the amount.
  local function free_at(needed)
    local whole = needed
    while place < size or number < last do
      while place < size do
        local at, charged = entry(part, place)
        if charged >= needed then
          return leaves_at(at)
        end
        needed, place = needed - charged, place + 1
      end
      if number < last then
        local before
        number = search(number + 1, last, function(middle)
          if middle == last then
            return total - tail_sum() < whole
          end
          local _, _, stored_before = load(middle)
          return not stored_before or minus(stored_before, start) < whole
        end)
        part, size, before = load(number)
        place = 0
        if number == last then
          needed = whole - (total - tail_sum())
        elseif before then
          needed = whole - minus(before, start)
        end
      end
    end
    return now
  end

  local outcome, used, reset = ALLOWED, nil, nil
  if what <= CHARGE_AT_ONCE then
    local dropped = number
    local needed = total - (amount - cost)
    if cost > amount or cost == 0 and total <= amount then
      outcome, used = cost > amount and NEVER or ALLOWED, total
      reset = total > 0 and newest or now
    elseif needed <= 0 then
      used, reset = total + cost, leaves_at(slot(now))
    else
      local stops_at = place
      outcome, used, reset = DENIED, total, free_at(needed)
      number, place = dropped, stops_at
    end
    local charges = outcome == ALLOWED and cost > 0
    if what ~= CHARGE_AT_ONCE or not charges and number == first then
      return outcome, used, reset - shift, what == TRY_CHARGE and (charges or number > first)
    end
    what = charges and CHARGE or DROP
  end

  if is_new then
    -- Whatever is there belongs to another counter or to a lost one.
    call('DEL', key)
  end
  -- Drops the chunks that have left, a few hundred per call: each name takes a place on Lua's stack.
  while first < number do
    local names, stop = {}, number < first + CHUNKS_PER_CALL and number or first + CHUNKS_PER_CALL
    for old = first, stop - 1 do
      names[#names + 1] = write('<I4', old)
    end
    call('HDEL', key, unpack(names))
    first = stop
  end
  skip = place
  if first == last then
    tail, skip = sub(tail, skip * ENTRY_BYTES + 1), 0
  end

  if what == UNDO then
    -- From the newest chunk backwards, to where the entry must be.
    local wanted, before, stored_index, from = slot(charged_at + shift), nil, nil, nil
    number = last
    part, size = load(number)
    from = size > 0 and entry(part, 0)
    while number > first and (not from or from > wanted) do
      number = number - 1
      part, size, before, stored_index, from = load(number)
    end
    for spot = number == first and skip or 0, size - 1 do
      local at, charged = entry(part, spot)
      if at == wanted then
        local given = cost < charged and cost or charged
        local rest = sub(part, (spot + 1) * ENTRY_BYTES + 1)
        local removed = given == charged and 1 or 0
        if removed == 0 then
          rest = write('<I7I7', at, charged - given) .. rest
        end
        total, entries = total - given, entries - removed
        part = sub(part, 1, spot * ENTRY_BYTES) .. rest
        if number == last then
          tail = part
        else
          call('HSET', key, write('<I4', number), write('<I7I4I7', before, stored_index, from) .. part)
          -- The chunks after it begin that much earlier in the sums.
          for later = number + 1, last - 1 do
            part, size, before, stored_index, from = load(later)
            if before then
              before, stored_index = minus(before, given), (stored_index - removed) % TWO_TO_32
              call('HSET', key, write('<I4', later), write('<I7I4I7', before, stored_index, from) .. part)
            end
          end
        end
        break
      end
    end
    -- The newest entry is always in the tail: if that is empty, it takes the last chunk back.
    while #tail == 0 and first < last do
      local taken = load(last - 1)
      last = last - 1
      tail = taken
      call('HDEL', key, write('<I4', last))
      if first == last then
        tail, skip = sub(tail, skip * ENTRY_BYTES + 1), 0
      end
    end
    if #tail == 0 then
      total, entries = 0, 0
    end
  elseif what == CHARGE and total < MAX_COUNT then
    cost = cost < MAX_COUNT - total and cost or MAX_COUNT - total
    local at, count = slot(now), #tail / ENTRY_BYTES
    local last_at, charged = nil, 0
    if count > 0 then
      last_at, charged = entry(tail, count - 1)
    end
    if last_at and (last_at == at or width == 0 and entries >= amount) then
      -- Only `record` can overfill a log. Its charges then share the last entry, which leaves no
      -- earlier than any of them would.
      tail = sub(tail, 1, -ENTRY_BYTES - 1) .. write('<I7I7', at, charged + cost)
    else
      if count == CHUNK_ENTRIES then
        local head = write('<I7I4I7', plus(start, total - tail_sum()),
          (index + entries - count) % TWO_TO_32, (entry(tail, 0)))
        call('HSET', key, write('<I4', last), head .. tail)
        last, tail = last + 1, ''
      end
      tail, entries = tail .. write('<I7I7', at, cost), entries + 1
    end
    total = total + cost
  end
  local expires = #tail > 0 and leaves_at((entry(tail, #tail / ENTRY_BYTES - 1))) - shift or 0
  call('HSET', key, 'h',
    write('<I7I7I4I4I4I4I1', total, start, entries, index, first, last, skip) .. tail)
  local second = (expires + -expires % SECOND) / SECOND
  second = second < LAST_SECOND and second or LAST_SECOND
  return outcome, used, reset and reset - shift, write('<I4I7I7', second, now - shift, shift), expires,
    second, is_new
end
