
-- How long a key lives, in milliseconds, whose counters expire at an instant and in a second.
--
-- It is counted from the clock, which may be behind the instant that its counters have seen: a key that
-- ended before its window would admit that window's amount once more. A clock that is a day behind has
-- been corrected. Then the key ends with its window, not on the day that the wrong clock had shown.
local function lifetime(expires, second, now)
  local from, other = now - clock > DAY and now or clock, second * SECOND
  if second == LAST_SECOND then
    other = MAX_COUNT
  end
  expires = other > expires and other or expires
  return expires > from and math.ceil((expires - from) / 1000) + slack or slack
end

-- Restores the time to live of a key that is read but not written: it was lost (PERSIST, a copy), or it
-- goes by a clock that was wrong by more than a day.
local function heal(key, second, now)
  local left = call('PTTL', key)
  if left == -1 or now - clock > DAY and left * 1000 > second * SECOND - now + DAY then
    call('PEXPIRE', key, lifetime(0, second, now))
  end
end
