
-- Writes the value of a key, or sets the time to live of a key.
--
--  * `new` is the value with the charges. It has the records of `old`, the value before. `added` are new
--    records; they replace those that have expired. Without `new`, only the time to live is set.
--  * `expires` is the instant at which the latest of the charged records expires, `second` its second,
--    rounded up. Below 0, nothing is charged. Then the time to live is restored if it was lost (PERSIST, a
--    copy), or if it follows a clock that was wrong by more than a day.
--
-- SET with a time to live is used if a record is new, if the key has to live longer, or in the first
-- decision of a second (`is_due`); otherwise SETRANGE, which keeps the time to live.
local function save(key, old, new, added, expires, second, is_due, clock, now, slack)
  local latest, kept, at, size = new and 0 or second, '', 1, #old
  while at <= size do
    local shape, stored_second = struct.unpack('<BI4', old, at + RECORD_HEAD_BYTES - 1)
    local following = at + RECORD_BYTES + shape % 16
    latest = stored_second > latest and stored_second or latest
    if added ~= '' then
      -- It may have been charged: then it expires later than it did.
      stored_second = struct.unpack('<I4', new, at + RECORD_HEAD_BYTES)
      if stored_second * SECOND > now or stored_second == LAST_SECOND then
        kept = kept .. new:sub(at, following - 1)
      end
    end
    at = following
  end

  -- The time is counted from the clock, which may be behind the instant that the counters have seen: a
  -- key that ended before its window would admit that window's amount once more. A clock that is a day
  -- behind has been corrected. Then the key ends with its window, not on the day that the wrong clock had
  -- shown.
  local from, stop = now - clock > DAY and now or clock, latest * SECOND
  if latest == LAST_SECOND then
    stop = MAX_COUNT
  end
  stop = expires > stop and expires or stop
  local time = stop > from and math.ceil((stop - from) / 1000) + slack or slack

  if expires < 0 then
    local left = redis.call('PTTL', key)
    if left == -1 or now - clock > DAY and left * 1000 > latest * SECOND - now + DAY then
      redis.call('PEXPIRE', key, time)
    end
  elseif not new then
    redis.call('PEXPIRE', key, time)
  elseif added ~= '' then
    redis.call('SET', key, kept .. added, 'PX', time)
  elseif is_due or second > latest then
    redis.call('SET', key, new, 'PX', time)
  else
    redis.call('SETRANGE', key, '0', new)
  end
end
