
-- Two counters: of the current window, and of the previous one, whose weight falls linearly to 0:
-- used = current + floor(previous * (W - elapsed - 1) / W), in ticks.
-- State: current I4, previous I4. The current window contains `seen`, so its start is not stored. Limits and
-- counts are below 2^32: larger limits are rejected when a quota is built, larger counts are cut off at
-- `most`. See algorithm/sliding_window.rs.
formats[SLIDING] = '<c6I4I7I4I4'
steps[SLIDING] = function(
  what, now, cost, amount, window, tick, most, _, _, seen, current, previous
)
  local start = now - now % window
  local stop = start + window
  if not seen or seen < start then
    previous, current = seen and seen >= start - window and current or 0, 0
  end
  local used = 0
  if what <= TRY_CHARGE then
    local counted, fading = current, previous
    if counted > most then
      counted = most
    end
    if fading > most then
      fading = most
    end
    local ticks, elapsed = window / tick, now - start
    local weight = fading * (ticks - (elapsed - elapsed % tick) / tick - 1)
    used = counted + (weight - weight % ticks) / ticks
    if cost > amount then
      return NEVER, used, stop
    end
    if cost > amount - used then
      -- Room comes as the previous window fades. If this window alone has too much, it has to become
      -- the previous one first.
      local room, from = amount - cost, start
      if counted > room then
        counted, fading, from = 0, counted, stop
      end
      fading = fading > 0 and fading or 1
      weight = (room - counted + 1) * ticks - 1
      return DENIED, used, from + (ticks - 1 - (weight - weight % fading) / fading) * tick
    end
    used = used + cost
    if what == EVALUATE or cost == 0 then
      return ALLOWED, used, stop
    end
  end
  if what == UNDO then
    local charged_in = charged_at - charged_at % window
    if charged_in == start then
      current = current > cost and current - cost or 0
    elseif charged_in + window == start then
      previous = previous > cost and previous - cost or 0
    end
  elseif cost < most - current then
    current = current + cost
  elseif current < most then
    -- Under a smaller amount it may exceed its largest number already.
    current = most
  end
  local expires = current > 0 and stop + window or previous > 0 and stop or 0
  local second = (expires + -expires % SECOND) / SECOND
  second = second < LAST_SECOND and second or LAST_SECOND
  return ALLOWED, used, stop, struct.pack('<I4I7I4I4', second, now, current, previous), expires, second
end
