
-- The second in which an instant ends, as a record stores it.
local function second_of(expires)
  local second = (expires + -expires % SECOND) / SECOND
  return second < LAST_SECOND and second or LAST_SECOND
end

-- The instant at which a record expires that stores this second.
local function instant_of(second)
  return second < LAST_SECOND and second * SECOND or MAX_COUNT
end

-- How long a key lives whose last counter expires at this instant, in milliseconds.
--
-- It is counted from the clock, which may be behind the instant that its counters have seen: a key that
-- ended before its window would admit that window's amount once more. A clock that is a day behind has
-- been corrected. Then the key ends with its window, not on the day that the wrong clock had shown.
local function lifetime(expires, now)
  local from = now - clock > DAY and now or clock
  local left = expires > from and expires - from or 0
  return math.ceil((left < MAX_COUNT and left or MAX_COUNT) / 1000) + slack
end

-- Restores the time to live of a key that is read but not written: it was lost (PERSIST, a copy), or it
-- goes by a clock that was wrong by more than a day.
local function heal(key, expires, now)
  local left = call('PTTL', key)
  if left == -1 or now - clock > DAY and left * 1000 > expires - now + DAY then
    call('PEXPIRE', key, lifetime(expires, now))
  end
end
