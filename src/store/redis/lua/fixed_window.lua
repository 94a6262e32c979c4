
-- Where the aligned window around `now` ends: of a fixed length, or of so many calendar months in
-- UTC, counted from January 1970. See calendar.rs.
local function window_end(now, window, months)
  if months == 0 then
    return now - now % window + window
  end
  local floor = math.floor
  local day = floor(now / DAY) + 719468 -- since 0000-03-01
  local era = floor(day / 146097) -- of 400 years
  day = day % 146097
  local year = floor((day - floor(day / 1460) + floor(day / 36524) - floor(day / 146096)) / 365)
  day = day - (365 * year + floor(year / 4) - floor(year / 100))
  local month = (era * 400 + year) * 12 + floor((5 * day + 2) / 153) + 2 - 1970 * 12
  -- The first day after the block of months, by the inverse of the formula.
  month = (floor(month / months) + 1) * months + 1970 * 12 - 2
  year = floor(month / 12)
  day = year * 365 + floor(year / 4) - floor(year / 100) + floor(year / 400)
  return (day + floor((153 * (month % 12) + 2) / 5) - 719468) * DAY
end

-- One counter per aligned window. State: count I7. The window is the one around `seen`, so it is not
-- stored. See algorithm/fixed_window.rs.
formats[FIXED] = '<c6I4I7I7'
steps[FIXED] = function(what, now, cost, amount, window, months, _, _, _, seen, count)
  if seen and seen > now then
    -- The server's clock was set back. A calendar window does not reopen: it waits until its end.
    now = seen
  end
  local stop = window_end(now, window, months)
  if not seen or months == 0 and seen < stop - window
    or months > 0 and window_end(seen, window, months) < stop then
    count = 0
  end
  if what <= TRY_CHARGE then
    if cost > amount - count then
      return cost > amount and NEVER or DENIED, count, stop
    end
    if what == EVALUATE or cost == 0 then
      return ALLOWED, count + cost, stop
    end
  end
  if what == UNDO then
    if window_end(charged_at, window, months) == stop then
      count = count > cost and count - cost or 0
    end
  else
    count = cost < MAX_COUNT - count and count + cost or MAX_COUNT
  end
  local expires = count > 0 and stop or 0
  local second = (expires + -expires % SECOND) / SECOND
  second = second < LAST_SECOND and second or LAST_SECOND
  return ALLOWED, count, stop, struct.pack('<I4I7I7', second, now, count), expires, second
end
