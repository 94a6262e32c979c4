
local keys, requests, server_time = KEYS, ARGV[1], nil
local byte, attempt = string.byte, redis.pcall

-- The instant that a request goes by, and how much longer than it must its key lives, in
-- milliseconds: in case the clock goes back, and because clocks of several callers never quite agree.
local function by_clock(clock)
  if clock >= 0 then
    return clock, 60000
  end
  if not server_time then
    local time = call('TIME')
    server_time = time[1] * 1000000 + time[2]
  end
  return server_time, 1000
end

-- Has the key outlive its counters, but not for ever. Its end is missing if it is new, or if somebody
-- took it away. It is never moved forward, because another counter may need it; unless the clock is a
-- day behind what the key has seen: then the clock has been put right, and nobody should have to wait
-- until that day comes again.
local function keep(key, now, clock, needed, crowded, slack)
  local left = call('PTTL', key)
  local renew = left == -1 or now - clock > DAY and left * 1000 > needed + DAY
  if renew or crowded then
    local longest = tend(key, now)
    needed = longest > needed and longest or needed
  end
  if needed > 0 and (renew or left * 1000 < needed) then
    call('PEXPIRE', key, math.ceil(math.min(needed, MAX_COUNT) / 1000) + slack)
  end
end

-- The decision at this place of the requests, of one or more checks, whose keys come after so many
-- others; those of one key follow each other. What is answered is its instant, and how every counter
-- stands; or nothing, and an error as a table.
local function decide(place, before)
  local verb, count, clock, charged_at
  verb, count, clock, charged_at, place = read('<BBdd', requests, place)
  local slack
  clock, slack = by_clock(clock)

  local now, checks, foreign = clock, {}, nil
  for i = 1, count do
    local check = { ALLOWED, 0, 0, false, false, false, read('<c8HBddddd', requests, place) }
    check[KEY] = check[KEY] + before
    checks[i], place = check, check[NEXT]
  end
  local from = 1
  repeat
    local number, to, found = checks[from][KEY], from, nil
    while to < count and checks[to + 1][KEY] == number do
      to = to + 1
    end
    if from == to then
      found = attempt('HGET', keys[number], checks[from][ID])
      found = type(found) == 'table' and found or { found }
    else
      local ids = {}
      for i = from, to do
        ids[i - from + 1] = checks[i][ID]
      end
      found = attempt('HMGET', keys[number], unpack(ids))
    end
    if found.err then
      -- A key of another type is nothing of ours. It gives way when there is something to write.
      if not string.find(found.err, 'WRONGTYPE', 1, true) then
        return nil, found
      end
      foreign = foreign or {}
      foreign[number] = true
    end
    for i = from, to do
      local state = found[i - from + 1]
      if state and #state > HEAD_BYTES then
        checks[i][STATE] = state
        -- A clock that has gone back since this was written stands still.
        local seen = read('<I7', state, 8)
        now = seen > now and seen or now
      end
    end
    from = to + 1
  until from > count

  local function step(what, check, cost)
    return steps[check[KIND]](what, check[STATE], now, cost, charged_at, check[AMOUNT],
      check[WINDOW], check[THIS], check[THAT], keys[check[KEY]], check[ID])
  end

  -- All counters must have room, or none is charged.
  local changes = verb ~= PEEK
  if verb <= PEEK then
    for i = 1, count do
      local check = checks[i]
      local outcome, used, reset, after, expires =
        step(verb == DECIDE and TAKE or ASK, check, check[COST])
      check[OUTCOME], check[USED], check[RESET] = outcome, used, reset
      check[AFTER], check[EXPIRES] = after, expires
      changes = changes and outcome == ALLOWED
    end
  end

  from = 1
  repeat
    local number, to, needed, known, fields = checks[from][KEY], from, 0, false, {}
    local key = keys[number]
    if changes and foreign and foreign[number] then
      call('DEL', key)
    end
    repeat
      local check = checks[to]
      known = known or check[STATE]
      if changes and check[COST] > 0 and (check[STATE] or verb ~= RETURN) then
        local after, expires, _ = check[AFTER], check[EXPIRES], nil
        if not after or after == true then
          local what = verb == RETURN and GIVE_BACK or CHARGE
          _, _, _, after, expires = step(what, check, check[COST])
        end
        check[STATE] = after
        fields[#fields + 1], fields[#fields + 2] = check[ID], after
        needed = expires - now > needed and expires - now or needed
      end
      to = to + 1
    until to > count or checks[to][KEY] ~= number
    local crowded = false
    if #fields > 0 then
      crowded = call('HSET', key, unpack(fields)) > 0 and call('HLEN', key) > CROWD
    end
    if #fields > 0 or known and verb == DECIDE then
      keep(key, now, clock, needed, crowded, slack)
    end
    from = to
  until from > count

  local reply = write('<I7', now)
  if verb ~= RETURN then
    for i = 1, count do
      local check = checks[i]
      local outcome, used, reset = check[OUTCOME], check[USED], check[RESET]
      if verb == RECORD or outcome == ALLOWED and not changes and check[COST] > 0 then
        -- How it stands after what has happened, or without what has not.
        outcome, used, reset = step(ASK, check, 0)
      end
      reply = reply .. write('<BI7I7', outcome, used, reset < MAX_COUNT and reset or MAX_COUNT)
    end
  end
  return reply
end

-- The same for what most requests are: one check, to be charged if there is room. Without the tables
-- it takes two thirds of the time. The instant was looked up before, with the slack that goes with it.
local function take(
  place, before, slack, clock, charged_at, id, number, kind, cost, amount, window, this, that
)
  local key = keys[before + number]
  local state = attempt('HGET', key, id)
  local now, step, ends, seen, one, two, three = clock, steps[kind], 0, 0, nil, nil, nil
  if state then
    -- An error is a table, and those have no length.
    local size = #state
    if size <= HEAD_BYTES then
      -- Nothing of ours.
      return decide(place, before)
    end
    -- In one go, if it is of this kind.
    if kind == SLIDING and size == SLIDING_BYTES then
      ends, seen, one, two, three = read('<I7I7I7I4I4', state)
    elseif kind == FIXED and size == FIXED_BYTES then
      ends, seen, one, two = read('<I7I7I7I7', state)
    elseif kind == TOKEN and size == TOKEN_BYTES then
      ends, seen, one, two, three = read('<I7I7I6I7I5', state)
    else
      ends, seen = read('<I7I7', state)
    end
    now = seen > now and seen or now
  end
  -- Whether the key is to be looked after: for the first time in this second, or if the clock has
  -- gone back. In between its end is where it was, unless somebody took it away; and to ask for it
  -- is a sixth of the price of a decision.
  local is_due = clock < seen or clock - clock % SECOND > seen
  local outcome, used, reset, after, expires =
    step(TAKE, state, now, cost, charged_at, amount, window, this, that, key, id, one, two, three)
  if outcome == ALLOWED and cost > 0 then
    if not after or after == true then
      local _
      _, _, _, after, expires =
        step(CHARGE, state, now, cost, charged_at, amount, window, this, that, key, id)
    end
    local is_new = call('HSET', key, id, after) > 0
    if is_new or is_due or expires > ends then
      local crowded = is_new and call('HLEN', key) > CROWD
      keep(key, now, clock, expires > now and expires - now or 0, crowded, slack)
    end
  elseif state and is_due then
    keep(key, now, clock, 0, false, slack)
  end
  return write('<I7BI7I7', now, outcome, used, reset < MAX_COUNT and reset or MAX_COUNT)
end

if byte(requests) ~= SEVERAL then
  local answer, wrong
  if byte(requests) == DECIDE and byte(requests, 2) == 1 then
    local clock, charged_at, id, number, kind, cost, amount, window, this, that =
      read('<ddc8HBddddd', requests, 3)
    local slack
    clock, slack = by_clock(clock)
    answer, wrong =
      take(1, 0, slack, clock, charged_at, id, number, kind, cost, amount, window, this, that)
  else
    answer, wrong = decide(1, 0)
  end
  return answer or wrong
end

-- Requests that have travelled together are decided one after the other. Two numbers say which one is
-- next, and how often, each time about other keys: the first that there is not yet comes before a
-- request in full. What one of them meets with is no matter of the others: its answer is an instant
-- that there is not, and the errors come after all answers.
local place, size, answers, answered, errors = 2, #requests, {}, 0, {}
local starts, key_counts, before, left, start, key_count = {}, {}, 0, 0, 0, 0

-- Goes on to the next request.
local function go_on()
  local number
  number, left = byte(requests, place, place + 1)
  place, start, key_count = place + 2, starts[number], key_counts[number]
  if not start then
    start = place
    place = place + REQUEST_BYTES + byte(requests, place + 1) * CHECK_BYTES
    -- The keys are numbered as they come, so the last check has the last one.
    key_count = read('<H', requests, place - CHECK_BYTES + ID_BYTES)
    starts[number], key_counts[number] = start, key_count
  end
end

-- Answers the request as often as it is left to, or up to an error. It is counted first, so that
-- whatever goes wrong goes wrong for one.
local function answer_all()
  local verb, slack, clock, charged_at, id, number, kind, cost, amount, window, this, that
  while left > 0 do
    local keys_before, answer, wrong = before, nil, nil
    before, left = before + key_count, left - 1
    if not verb then
      local checks
      verb, checks = byte(requests, start, start + 1)
      if verb == DECIDE and checks == 1 then
        clock, charged_at, id, number, kind, cost, amount, window, this, that =
          read('<ddc8HBddddd', requests, start + 2)
        clock, slack = by_clock(clock)
      end
    end
    if slack then
      answer, wrong = take(start, keys_before, slack, clock, charged_at, id, number, kind, cost,
        amount, window, this, that)
    else
      answer, wrong = decide(start, keys_before)
    end
    if not answer then
      return wrong
    end
    answered = answered + 1
    answers[answered] = answer
  end
end
repeat
  if left == 0 then
    go_on()
  end
  local _, wrong = pcall(answer_all)
  if wrong then
    errors[#errors + 1] = type(wrong) == 'table' and wrong.err or wrong
    answered = answered + 1
    answers[answered] = '\255\255\255\255\255\255\255'
  end
until left == 0 and place > size
answers = table.concat(answers)
return #errors > 0 and { answers, unpack(errors) } or answers
