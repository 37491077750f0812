# Redis.pm and Redis::Fast, which has its interface. Arguments: the name of the
# module, port, TLS port, file of the authority's certificate. Each step is
# printed once it has passed.
use strict;
use warnings FATAL => 'all';
use POSIX ();

my ($module, $port, $tls_port, $authority) = @ARGV;
eval "require $module; 1" or die $@;
$| = 1;

sub passed { print "step $_[0]\n" }

sub want {
    my ($ok, $what) = @_;
    die "not so: $what\n" unless $ok;
}

# Redis::Fast knows neither users nor TLS: it logs in by a command.
my $fast = $module eq 'Redis::Fast';
my @login = $fast
    ? (on_connect => sub { $_[0]->auth('worker', 's3cret'); $_[0]->client_setname('perl') })
    : (username => 'worker', password => 's3cret', name => 'perl');

# dial connects; the module connects again by itself, for 5 s every 0.1 s.
sub dial { return $module->new(server => "127.0.0.1:$port", reconnect => 5, every => 100_000, @login, @_) }

# life takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits.
sub life {
    my ($queue, @to) = @_;
    my $r = dial(@to);
    my $payload = "\0\r\n\xff";
    my %job = $r->enqueue($queue, $payload);
    want(length $job{task_id} == 26, 'ENQUEUE answers an ID');
    my %got = $r->fetch($queue, 60000);
    want($got{payload} eq $payload && $got{task_id} eq $job{task_id}, 'the payload came back');
    want($r->ack($got{lease_id}) eq 'OK', 'ACK says OK');
    eval { $r->ack($got{lease_id}); 1 } and die "a second ACK was taken\n";
    want($@ =~ /ERR lease does not exist/, "a second ACK is refused, not $@");
    my @none = $r->fetch($queue, 60000);
    want(!grep({ defined } @none), 'FETCH on an empty queue is null');

    my $waiter = fork // die "fork: $!";
    if ($waiter == 0) {
        my $w = dial(@to);
        my %late = $w->fetch($queue, 60000, 'WAIT', 30000);
        want($late{payload} eq 'late' && $w->ack($late{lease_id}) eq 'OK', 'the job that came ends the wait');
        POSIX::_exit(0); # and leave the connections of the parent alone
    }
    for (;;) {
        my %info = $r->queue('INFO', $queue);
        last if $info{waiting} == 1;
    }
    $r->enqueue($queue, 'late');
    waitpid $waiter, 0;
    want($? == 0, 'the FETCH that waits is answered');
    $r->quit;
}

my $r = dial();
want($r->ping eq 'PONG', 'PING says PONG');
want($r->acl('WHOAMI') eq 'worker', 'the user is worker');
want($r->client_getname eq 'perl', 'the connection has its name');
want($r->info->{redis_version} =~ /^[67]\./, 'INFO is read');
passed('login');

life('perl');
passed($_) for qw(enqueue wait ack);

my $count = 0;
$r->enqueue('perl-many', $_, sub { $count++ unless defined $_[1] }) for 1 .. 10000;
$r->wait_all_responses;
want($count == 10000, 'each command of the pipeline is answered');
passed('pipeline');

$r->multi;
$r->enqueue('perl-tx', $_) for qw(a b);
my @both = $r->exec;
want(@both == 2, 'EXEC answers both');
passed('transaction');

unless ($fast) {
    IO::Socket::SSL::set_client_defaults(SSL_ca_file => $authority);
    life('perl-tls', server => "127.0.0.1:$tls_port", ssl => 1);
    passed('tls');
}

print "restart\n";
<STDIN>;
# The connection is dead. A resend must not enqueue twice: that is what UNIQUE is for.
my %first = $r->enqueue('perl-after', 'x', 'UNIQUE', 'k');
my %again = $r->enqueue('perl-after', 'x', 'UNIQUE', 'k');
want($again{task_id} eq $first{task_id} && $again{duplicate} == 1, 'the key makes it one job');
my %many = $r->stats('perl-many');
want($many{ready} == 10000, 'all jobs are there');
passed('restart');
no strict 'refs';
print 'done ', ${"${module}::VERSION"}, "\n";
