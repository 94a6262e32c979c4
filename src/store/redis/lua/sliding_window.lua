
-- Two counters, the older one fading out. See algorithm/sliding_window.rs.
steps[SLIDING] = function(
  what, record, now, cost, charged_at, amount, window, tick, most, _, _, start, current, previous
)
  if not start then
    start, current, previous = 0, 0, 0
    if record and #record == SLIDING_BYTES then
      start, current, previous = read('<I7I4I4', record, HEAD_BYTES + 1)
    end
  end
  local stop = start + window
  if now >= stop then
    start = now - now % window
    previous, current = start == stop and current or 0, 0
    stop = start + window
  end
  local used = 0
  if what <= TAKE then
    local counted, fading = current, previous
    if counted > most then
      counted = most
    end
    if fading > most then
      fading = most
    end
    local ticks, elapsed = window / tick, now > start and now - start or 0
    local weight = counted * ticks + fading * (ticks - (elapsed - elapsed % tick) / tick)
    used = (weight + -weight % ticks) / ticks
    if cost > amount then
      return NEVER, used, stop
    end
    if cost > amount - used then
      -- There is room while the previous window fades, or, failing that, while this one does.
      local room, from = amount - cost, start
      if counted > room then
        counted, fading, from = 0, counted, stop
      end
      fading = fading > 0 and fading or 1
      weight = (room - counted) * ticks
      return DENIED, used, from + (ticks - (weight - weight % fading) / fading) * tick
    end
    used = used + cost
    if what == ASK or cost == 0 then
      return ALLOWED, used, stop
    end
  end
  if what == GIVE_BACK then
    local charged_in = charged_at - charged_at % window
    if charged_in == start then
      current = current > cost and current - cost or 0
    elseif charged_in + window == start then
      previous = previous > cost and previous - cost or 0
    end
  elseif cost < most - current then
    current = current + cost
  elseif current < most then
    -- Under a smaller amount it may be past its largest number already.
    current = most
  end
  local expires = current > 0 and stop + window or previous > 0 and stop or 0
  record = write('<I7I7I7I4I4', expires, now, start, current, previous)
  return ALLOWED, used, stop, record, expires
end
