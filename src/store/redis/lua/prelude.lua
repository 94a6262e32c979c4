-- Beginning of every script. Names in CAPITALS are constants of script.rs.
--
-- Numbers are whole and, where it matters, below 2^53, so that a double holds them exactly. Quotas
-- whose products would be larger are rejected when they are built. Two facts make the rest exact:
--
--  * Quotients are exact. For whole a and b below 2^53, a / b is rounded by less than 1 / b, which is
--    at most its distance from the next whole number. So a % b is the remainder, (a - a % b) / b the
--    quotient rounded down, and (a + -a % b) / b the quotient rounded up.
--  * Rounding keeps the order. A product beyond 2^53 may be inexact, but it stays beyond 2^53, and is
--    only compared with smaller numbers, or cut off.
--
-- Most of the cost of a decision is the interpreter, not Redis. Measured in instructions: a table 700, with
-- the fields of a check 3600; a function that is defined 950 in each call of the script; struct.unpack 2000;
-- GET and SETRANGE 4000 each; SET with PX 12,800; a number as an argument of redis.call 2200 more than a
-- string. Hence local variables instead of tables, few functions, comparisons instead of math.max, and
-- arithmetic instead of math.floor.

-- Instant of the charge to refund.
local charged_at = 0

-- One function per kind of counter. Arguments: the operation, the instant, the cost, the quota (amount,
-- window, two numbers more, the power of its tick), the key of its log, and the state: the instant of
-- the last write, nil if there is no counter, and the numbers of its record.
-- Operations: EVALUATE computes the usage. TRY_CHARGE also computes the record with the charge, if there
-- is room. CHARGE_AT_ONCE (logs only) writes it as well. CHARGE charges without a limit. UNDO refunds.
-- DROP removes expired entries, or moves the counter to another instant.
-- Returns outcome, used and reset. If the counter changes, also the end of its new record (from
-- `expires` on), the instant at which it is equivalent to a new record, and its second, rounded up. The functions
-- have no side effects, except that of logs, which returns `true` instead of a record where it has yet
-- to write.
local steps = {}
-- What `struct.unpack` reads of a record of each kind: head, expires, seen and the state.
local formats = {}
