"""How soon the ranks of other hosts must know that one is gone."""

# Of a process: its connections break at once. docs/design.md has a second; the rest is for a busy machine.
DEATH_BOUND = 4.0

# Of a host that is silent: docs/modules/fabric.md has ten seconds, and how to have four.
SILENCE_BOUND = 14.0
IMPATIENT = [word for name, value in (("KEEPIDLE", "1s"), ("KEEPCNT", "3"), ("KEEPINTVL", "1s"))
             for word in ("-x", f"TONARI_UCX_TCP_{name}={value}")]
IMPATIENT_BOUND = 8.0
