
-- Decides what is left of the requests.
local errors = {}
while true do
  if left > 0 then
    read_checks(start + REQUEST_BYTES, count)
  end
  while left > 0 do
    local is_fine, reply = pcall(decide, verb, count, before)
    left, before = left - 1, before + key_count
    if not is_fine then
      errors[#errors + 1] = type(reply) == 'table' and reply.err or reply
      reply = '\255\255\255\255\255\255\255'
    end
    replies = replies .. reply
    if verb == DECIDE and count == 1 and left > 0 then
      -- The next one may be of the usual kind again.
      next_run()
    end
  end
  if place > #requests then
    return #errors > 0 and { replies, unpack(errors) } or replies
  end
  verb, count, key_count = next_run()
end
