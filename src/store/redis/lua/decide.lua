
-- Decides requests, one after the other.
--
-- ARGV[1]: runs of a template number B, a count B, and the template if the number is new. The template
-- is decided that often, each time for the next keys.
-- Template: verb B, count B, keys B, clock d (-1: the server's; less: an instant of another server,
-- negated), charged_at d, checks.
-- Check: id c5, shape B, key B, group B, cost d, amount d, window d, p d, q d, log key B, power of the
-- tick B, shape B, 2 reserved bytes. Checks of one key follow each other. Keys are numbered from 1 in each
-- request; 0 stands for no log.
-- Groups: LIVE, then one number per dry run. UNCHARGED is added to a group that must not be charged.
--
-- Reply: per request the instant I7 and per check outcome B, used I7, reset I7; a refund has the instant
-- only. A request that failed is seven bytes 0xff. Then the reply is an array, with one error for each
-- of them after it.

-- Of the request that is decided: the groups without room, nil if there are none; and its reply.
local denied, reply = nil, ''

-- Decides the checks from number `i` on. Recursive, one call per check: before the recursive call the
-- check is read and evaluated; after it, when it is known which groups have room, the check is charged
-- and its usage is written. The first check of a key writes the value of the key.
--
-- Parameters for this check: its number `i`, the position `at` of its template, and from `head` on the
-- numbers of its template. The requests of a run share them, so they are read once.
-- Parameters of the check before: the `number` of its key, the `value` of that key, and the position
-- `from` after its record.
-- Returns the number of the key of this check. If the check before has the same key, it uses the rest:
-- the value with the charges, the new records, the latest expiry and its second, the latest `seen`, and
-- whether a record lives longer.
-- Returns nil and an instant if a counter has seen that later instant: the request is then decided there.
local server_time
local function decide(verb, count, base, clock, now, slack, i, at, number, value, from,
  head, key_number, group, cost, amount, window, p, q, log, power, kind)
  -- Only logs use `log_key`. For other kinds `log` is 0, and the key is one of another request.
  local key, log_key = KEYS[base + key_number], KEYS[base + log]
  local length = RECORD_BYTES + kind % 16
  local stored_head, old_second, seen, a, b, c
  if key_number ~= number then
    value, from = redis.pcall('GET', key) or '', 1
    if #value ~= length then
      value = whole_records(value)
    end
  end
  -- The records of a value are mostly in the order of the checks.
  if from + length <= #value + 1 then
    stored_head, old_second, seen, a, b, c = struct.unpack(formats[kind], value, from)
  end
  if stored_head ~= head then
    value, from, seen = whole_records(value), nil, nil
    local place, size = 1, #value
    while place <= size and not from do
      if value:sub(place, place + RECORD_HEAD_BYTES - 1) == head then
        stored_head, old_second, seen, a, b, c = struct.unpack(formats[kind], value, place)
        from = place
      end
      place = place + RECORD_BYTES + value:byte(place + RECORD_HEAD_BYTES - 1) % 16
    end
  end
  local last_seen, is_moved = seen or 0, false
  if last_seen > now then
    if slack ~= SERVER_SLACK or seen - server_time <= SECOND then
      return nil, seen
    elseif kind ~= FIXED or p == 0 and window % DAY > 0 then
      -- The server's clock was set back. The counter continues at its time, with what it has counted;
      -- calendar windows wait. The queue of a log has a time of its own, which does not go back. The
      -- refill of a token bucket is accounted for until `b`, in ticks of its own.
      if kind == LOG then
        a = a + (seen - now)
      elseif kind == TOKEN then
        b = b - (seen - now)
        b = b + -b % 10 ^ c
      end
      seen, is_moved = now, true
    end
  end

  local step, outcome, used, reset, after, expires, second, is_lost = steps[kind], ALLOWED, 0, 0
  if verb <= PEEK then
    -- A log alone is charged at once: it then reads its entries once.
    local what = verb == PEEK and EVALUATE
      or kind == LOG and count == 1 and group < UNCHARGED and CHARGE_AT_ONCE or TRY_CHARGE
    outcome, used, reset, after, expires, second, is_lost =
      step(what, now, cost, amount, window, p, q, power, log_key, seen, a, b, c)
    if outcome ~= ALLOWED then
      denied = denied or {}
      denied[group] = true
    end
  end

  local new, added, longest, longest_second, latest_seen, is_longer = value, '', 0, 0, last_seen, false
  if i < count then
    local next_number, next_new, next_added, next_longest, next_second, next_seen, next_longer = decide(verb,
      count, base, clock, now, slack, i + 1, at + CHECK_BYTES, key_number, value,
      from and from + length or 1, struct.unpack('<c6BBdddddBBB', ARGV[1], at + CHECK_BYTES))
    if not next_number then
      return nil, next_new
    elseif next_number == key_number then
      new, added, longest, longest_second, is_longer =
        next_new, next_added, next_longest, next_second, next_longer
      latest_seen = next_seen > last_seen and next_seen or last_seen
    end
  end

  -- Each group is charged whole or not at all, dry runs only with an admitted request.
  local is_charged, what, _ = cost > 0, CHARGE, nil
  if verb == DECIDE then
    if denied or group >= UNCHARGED then
      is_charged = is_charged and group < UNCHARGED and not (denied[LIVE] or denied[group])
    end
    if not is_charged then
      -- A denied check drops the expired entries of a log, or stores the instant at which it continues.
      what = outcome ~= ALLOWED and (after or is_moved) and DROP
      after = what and after
    end
  else
    is_charged = is_charged and (verb == RECORD or verb == REFUND and seen)
    what = is_charged and (verb == REFUND and UNDO or CHARGE)
    after = nil
  end
  if what and (not after or after == true) then
    _, _, _, after, expires, second, is_lost = step(what, now, what == DROP and 0 or cost, amount, window,
      p, q, power, log_key, seen, a, b, c)
  end
  if after then
    if expires > longest then
      longest, longest_second = expires, second
    end
    if not from then
      added = head .. after .. added
    else
      is_longer = is_longer or second > old_second
      new = #new == length and head .. after
        or new:sub(1, from + RECORD_HEAD_BYTES - 1) .. after .. new:sub(from + length)
    end
  end
  if kind == LOG then
    -- The hash of a log has a time to live of its own. It may have been lost while the record was not.
    local is_due = clock < last_seen or clock - clock % SECOND > last_seen
    if after and (not from or is_due or is_lost or second > old_second) then
      save(log_key, '', nil, '', expires, 0, true, clock, now, slack)
    elseif seen and is_due and verb == DECIDE then
      save(log_key, '', nil, '', -1, old_second, true, clock, now, slack)
    end
  end
  if key_number ~= number then
    local is_due = clock < latest_seen or clock - clock % SECOND > latest_seen
    if new == value and added == '' then
      if is_due and value ~= '' and verb == DECIDE then
        save(key, value, new, '', -1, 0, true, clock, now, slack)
      end
    elseif is_due or is_longer or added ~= '' then
      save(key, value, new, added, longest, longest_second, is_due, clock, now, slack)
    else
      redis.call('SETRANGE', key, '0', new)
    end
  end

  if verb == RECORD or not is_charged and verb ~= REFUND and outcome == ALLOWED and cost > 0 then
    -- After what was recorded, or without what was not charged.
    if after then
      stored_head, old_second, seen, a, b, c = struct.unpack(formats[kind], head .. after)
    end
    outcome, used, reset = step(EVALUATE, now, 0, amount, window, p, q, power, log_key, seen, a, b, c)
  end
  reset = reset < MAX_COUNT and reset or MAX_COUNT
  if verb == REFUND then
    reply = struct.pack('<I7', now)
  elseif i == 1 then
    reply = struct.pack('<I7BI7I7', now, outcome, used, reset) .. reply
  else
    reply = struct.pack('<BI7I7', outcome, used, reset) .. reply
  end
  return key_number, new, added, longest, longest_second, latest_seen, is_longer
end

local requests, place, base, starts, replies, errors = ARGV[1], 1, 0, nil, {}, nil
local size = #requests
while place <= size do
  local number, left = requests:byte(place, place + 1)
  local start = starts and starts[number]
  place = place + 2
  local verb, count, key_count, clock, instant = struct.unpack('<BBBdd', requests, start or place)
  charged_at = instant
  if not start then
    start = place
    place = place + REQUEST_BYTES + count * CHECK_BYTES
    if place <= size then
      starts = starts or {}
      starts[number] = start
    end
  end
  local slack = CALLER_SLACK
  if clock < 0 then
    if not server_time then
      local time = redis.call('TIME')
      server_time = time[1] * SECOND + time[2]
    end
    -- Below -1: the negated instant at which another server charged an earlier part of the request. It is
    -- used if the clocks of both agree to the second. Otherwise it would move counters ahead of this
    -- server's clock, and every request that uses this clock would take that for a clock that was set back.
    local is_close = clock < -1 and math.abs(clock + server_time) <= SECOND
    clock, slack = is_close and -clock or server_time, SERVER_SLACK
  end
  start = start + REQUEST_BYTES
  local head, key_number, group, cost, amount, window, p, q, log, power, kind =
    struct.unpack('<c6BBdddddBBB', requests, start)
  for _ = 1, left do
    local now, is_fine, result, later = clock, true, nil, nil
    repeat
      denied, reply = nil, ''
      is_fine, result, later =
        pcall(decide, verb, count, base, clock, now, slack, 1, start, 0, nil, nil,
          head, key_number, group, cost, amount, window, p, q, log, power, kind)
      now = later
    until result
    if not is_fine then
      errors = errors or {}
      errors[#errors + 1] = type(result) == 'table' and result.err or result
      reply = '\255\255\255\255\255\255\255'
    end
    replies[#replies + 1] = reply
    base = base + key_count
  end
end
replies = table.concat(replies)
return errors and { replies, unpack(errors) } or replies
