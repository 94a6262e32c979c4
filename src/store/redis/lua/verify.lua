-- Runs the commands that every decision needs, on a key that does not exist. Writes nothing: SETRANGE with
-- an empty value creates no key. ARGV: whether the store uses the clock of the server.
redis.call('GET', KEYS[1])
redis.call('HGET', KEYS[1], '')
redis.call('SETRANGE', KEYS[1], 0, '')
if ARGV[1] == 'server' then
  redis.call('TIME')
end
return 0
