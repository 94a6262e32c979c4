
-- The value of a subject's key is a string: records without a separator, in no particular order.
--
--   id c5, shape B, expires I4, seen I7, state
--
--  * shape = kind * 16 + length of the state. A record of an unknown kind is skipped by its length and
--    stays as it is. Id and shape together are the head, which identifies a record.
--  * expires: second (Unix time, rounded up) from which the record is equivalent to a new record. 2^32 - 1
--    stands for every later one, and is never taken for past.
--  * seen: instant of the last write.
--
-- A string that is not made of whole records counts as empty. The next write replaces it.

-- Returns what `GET` has returned, '' if that is not made of whole records. A key of another type counts
-- as absent.
local function whole_records(value)
  if value.err then
    if not value.err:find('WRONGTYPE', 1, true) then
      error(value)
    end
    value = ''
  end
  local at, size = 1, #value
  while at + RECORD_BYTES - 1 <= size do
    at = at + RECORD_BYTES + value:byte(at + RECORD_HEAD_BYTES - 1) % 16
  end
  return at == size + 1 and value or ''
end
