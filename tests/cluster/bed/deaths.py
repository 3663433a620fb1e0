"""How soon the ranks of other hosts must know that one is gone."""

# A process that dies: its connections break at once. docs/design.md promises one second; the rest is for a busy
# machine.
DEATH_BOUND = 4.0

# A host that falls silent: docs/modules/fabric.md promises ten seconds, and says how to make it four.
SILENCE_BOUND = 14.0
IMPATIENT = [word for name, value in (("KEEPIDLE", "1s"), ("KEEPCNT", "3"), ("KEEPINTVL", "1s"))
             for word in ("-x", f"TONARI_UCX_TCP_{name}={value}")]
IMPATIENT_BOUND = 8.0
