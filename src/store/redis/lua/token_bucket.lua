
-- A bucket of permits that refills steadily, as what is missing from it, in permits × ticks. State:
-- level I6 (what is missing), filled I7 (until when refilling is accounted for), power B: the level is
-- counted in ticks of 10^power microseconds. See algorithm/token_bucket.rs.
formats[TOKEN] = '<c6I4I7I6I7B'
steps[TOKEN] = function(
  what, now, cost, amount, window, tick, burst, power, _, seen, level, filled, stored_power
)
  local factor = 1
  if not seen or stored_power > MAX_POWER then
    level, filled, stored_power = 0, 0, power
  end
  if stored_power ~= power then
    -- Last charged under an amount that is counted in other ticks.
    local stored_tick = 10 ^ stored_power
    if stored_tick > tick then
      -- A debt may be more than these ticks can count. Then it is refilled in its own, each of
      -- which is `factor` of these, and stays in them if it still is too much.
      factor = stored_tick / tick
      if level * factor > MAX_LEVEL and now - now % stored_tick > filled then
        local ticks = (now - now % stored_tick - filled) / stored_tick
        ticks = ticks - ticks % 1
        filled = filled + ticks * stored_tick
        level = level > ticks * amount and level - ticks * amount or 0
      end
      if level * factor <= MAX_LEVEL then
        level, factor = level * factor, 1
      end
    else
      local smaller = tick / stored_tick
      level = (level + -level % smaller) / smaller
    end
    if factor == 1 then
      filled = filled + -filled % tick
    end
  end
  if factor == 1 and now - now % tick > filled then
    local refill = (now - now % tick - filled) / tick * amount
    filled = now - now % tick
    level = level > refill and level - refill or 0
  end
  local permit = window / tick / factor -- its weight

  -- How long it takes to refill what is missing: missing × factor / amount ticks, rounded up. The
  -- whole amounts in it are taken out first, so that no product grows too large.
  local function refills_in(missing)
    local rest = missing % amount
    local ticks = (missing - rest) / amount * factor
    rest = rest * factor
    return (ticks + (rest + -rest % amount) / amount) * tick
  end

  local used, taken_from = 0, filled
  if factor == 1 and cost > 0 and level < amount and now > filled then
    -- All but full: part of the running tick's refill would have been lost. So the refill starts
    -- with the next tick, and no permit comes before its time.
    taken_from = now + -now % tick
  end
  if what <= TRY_CHARGE then
    used = (level + -level % permit) / permit
    if cost > burst then
      return NEVER, used, level > 0 and filled + refills_in(level) or now
    end
    if factor > 1 or cost > burst - used then
      local missing = level - (burst - cost) * permit
      return DENIED, used, filled + refills_in(missing > 0 and missing or 0)
    end
    used = used + cost
    if what == EVALUATE or cost == 0 then
      level = level + cost * permit
      return ALLOWED, used, level > 0 and taken_from + refills_in(level) or now
    end
  end
  if what == UNDO then
    -- All of the refill since counts as the refill of this charge, the running tick's too. What is
    -- left of it is cost × permit - ticks × amount, with the whole windows taken out first, so that
    -- no product grows too large.
    local ticks = (now + -now % tick - charged_at + charged_at % tick) / tick
    ticks = ticks > 0 and ticks or 0
    local rest = ticks % (window / tick)
    local windows = (ticks - rest) / (window / tick)
    rest = rest * amount
    local left = (cost - windows * amount) * permit - (rest + -rest % factor) / factor
    if left > 0 then
      level = level > left and level - left or 0
    end
  else
    filled = taken_from
    level = level + cost * permit
    if level > MAX_LEVEL then
      level = MAX_LEVEL
    end
  end
  local whole_at = level > 0 and filled + refills_in(level) or 0
  local expires = whole_at < MAX_COUNT and whole_at or MAX_COUNT
  stored_power = factor == 1 and power or stored_power
  local second = (expires + -expires % SECOND) / SECOND
  second = second < LAST_SECOND and second or LAST_SECOND
  return ALLOWED, used, whole_at, struct.pack('<I4I7I6I7B', second, now, level, filled, stored_power), expires, second
end
