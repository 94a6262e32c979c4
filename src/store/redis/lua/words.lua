-- What every part of a script starts with. Names in CAPITALS are constants of script.rs.
--
-- Numbers are whole and, where it matters, below 2^53, so that a double holds them exactly; quotas
-- are refused whose products would not be. Two facts carry the rest:
--
--  * Quotients are exact. For whole a and b below 2^53, a / b is rounded by less than 1 / b, and
--    that much at least separates it from the next whole number. So a % b is the remainder,
--    (a - a % b) / b the quotient rounded down, and (a + -a % b) / b the quotient rounded up.
--  * Rounding keeps order. A product beyond 2^53 may be off, but it stays beyond 2^53, and is only
--    ever compared with what is smaller, or cut off.
--
-- A decision takes some thousand steps of the interpreter, which is most of its price: hence
-- comparisons instead of calls of math.max, and arithmetic instead of calls of math.floor.
local read, write, call = struct.unpack, struct.pack, redis.call

-- One function for each kind of counter: what to do, the counter's record or false, the instant,
-- the cost, when it was charged (to give it back), and the quota: amount, window and two numbers
-- more; then key and name of the counter, and what its record says, if that was read already. Returns outcome, used and reset; and if something changes, the new record and when that is
-- worth nothing any more. A record begins with the latter, and with the instant it was written at.
local steps = {}
