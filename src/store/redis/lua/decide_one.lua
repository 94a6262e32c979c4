
-- Decides requests one after the other.
--
-- ARGV[1]: runs of a template number B, a count B, and the template if the number is new. The template
-- is decided that often, each time for the next keys.
-- Template: verb B, count B, keys B, clock d (below 0: the server's), charged_at d, checks.
-- Check: id c5, shape B, key B, group B, cost d, amount d, window d, p d, q d, log key B, power of the
-- tick B, 3 reserved bytes. Checks of one key follow each other. Keys are numbered from 1 in each
-- request; 0 stands for no log.
-- Groups: LIVE, then one number per dry run. UNCHARGED is added to a group that must not be charged.
--
-- Reply: per request the instant I7 and per check outcome B, used I7, reset I7; a refund has the instant
-- only. A request that failed is seven bytes 0xff. Then the reply is an array, with one error for each
-- of them after it.
local keys, requests, server_time = KEYS, ARGV[1], nil
-- The next byte to read; how many requests of the run are left; number of keys before the next one.
local place, left, before = 1, 0, 0
-- Where the template of the run is, and those of earlier runs.
local start, starts = 1, nil
local replies = ''

-- Decides the requests of a run, if they have one check, their key holds this record or nothing, and
-- nothing is wrong with it. That is most requests. Returns before the first that `decide_batch.lua` has to
-- decide, and has not changed anything for it. It needs no tables and none of the functions of the
-- other files. A property test compares the two.
local function decide_singly(head, cost, amount, window, p, q, power, key_count)
  local kind = byte(head, HEAD_BYTES)
  local size, step = RECORD_BYTES + kind % 16, steps[kind]
  while left > 0 do
    local key, now, its_head = keys[before + 1], clock, head
    local seen, is_due, latest, a, b, c = false, true, 0, nil, nil, nil
    local value = attempt('GET', key)
    if value then
      -- An error is a table, which has no length.
      if #value ~= size then
        return
      end
      if kind == SLIDING then
        its_head, latest, seen, a, b = read('<c6I4I7I4I4', value)
      elseif kind == FIXED then
        its_head, latest, seen, a = read('<c6I4I7I7', value)
      else
        its_head, latest, seen, a, b, c = read('<c6I4I7I6I7B', value)
      end
      if its_head ~= head then
        return
      end
      if seen > now then
        if seen - now > DAY then
          return
        end
        now = seen
      else
        is_due = clock - clock % SECOND > seen
      end
    end
    local outcome, used, reset, after, expires, second =
      step(TAKE, now, cost, amount, window, p, q, power, nil, seen, a, b, c)
    if not after then
      if seen and is_due and call('PTTL', key) == -1 then
        return
      end
    elseif is_due or second > latest then
      local time = (expires - clock + -(expires - clock) % 1000) / 1000 + slack
      if attempt('SET', key, head .. after, 'PX', time).err then
        return
      end
    elseif attempt('SETRANGE', key, '6', after) ~= size then
      -- An error: it returns the length of the value.
      return
    end
    left, before = left - 1, before + key_count
    replies = replies
      .. write('<I7BI7I7', now, outcome, used, reset < MAX_COUNT and reset or MAX_COUNT)
  end
end

-- Goes on to the next run, if the current one is finished. Returns verb, number of checks and of keys.
-- Requests of one check are decided as far as that is possible without the functions below.
local function next_run()
  local number, is_new = 0, false
  if left == 0 then
    number, left = byte(requests, place, place + 1)
    place = place + 2
    start = starts and starts[number]
    is_new = not start
    start = start or place
  end
  local verb, count, key_count, instant, charged, head, _, group, cost, amount, window, p, q, log, power =
    read('<BBBddc6BBdddddBB', requests, start)
  if is_new then
    place = start + REQUEST_BYTES + count * CHECK_BYTES
    if place <= #requests then
      starts = starts or {}
      starts[number] = start
    end
  end
  -- A clock may go back, and the clocks of several processes differ. A key therefore lives longer than
  -- its counters: by the slack.
  clock, slack, charged_at = instant, 60000, charged
  if clock < 0 then
    if not server_time then
      local time = call('TIME')
      server_time = time[1] * 1000000 + time[2]
    end
    clock, slack = server_time, 1000
  end
  if verb == DECIDE and count == 1 and log == 0 and group < UNCHARGED then
    decide_singly(head, cost, amount, window, p, q, power, key_count)
  end
  return verb, count, key_count
end

local verb, count, key_count
repeat
  verb, count, key_count = next_run()
  if left == 0 and place > #requests then
    return replies
  end
until left > 0
