<?php
// phpredis and Predis. Arguments: which of them, port, TLS port, file of the
// authority's certificate. Each step is printed once it has passed.
[, $name, $port, $tlsPort, $authority] = $argv;

function passed(string $step): void
{
    echo "step $step\n";
}

function want(bool $so, string $what): void
{
    if (!$so) {
        fwrite(STDERR, "not so: $what\n");
        exit(1);
    }
}

function pairs(array $reply): array
{
    return array_combine(
        array_filter($reply, fn($i) => $i % 2 == 0, ARRAY_FILTER_USE_KEY),
        array_filter($reply, fn($i) => $i % 2 == 1, ARRAY_FILTER_USE_KEY),
    );
}

/** What both can do. A refusal is an exception, null is null. */
interface Client
{
    public function call(string ...$words): mixed;
    public function pipeline(array $commands): array;
    public function transaction(array $commands): array;
}

class PhpRedis implements Client
{
    private Redis $r;

    public function __construct(int $port, ?string $authority)
    {
        $this->r = new Redis();
        $context = ['stream' => ['cafile' => $authority]];
        $authority ? $this->r->connect('tls://127.0.0.1', $port, 5, null, 0, 40, $context) : $this->r->connect('127.0.0.1', $port, 5, null, 0, 40);
        $this->r->auth(['worker', 's3cret']);
        $this->r->client('setname', 'phpredis');
    }

    // A refusal is false, as null is, and its text is kept.
    public function call(string ...$words): mixed
    {
        $this->r->clearLastError();
        $reply = $this->r->rawCommand(...$words);
        if ($error = $this->r->getLastError()) {
            throw new RuntimeException($error);
        }
        return $reply === false ? null : $reply;
    }

    private function all(int $mode, array $commands): array
    {
        $this->r->multi($mode);
        foreach ($commands as $c) {
            $this->r->rawCommand(...$c);
        }
        return $this->r->exec();
    }

    public function pipeline(array $commands): array
    {
        return $this->all(Redis::PIPELINE, $commands);
    }

    public function transaction(array $commands): array
    {
        return $this->all(Redis::MULTI, $commands);
    }

    public static function version(): string
    {
        return phpversion('redis');
    }
}

class PhpPredis implements Client
{
    private Predis\Client $r;

    public function __construct(int $port, ?string $authority)
    {
        $to = ['host' => '127.0.0.1', 'port' => $port, 'username' => 'worker', 'password' => 's3cret', 'read_write_timeout' => 40];
        $this->r = new Predis\Client($authority ? $to + ['scheme' => 'tls', 'ssl' => ['cafile' => $authority]] : $to);
        $this->call('CLIENT', 'SETNAME', 'predis');
    }

    public function call(string ...$words): mixed
    {
        $reply = $this->r->executeCommand(new Predis\Command\RawCommand($words));
        return $reply instanceof Predis\Response\Status ? (string) $reply : $reply;
    }

    public function pipeline(array $commands): array
    {
        return $this->r->pipeline(function ($p) use ($commands) {
            foreach ($commands as $c) {
                $p->executeCommand(new Predis\Command\RawCommand($c));
            }
        });
    }

    public function transaction(array $commands): array
    {
        return $this->r->transaction(function ($t) use ($commands) {
            foreach ($commands as $c) {
                $t->executeCommand(new Predis\Command\RawCommand($c));
            }
        });
    }

    public static function version(): string
    {
        return Predis\Client::VERSION;
    }
}

function dial(bool $secure = false): Client
{
    global $name, $port, $tlsPort, $authority;
    $class = $name == 'predis' ? PhpPredis::class : PhpRedis::class;
    return $secure ? new $class($tlsPort, $authority) : new $class($port, null);
}

/** life takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits. */
function life(string $queue, bool $secure): void
{
    $r = dial($secure);
    $payload = "\0\r\n\xff";
    $job = pairs($r->call('ENQUEUE', $queue, $payload));
    want(strlen($job['task_id']) == 26, 'ENQUEUE answers an ID');
    $got = pairs($r->call('FETCH', $queue, 60000));
    want($got['payload'] === $payload && $got['task_id'] === $job['task_id'], 'the payload came back');
    want(in_array($r->call('ACK', $got['lease_id']), [true, 'OK'], true), 'ACK says OK');
    try {
        $r->call('ACK', $got['lease_id']);
        want(false, 'a second ACK is refused');
    } catch (Exception $e) {
        want($e->getMessage() == 'ERR lease does not exist', "a second ACK is refused, not {$e->getMessage()}");
    }
    want($r->call('FETCH', $queue, 60000) === null, 'FETCH on an empty queue is null');

    $waiter = pcntl_fork();
    if ($waiter == 0) {
        $w = dial($secure);
        $late = pairs($w->call('FETCH', $queue, 60000, 'WAIT', 30000));
        want($late['payload'] === 'late', 'the job that came ends the wait');
        $w->call('ACK', $late['lease_id']);
        exit(0);
    }
    while (pairs($r->call('QUEUE', 'INFO', $queue))['waiting'] != 1);
    $r->call('ENQUEUE', $queue, 'late');
    want(pcntl_waitpid($waiter, $status) == $waiter && $status == 0, 'the FETCH that waits is answered');
}

if ($name == 'predis') {
    require 'Predis/autoload.php';
}
$r = dial();
want($r->call('ECHO', 'hello') == 'hello', 'ECHO echoes');
want($r->call('ACL', 'WHOAMI') == 'worker', 'the user is worker');
want($r->call('CLIENT', 'GETNAME') == $name, 'the connection has its name');
passed('login');

life("php-$name", false);
array_map('passed', ['enqueue', 'wait', 'ack']);

$replies = $r->pipeline(array_map(fn($i) => ['ENQUEUE', "php-$name-many", $i], range(1, 10000)));
want(count(array_unique(array_column($replies, 1))) == 10000, 'each command of the pipeline is answered');
passed('pipeline');

want(count($r->transaction([['ENQUEUE', "php-$name-tx", 'a'], ['ENQUEUE', "php-$name-tx", 'b']])) == 2, 'EXEC answers both');
passed('transaction');

life("php-$name-tls", true);
passed('tls');

echo "restart\n";
fgets(STDIN);
// The connection is dead. A resend must not enqueue twice: that is what UNIQUE is for.
for ($first = null; $first === null;) {
    try {
        $first = $r->call('ENQUEUE', "php-$name-after", 'x', 'UNIQUE', 'k');
    } catch (Exception) {
        continue;
    }
}
$again = $r->call('ENQUEUE', "php-$name-after", 'x', 'UNIQUE', 'k');
want($again[1] == $first[1] && $again[3] == 1, 'the key makes it one job');
want(pairs($r->call('STATS', "php-$name-many"))['ready'] == 10000, 'all jobs are there');
passed('restart');
echo 'done ', $r::version(), "\n";
