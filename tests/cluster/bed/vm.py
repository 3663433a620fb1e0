"""A machine with a verbs device: Soft-RoCE in a virtual machine, which runs one command and is gone.

It sees the files of this machine. Its writes are lost when it ends, except writes to the project's folder. With
/dev/kvm it is as fast as this machine, without it ten times as slow. It needs a world of bed.world: its command is
passed in /srv.
"""

import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess

from bed import CACHE, FOLDER, PROJECT
from bed.world import SHARED, Missing, need

# UCX's ud_verbs drops every packet of Soft-RoCE's unless told not to look whom it was for.
ENVIRONMENT = {"UCX_UD_ETH_DGID_CHECK": "n", "LANG": "C.UTF-8"}


def run(*words, timeout=300, memory_mib=2048, newer=False):
    """Runs a command in the machine. Returns the same as subprocess.run(). `newer`: on a kernel that has UFFDIO_MOVE,
    which the distribution's own may lack."""
    need("qemu-system-x86_64", install="scripts/setup verbs")
    folder = os.path.join(CACHE, "vm", "newer" if newer else "")
    kernel, files = (os.path.join(folder, name) for name in ("vmlinuz", "initrd"))
    if not os.path.exists(kernel):
        raise Missing(f"no kernel for a virtual machine in {folder}: scripts/setup verbs")

    control = pathlib.Path(SHARED, "vm")
    shutil.rmtree(control, ignore_errors=True)
    control.mkdir()
    shutil.copy(FOLDER / "vm" / "boot", control)
    variables = {**ENVIRONMENT, "PROJECT": str(PROJECT), "PATH": os.environ["PATH"],
                 "HOME": os.environ.get("HOME", "/")}
    exports = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    (control / "environment").write_text("".join(exports))
    (control / "command").write_text(shlex.join(map(str, words)) + "\n")

    machine = ["-machine", "q35", "-smp", "2", "-m", str(memory_mib), "-nodefaults", "-no-user-config", "-no-reboot"]
    command = ["qemu-system-x86_64", *_acceleration(), *machine, "-display", "none",
               "-serial", f"file:{control}/console", "-kernel", kernel, "-initrd", files,
               # Without a watchdog of the clock: it patches the running kernel, which QEMU's emulation may not survive.
               "-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable",
               *_share("files", "/", "readonly=on"), *_share("project", PROJECT), *_share("control", control),
               *_port("left"), *_port("right")]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        parts = [control / name for name in ("output", "error")]
        said = "".join(part.read_text(errors="replace") for part in parts if part.exists())
        raise RuntimeError(f"the machine was not done after {timeout} s; it said: {said}") from None
    if not (control / "status").exists():
        console = (control / "console").read_text(errors="replace")
        raise RuntimeError(f"the machine ended early: {done.stderr}\n{console}")
    return subprocess.CompletedProcess(words, int((control / "status").read_text()), (control / "output").read_text(),
                                       (control / "error").read_text())


def _acceleration():
    with open("/proc/cpuinfo") as file:
        virtual = re.search(r"\b(vmx|svm)\b", file.read())
    if platform.machine() == "x86_64" and virtual and os.access("/dev/kvm", os.W_OK):
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def _port(name):
    return ["-netdev", f"hubport,id={name},hubid=0", "-device", f"virtio-net-pci,netdev={name}"]


def _share(name, folder, *options):
    backend = ["local", f"id={name}", f"path={folder}", "security_model=none", "multidevs=remap", *options]
    return ["-fsdev", ",".join(backend), "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
