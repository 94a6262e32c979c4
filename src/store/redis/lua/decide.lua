
-- Decides requests one after the other.
--
-- ARGV[1]: runs of a template number B, a count B, and the template if the number is new. The template
-- is decided that often, each time for the next keys.
-- Template: verb B, count B, keys B, clock d (below 0: the server's), charged_at d, checks.
-- Check: id c5, shape B, key B, group B, cost d, amount d, window d, p d, q d, log key B, power of the
-- tick B, 3 reserved bytes. Checks of one key follow each other. Keys are numbered from 1 in each
-- request; 0 stands for no log.
-- Groups: LIVE, then one number per dry run. UNCHARGED is added to a group that cannot be admitted.
--
-- Reply: per request the instant I7 and per check outcome B, used I7, reset I7; a refund has the instant
-- only. A request that failed is seven bytes 0xff. Then the reply is an array, with one error for each
-- of them after it.
local keys, requests, server_time = KEYS, ARGV[1], nil
local verb, count, key_count, place = 0, 0, 0, 1
-- How many keys the requests before this one have.
local base = 0

-- Sets the clock of the request, and the slack: the clock may go back, and clocks of several
-- processes differ.
local function set_clock(instant)
  if instant >= 0 then
    clock, slack = instant, 60000
    return
  end
  if not server_time then
    local time = call('TIME')
    server_time = time[1] * 1000000 + time[2]
  end
  clock, slack = server_time, 1000
end

-- Whether a time to live is to be looked after: in the first decision of a second, or if the clock has
-- gone back. In between it is what it was, unless another program removed it.
local function is_due(seen)
  return clock < seen or clock - clock % SECOND > seen
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

-- Writes a value with a time to live, that of its counter which lives longest.
local function set(key, value, expires, latest, now)
  local other = instant_of(latest)
  local left = lifetime(other > expires and other or expires, now)
  call('SET', key, value, 'PX', left)
  return left
end

-- The request as a whole: `count` checks in tables, which the requests of a run share.
local checks = {}

local function step(what, check, now, cost)
  return steps[check[KIND]](what, now, cost, check[AMOUNT], check[WINDOW], check[PARAM_P], check[PARAM_Q],
    check[POWER], keys[base + check[LOG_KEY]], check[SEEN], check[STATE_A], check[STATE_B], check[STATE_C])
end

local function read_checks(at)
  for i = 1, count do
    local check = { 0, 0, 0, false, 0, false, false, 0, 0, 0, false, 0,
      read('<c6BBdddddBB', requests, at) }
    check[KIND] = byte(check[HEAD], HEAD_BYTES)
    checks[i], at = check, at + CHECK_BYTES
  end
end

-- Writes the checks of one key, from number `i` on. Returns the number of the next one.
local function write_key(i, value, latest, now, charges)
  local number = checks[i][KEY]
  local key, added, longest, seen, from, changed = keys[base + number], '', 0, 0, i, false
  repeat
    local check = checks[i]
    local after, expires, cost = check[AFTER], check[EXPIRES], check[COST]
    seen = check[SEEN] and check[SEEN] > seen and check[SEEN] or seen
    local charged = cost > 0 and charges(check)
    check[CHARGED] = charged
    if charged and (not after or after == true) then
      local _
      _, _, _, after, expires = step(verb == REFUND and GIVE_BACK or CHARGE, check, now, cost)
    elseif not charged then
      local _
      -- A denied log drops what has expired.
      local drops = after == true and check[OUTCOME] ~= ALLOWED
      after = nil
      if drops then
        _, _, _, after, expires = step(DROP, check, now, 0)
      end
    end
    if after then
      changed, longest = true, expires > longest and expires or longest
      local at = check[AT]
      if at then
        value = sub(value, 1, at + HEAD_BYTES - 1) .. after .. sub(value, at + HEAD_BYTES + #after)
      else
        added = added .. check[HEAD] .. after
      end
      check[SEEN], check[STATE_A], check[STATE_B], check[STATE_C] = read_state(check[KIND], after, EXPIRES_BYTES + 1)
    end
    i = i + 1
  until i > count or checks[i][KEY] ~= number
  local due = is_due(seen)
  if changed and (#added > 0 or due or second_of(longest) > latest) then
    if #added > 0 then
      value = without_expired(value, now) .. added
    end
    local left = set(key, value, longest, latest, now)
    for j = from, i - 1 do
      if checks[j][KIND] == LOG and checks[j][SEEN] then
        call('PEXPIRE', keys[base + checks[j][LOG_KEY]], left)
      end
    end
  elseif changed then
    call('SETRANGE', key, '0', value)
  elseif seen > 0 and due and verb == DECIDE then
    heal(key, instant_of(latest), now)
    for j = from, i - 1 do
      if checks[j][KIND] == LOG and checks[j][SEEN] then
        heal(keys[base + checks[j][LOG_KEY]], instant_of(latest), now)
      end
    end
  end
  return i
end

local function decide()
  local now, values, latests, number, positions = clock, {}, {}, nil, nil
  for i = 1, count do
    local check = checks[i]
    if check[KEY] ~= number then
      number = check[KEY]
      local value, latest = fetch('GET', keys[base + number]) or '', nil
      positions, latest = scan(value)
      values[number], latests[number] = positions and value or '', latest or 0
    end
    local at = positions and positions[check[HEAD]]
    check[AT], check[SEEN], check[AFTER] = at, false, false
    if at then
      local seen
      seen, check[STATE_A], check[STATE_B], check[STATE_C] = read_state(check[KIND], values[number], at + SEEN_AT)
      check[SEEN] = seen
      now = seen > now and seen or now
    end
  end

  -- Each group is charged whole or not at all, dry runs only with an admitted request.
  local denied = {}
  if verb <= PEEK then
    for i = 1, count do
      local check = checks[i]
      local outcome, used, reset, after, expires =
        step(verb == DECIDE and TAKE or ASK, check, now, check[COST])
      check[OUTCOME], check[USED], check[RESET] = outcome, used, reset
      check[AFTER], check[EXPIRES] = after, expires
      if outcome ~= ALLOWED then
        denied[check[GROUP]] = true
      end
    end
  end
  local function charges(check)
    if verb == DECIDE then
      local group = check[GROUP]
      return not denied[LIVE] and not denied[group] and group < UNCHARGED
    end
    return verb == RECORD or verb == REFUND and check[SEEN]
  end
  if verb ~= PEEK then
    local i = 1
    repeat
      number = checks[i][KEY]
      i = write_key(i, values[number], latests[number], now, charges)
    until i > count
  end

  local reply = write('<I7', now)
  if verb == REFUND then
    return reply
  end
  for i = 1, count do
    local check = checks[i]
    local outcome, used, reset = check[OUTCOME], check[USED], check[RESET]
    if verb == RECORD or outcome == ALLOWED and check[COST] > 0
      and (verb == PEEK or not check[CHARGED]) then
      -- After what was recorded, or without what was not charged.
      outcome, used, reset = step(ASK, check, now, 0)
    end
    reply = reply .. write('<BI7I7', outcome, used, reset < MAX_COUNT and reset or MAX_COUNT)
  end
  return reply
end

-- The same decision for one check, which most requests have, without tables: SAVING of the time. A
-- property test compares the two.
local head, kind, cost, amount, window, p, q, log, power

local function decide_one()
  local key = keys[base + 1]
  local value, size = attempt('GET', key), RECORD_BYTES + kind % 16
  local now, its_head, latest, seen, a, b, c = clock, nil, 0, false, nil, nil, nil
  local at = 1
  -- In one go, if the value is this record alone.
  if value and #value == size then
    if kind == SLIDING then
      its_head, latest, seen, a, b = read('<c6I4I7I4I4', value)
    elseif kind == FIXED then
      its_head, latest, seen, a = read('<c6I4I7I7', value)
    elseif kind == TOKEN then
      its_head, latest, seen, a, b, c = read('<c6I4I7I6I7B', value)
    else
      its_head, latest, seen = read('<c6I4I7', value)
    end
  end
  if its_head ~= head then
    at, latest, seen = nil, 0, false
    if value then
      -- An error is a table; `fetch` raises it, unless the key is of another type.
      value = type(value) == 'string' and value or fetch('GET', key) or ''
      local positions, its_latest = scan(value)
      if positions then
        at, latest = positions[head], its_latest
      else
        value = ''
      end
      if at then
        seen, a, b, c = read_state(kind, value, at + SEEN_AT)
      end
    end
  end
  if seen and seen > now then
    now = seen
  end
  local outcome, used, reset, after, expires = steps[kind](kind == LOG and SPEND or TAKE, now, cost,
    amount, window, p, q, power, keys[base + log], seen, a, b, c)
  if after then
    if at and not is_due(seen) and second_of(expires) <= latest then
      call('SETRANGE', key, at == 1 and '6' or at + HEAD_BYTES - 1, after)
    else
      if at then
        value = sub(value, 1, at + HEAD_BYTES - 1) .. after .. sub(value, at + HEAD_BYTES + #after)
      else
        value = (value and without_expired(value, now) or '') .. head .. after
      end
      local left = set(key, value, expires, latest, now)
      if kind == LOG then
        call('PEXPIRE', keys[base + log], left)
      end
    end
  elseif seen and is_due(seen) then
    heal(key, instant_of(latest), now)
    if kind == LOG then
      heal(keys[base + log], instant_of(latest), now)
    end
  end
  return write('<I7BI7I7', now, outcome, used, reset < MAX_COUNT and reset or MAX_COUNT)
end

-- Where templates are that came before.
local starts, left, replies, replied, errors = {}, 0, {}, 0, {}
local evaluate

-- Goes on to the next run.
local function next_run()
  local number, start, instant
  number, left = byte(requests, place, place + 1)
  place, start = place + 2, starts[number]
  local is_new = not start
  start = start or place
  starts[number] = start
  verb, count, key_count, instant, charged_at = read('<BBBdd', requests, start)
  set_clock(instant)
  start = start + REQUEST_BYTES
  if is_new then
    place = start + count * CHECK_BYTES
  end
  if verb == DECIDE and count == 1 and byte(requests, start + GROUP_AT) < UNCHARGED then
    local _
    head, _, _, cost, amount, window, p, q, log, power =
      read('<c6BBdddddBB', requests, start)
    kind, evaluate = byte(head, HEAD_BYTES), decide_one
  else
    read_checks(start)
    evaluate = decide
  end
end

-- Decides what is left of a run, up to an error. A request is counted first, so that an error is the
-- error of one.
local function finish_run()
  while left > 0 do
    left = left - 1
    local reply = evaluate()
    base, replied = base + key_count, replied + 1
    replies[replied] = reply
  end
end

repeat
  if left == 0 then
    next_run()
  end
  local is_fine, found = pcall(finish_run)
  if not is_fine then
    errors[#errors + 1] = type(found) == 'table' and found.err or found
    base, replied = base + key_count, replied + 1
    replies[replied] = '\255\255\255\255\255\255\255'
  end
until left == 0 and place > #requests
replies = table.concat(replies)
return #errors > 0 and { replies, unpack(errors) } or replies
