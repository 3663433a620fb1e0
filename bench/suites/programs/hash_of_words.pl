# Counts pairs of neighbouring words of a text: many small objects.
use strict;
use warnings;

open(my $file, '<', $ARGV[0]) or die "$ARGV[0]: $!\n";
local $/ = ' ';
my (%count, $before);
while (my $word = <$file>) {
  chomp $word;
  $count{"$before $word"}++ if defined $before;
  $before = $word;
}
my @most = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print scalar(@most), "\n";
print "$_ $count{$_}\n" for @most[0 .. 9];
