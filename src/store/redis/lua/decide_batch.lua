
-- The decision of a request with any number of checks and groups.
--
--  1. Read the records of all keys. The instant is the latest that the clock or one of them shows.
--  2. Evaluate each check. Decide which groups are charged.
--  3. Write key by key: with SET and a time to live if a record is new, if one lives longer than all
--     did before, if a log lives longer than it did before, or in the first decision of a second;
--     otherwise with SETRANGE, which keeps it.
--  4. Reply. A check that had room but was not charged is evaluated again without its cost.
-- Of the current request: its checks, the groups without room, its verb, the number of keys before its
-- own, and its instant.
local checks, denied, verb_now, base, now = {}, nil, 0, 0, 0

local function step(what, check, cost)
  return steps[check[KIND]](what, now, cost, check[AMOUNT], check[WINDOW], check[PARAM_P],
    check[PARAM_Q], check[POWER], keys[base + check[LOG_KEY]], check[SEEN], check[STATE_A],
    check[STATE_B], check[STATE_C])
end

-- Reads the checks of a run. Its requests share the tables.
local function read_checks(at, count)
  checks = {}
  for i = 1, count do
    local check = { 0, 0, 0, false, 0, false, false, 0, 0, 0, false, 0, 0,
      read('<c6BBdddddBB', requests, at) }
    check[KIND] = byte(check[HEAD], HEAD_BYTES)
    checks[i], at = check, at + CHECK_BYTES
  end
end

-- Each group is charged whole or not at all, dry runs only with an admitted request.
local function is_charged(check)
  if check[COST] == 0 then
    return false
  elseif verb_now == DECIDE then
    local group = check[GROUP]
    return not denied[LIVE] and not denied[group] and group < UNCHARGED
  end
  return verb_now == RECORD or check[SEEN]
end

-- Charges a check, or refunds it, or drops what has expired of a denied log. Returns what a step does
-- about its new record, if there is one.
local function charge(check)
  local after, expires, second, what = check[AFTER], check[EXPIRES], check[SECONDS], nil
  check[CHARGED] = is_charged(check)
  if check[CHARGED] then
    what = verb_now == REFUND and GIVE_BACK or CHARGE
  elseif check[OUTCOME] ~= ALLOWED and after then
    what = DROP
  else
    return
  end
  if not after or after == true then
    local _
    _, _, _, after, expires, second = step(what, check, check[COST])
  end
  return after, expires, second
end

-- Writes the checks of one key, from number `i` on. Returns the number of the next one.
local function write_key(i, count, value, latest)
  local number, added, seen, from, changed = checks[i][KEY], '', 0, i, false
  local key, longest, longest_second, is_log_longer = keys[base + number], 0, 0, false
  repeat
    local check = checks[i]
    seen = check[SEEN] and check[SEEN] > seen and check[SEEN] or seen
    local after, expires, second = charge(check)
    if after then
      changed = true
      if expires > longest then
        longest, longest_second = expires, second
      end
      local at = check[AT]
      if at then
        -- The key of a log has a time to live of its own, which the writes of others do not renew.
        is_log_longer = is_log_longer
          or check[KIND] == LOG and second > read('<I4', value, at + HEAD_BYTES)
        value = sub(value, 1, at + HEAD_BYTES - 1) .. after .. sub(value, at + HEAD_BYTES + #after)
      else
        added = added .. check[HEAD] .. after
      end
      check[SEEN], check[STATE_A], check[STATE_B], check[STATE_C] =
        read_state(check[KIND], after, EXPIRES_BYTES + 1)
    end
    i = i + 1
  until i > count or checks[i][KEY] ~= number
  local is_due = clock < seen or clock - clock % SECOND > seen
  local time
  if changed and (#added > 0 or is_due or is_log_longer or longest_second > latest) then
    if #added > 0 then
      value = without_expired(value, now) .. added
    end
    time = lifetime(longest, latest, now)
    call('SET', key, value, 'PX', time)
  elseif changed then
    call('SETRANGE', key, '0', value)
    return i
  elseif seen > 0 and is_due and verb_now == DECIDE then
    heal(key, latest, now)
  else
    return i
  end
  for j = from, i - 1 do
    if checks[j][KIND] == LOG and checks[j][SEEN] then
      local log_key = keys[base + checks[j][LOG_KEY]]
      if time then
        call('PEXPIRE', log_key, time)
      else
        heal(log_key, latest, now)
      end
    end
  end
  return i
end

local function decide(its_verb, count, keys_before)
  local values, latests, number, positions = {}, {}, nil, nil
  verb_now, base, now, denied = its_verb, keys_before, clock, {}
  for i = 1, count do
    local check = checks[i]
    if check[KEY] ~= number then
      number = check[KEY]
      local value, latest = fetch('GET', keys[base + number]) or '', nil
      positions, latest = scan(value)
      values[number], latests[number] = positions and value or '', latest or 0
    end
    local at, seen = positions and positions[check[HEAD]], false
    if at then
      seen, check[STATE_A], check[STATE_B], check[STATE_C] =
        read_state(check[KIND], values[number], at + SEEN_AT)
      now = seen > now and seen or now
    end
    check[AT], check[SEEN], check[AFTER] = at, seen, false
  end

  if verb_now <= PEEK then
    -- A log alone is charged at once: it then reads its entries once.
    local is_alone = count == 1 and checks[1][KIND] == LOG and checks[1][GROUP] < UNCHARGED
    local what = verb_now == PEEK and ASK or is_alone and SPEND or TAKE
    for i = 1, count do
      local check = checks[i]
      check[OUTCOME], check[USED], check[RESET], check[AFTER], check[EXPIRES], check[SECONDS] =
        step(what, check, check[COST])
      if check[OUTCOME] ~= ALLOWED then
        denied[check[GROUP]] = true
      end
    end
  end
  if verb_now ~= PEEK then
    local i = 1
    repeat
      number = checks[i][KEY]
      i = write_key(i, count, values[number], latests[number])
    until i > count
  end

  local reply = write('<I7', now)
  if verb_now == REFUND then
    return reply
  end
  for i = 1, count do
    local check = checks[i]
    local outcome, used, reset = check[OUTCOME], check[USED], check[RESET]
    if verb_now == RECORD or outcome == ALLOWED and check[COST] > 0
      and (verb_now == PEEK or not check[CHARGED]) then
      -- After what was recorded, or without what was not charged.
      outcome, used, reset = step(ASK, check, 0)
    end
    reply = reply .. write('<BI7I7', outcome, used, reset < MAX_COUNT and reset or MAX_COUNT)
  end
  return reply
end
