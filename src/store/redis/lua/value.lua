
-- Reads a key or a field. A key of another type counts as absent.
local function fetch(...)
  local found = attempt(...)
  if type(found) ~= 'table' then
    return found
  end
  if not string.find(found.err, 'WRONGTYPE', 1, true) then
    error(found)
  end
  return false
end

-- The value of a subject's key is a string: records without a separator, in no particular order.
--
--   id c5, shape B, expires I4, seen I7, state
--
--  * shape = kind × 16 + length of the state. A record of an unknown kind is skipped by its length and
--    stays as it is. Id and shape together identify a record.
--  * expires: second (Unix time, rounded up) from which the counter is worth as much as none. 2^32 - 1
--    stands for every later one, and is never taken for past.
--  * seen: instant of the last write. Time of a counter never goes back before it.
--
-- A string that is not made of whole records counts as empty. It is replaced by the next write.

-- Where each record starts, by id and shape, and the latest second at which one expires.
-- Returns nil if the value is malformed.
local function scan(value)
  local positions, at, size, latest = {}, 1, #value, 0
  while at + RECORD_BYTES - 1 <= size do
    local head, expires = read('<c6I4', value, at)
    positions[head] = at
    latest = expires > latest and expires or latest
    at = at + RECORD_BYTES + byte(head, HEAD_BYTES) % 16
  end
  if at == size + 1 then
    return positions, latest
  end
end

-- The value without records that have expired at `now`, and without those whose ids `is_removed` names,
-- if it is given. Returns it with the number of records left, the number that were dropped, and the ids
-- of the logs among these. The value must be well formed.
local function without_expired(value, now, is_removed)
  local kept, dropped, logs, at, size = {}, 0, {}, 1, #value
  while at <= size do
    local id, shape, expires = read('<c5BI4', value, at)
    local following = at + RECORD_BYTES + shape % 16
    if is_removed and is_removed(id) or expires * SECOND <= now and expires < LAST_SECOND then
      dropped = dropped + 1
      if shape == LOG then
        logs[#logs + 1] = id
      end
    else
      kept[#kept + 1] = sub(value, at, following - 1)
    end
    at = following
  end
  return table.concat(kept), #kept, dropped, logs
end

-- Reads `seen` and the state of a record.
local function read_state(kind, text, at)
  if kind == SLIDING then
    return read('<I7I4I4', text, at)
  elseif kind == FIXED then
    return read('<I7I7', text, at)
  elseif kind == TOKEN then
    return read('<I7I6I7B', text, at)
  end
  return read('<I7', text, at)
end
