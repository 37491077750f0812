# redis-rb. Arguments: port, TLS port, file of the authority's certificate. Each
# step is printed once it has passed.
require 'redis'

PORT, TLS_PORT, AUTHORITY = ARGV
$stdout.sync = true

def passed(step)
  puts "step #{step}"
end

def want(so, what)
  abort "not so: #{what}" unless so
end

# A wait of 30 s needs a read time-out above it.
def dial(**to)
  Redis.new(host: '127.0.0.1', port: PORT, username: 'worker', password: 's3cret', id: 'ruby', read_timeout: 40, **to)
end

# life takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits.
def life(queue, **to)
  r, waiter = dial(**to), dial(**to)
  payload = "\0\r\n\xff".b
  name, job = r.call('ENQUEUE', queue, payload)
  want name == 'task_id' && job.size == 26, 'ENQUEUE answers an ID'
  got = r.call('FETCH', queue, 60_000).each_slice(2).to_h
  want got['payload'].b == payload && got['task_id'] == job, 'the payload came back'
  want r.call('ACK', got['lease_id']) == 'OK', 'ACK says OK'
  begin
    r.call('ACK', got['lease_id'])
    abort 'a second ACK was taken'
  rescue Redis::CommandError => e
    want e.message == 'ERR lease does not exist', "a second ACK is refused, not #{e}"
  end
  want r.call('FETCH', queue, 60_000).nil?, 'FETCH on an empty queue is nil'

  late = Thread.new { waiter.call('FETCH', queue, 60_000, 'WAIT', 30_000) }
  nil until r.call('QUEUE', 'INFO', queue).each_slice(2).to_h['waiting'] == 1
  r.call('ENQUEUE', queue, 'late')
  got = late.value.each_slice(2).to_h
  want got['payload'] == 'late', 'the job that came ends the wait'
  want waiter.call('ACK', got['lease_id']) == 'OK', 'ACK says OK'
  [r, waiter].each(&:close)
end

r = dial
want r.ping == 'PONG', 'PING says PONG'
want r.call('ACL', 'WHOAMI') == 'worker', 'the user is worker'
r.call('CLIENT', 'SETNAME', 'ruby')
want r.client(:getname) == 'ruby', 'the connection has its name'
want r.info['redis_version'].to_i >= 6, 'INFO is read'
want r.client(:list).any? { |c| c['name'] == 'ruby' }, 'CLIENT LIST is read'
passed 'login'

life 'rb'
%w[enqueue wait ack].each { |step| passed step }

ids = r.pipelined { |p| 10_000.times { |i| p.call(['ENQUEUE', 'rb-many', i]) } }.map(&:last)
want ids.uniq.size == 10_000, 'each command of the pipeline is answered'
passed 'pipeline'

both = r.multi { |m| %w[a b].each { |payload| m.call(['ENQUEUE', 'rb-tx', payload]) } }
want both.size == 2, 'EXEC answers both'
passed 'transaction'

life 'rb-tls', port: TLS_PORT, ssl: true, ssl_params: { ca_file: AUTHORITY }
passed 'tls'

puts 'restart'
$stdin.gets
# The connection is dead. A resend must not enqueue twice: that is what UNIQUE is for.
begin
  first = r.call('ENQUEUE', 'rb-after', 'x', 'UNIQUE', 'k')
rescue Redis::BaseConnectionError
  retry
end
again = r.call('ENQUEUE', 'rb-after', 'x', 'UNIQUE', 'k')
want again[1] == first[1] && again[3] == 1, 'the key makes it one job'
want r.call('STATS', 'rb-many')[1] == 10_000, 'all jobs are there'
passed 'restart'
puts "done #{Redis::VERSION}"
