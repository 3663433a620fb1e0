"""x86-64 and aarch64 ranks in one job: whatever hosts do among themselves, they do with one of another processor, too.

Every second host is an aarch64 machine as far as its ranks can tell: qemu runs them, with Debian's arm64 libraries.
"""

import os

import contract
import messages
import windows
from bed import CACHE, PROJECT
from bed.case import HELLO
from bed.world import SHARED, Missing, main, need
from harness.jobs import PROGRAMS

SYSROOT = os.path.join(CACHE, "aarch64")
BUILT = PROJECT / "build" / "aarch64"

# Ranks of even hosts run this build's program, ranks of odd hosts the aarch64 build's.
PROGRAM = """#!/bin/sh
case $(hostname) in
  h*[13579]) exec qemu-aarch64 -L {sysroot} {there} "$@" ;;
esac
exec {here} "$@"
"""


def mixed(name, folder=PROGRAMS, there=os.path.join("tests", "programs")):
    """A program that is x86-64's or aarch64's, as the host is."""
    there = BUILT / there / name
    if not there.exists():
        raise Missing(f"no {there}: make test-aarch64")
    path = os.path.join(SHARED, name)
    with open(path, "w", opener=lambda file, flags: os.open(file, flags, 0o755)) as file:
        file.write(PROGRAM.format(sysroot=SYSROOT, here=os.path.join(folder, name), there=there))
    return path


def setUpModule():
    need("qemu-aarch64", install="scripts/setup aarch64")
    messages.MESSAGES = mixed("messages")
    messages.DEATHS = mixed("message_deaths")
    messages.HELLO = mixed("hello", os.path.dirname(HELLO), "examples")
    windows.WINDOWS = mixed("windows")
    windows.DEATHS = mixed("window_deaths")
    windows.ROUNDS = mixed("window_rounds")


class Contract(contract.ContractTest):
    """The suite of every transport, tests/contract, between ranks of both processors."""

    def test_the_transport_contract_holds_between_two_architectures(self):
        self.check_contract(self.make_hosts(2), ["x86_64", "aarch64"], program=mixed("contract"))


# Their tests, with the programs above.
class Messages(messages.Traffic):
    pass


class MessageDeaths(messages.Deaths):
    pass


class Windows(windows.Primitives):
    pass


class WindowDeaths(windows.Deaths):
    pass


if __name__ == "__main__":
    main()
