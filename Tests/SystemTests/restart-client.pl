#!/usr/bin/perl
# A client that sends requests without a pause and receives every event, until /run/restart-client.stop exists. Prints
# "questions N changes N events N", or fails with the first unexpected answer or event.
use strict;
use warnings;
use IO::Socket::UNIX;
use Socket qw(SOCK_STREAM);

my $path = '/run/identityd/identityd.sock';

sub connection {
    my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) or die "connect: $!\n";
    $socket->autoflush(1);
    return $socket;
}

sub line {
    my ($socket, $name) = @_;
    local $SIG{ALRM} = sub { die "$name: no answer within 60 s\n" };
    alarm 60;
    my $line = <$socket>;
    alarm 0;
    die "$name: the connection ended\n" unless defined $line;
    chomp $line;
    return $line;
}

my ($asker, $changer, $listener) = map { connection() } 1 .. 3;
print {$listener} "subscribe\n";
my ($last) = line($listener, 'listener') =~ /^OK (\d+) epoch=/ or die "subscribe was refused\n";
my ($questions, $changes, $events) = (0, 0, 0);
my $tag = int rand 2**31;
my $uuid;
while (!-e '/run/restart-client.stop') {
    # Sends ten requests at once, one of them in two parts. Each has a different answer.
    my @wanted = map { sprintf '00000000-0000-4000-8000-%012x', $questions + $_ } 1 .. 10;
    my $text = join '', map { "check $_\n" } @wanted;
    my $half = int rand length $text;
    print {$asker} substr $text, 0, $half;
    select undef, undef, undef, 0.001 if $questions % 3 == 0;
    print {$asker} substr $text, $half;
    for my $wanted (@wanted) {
        my $answer = line($asker, 'asker');
        die "asked $wanted, was told $answer\n" unless $answer eq "OK valid $wanted";
        $questions++;
    }
    # Makes a change, and waits for its event. The tag keeps the devices of other clients apart.
    $uuid = sprintf '%08x-0000-4000-9000-%012x', $tag, $changes;
    my $verb = $changes % 2 ? 'remove' : 'put';
    $uuid = sprintf '%08x-0000-4000-9000-%012x', $tag, $changes - 1 if $changes % 2;
    print {$changer} "devices $verb $uuid\n";
    my $answer = line($changer, 'changer');
    die "$verb $uuid: $answer\n" unless $answer eq 'OK';
    $changes++;
    my $event = line($listener, 'listener');
    my $number = $last + 1;
    my $what = $changes % 2 ? 'added' : 'removed';
    die "after $last came $event\n" unless $event =~ /^EVENT $number devices $what value=$uuid /;
    $last = $number;
    $events++;
}
print "questions $questions changes $changes events $events\n";
