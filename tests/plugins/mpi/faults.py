#!/usr/bin/env python3
"""faults.py MPI PROGRAM LIBRARY: faults from outside meet drawn MPI programs (faulty.cpp), each with libtacc_mpi and without.

With the library a program never hangs where it does not without it, never gives wrong numbers, never crashes where it does
not without it, ends well if it does without it, and says nothing but what the fault is to be told by: a line with what, where,
which rank and what would be right. By hand: TACC_TEST_SEEDS="1 2 3" for other draws, TACC_TEST_ONLY=shm for one kind of fault.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

mpi, program, library = sys.argv[1:4]
launcher = {"mpich": ["mpiexec.mpich"], "openmpi": ["mpiexec.openmpi", "--oversubscribe", "--allow-run-as-root"]}[mpi]
patience = 25  # seconds for a program that takes a second or two
crash = re.compile(r"segmentation fault|signal: segm|signal 11|signal 6\b|signal: aborted|terminate called|core dumped|sanitizer", re.I)
late = 15  # seconds
heard_late = ["sh", "-c", f'"$@" || exec sleep {late}', "sh"]
joinless = r"tacc: a communicator of \d ranks stays with MPI, as rank \d could not join: "  # its rank there
broken = r"tacc: MPI_\w+, rank \d of \d: .*rank {victim}\b"


class Fault:
    """One program and what befalls it. `around(rank)`: what stands before the program's name on a rank."""

    def __init__(self, name, way="calls", around=lambda rank: [], outside=(), options=(), lines=(), must=None, lacking=(),
                 fails_its_own_way=False, ends_by_chance=False):
        self.name, self.way, self.around, self.outside = name, way, around, list(outside)
        self.options, self.lines, self.must, self.lacking = list(options), lines, must, lacking
        self.fails_its_own_way = fails_its_own_way  # MPI, where it does: by an error or by a crash, from run to run
        self.ends_by_chance = ends_by_chance  # whether the launcher takes an end for an error depends on who ends first

    def command(self, ranks, seed, is_preloaded):
        parts = []
        for rank in range(ranks):
            has = is_preloaded and rank not in self.lacking
            parts.append(["-n", "1", *self.around(rank), "env", *(["LD_PRELOAD=" + library] if has else []), program, self.way, str(seed)])
        return self.outside + launcher + self.options + [word for part in parts for word in [":", *part]][1:]


class Outcome:
    def __init__(self, command):
        begin = time.monotonic()
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", start_new_session=True)
        self.hangs = False
        try:
            self.output, _ = running.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.hangs = True
            os.killpg(running.pid, signal.SIGTERM)  # the launcher ends its ranks
            try:
                self.output, _ = running.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                self.output, _ = running.communicate()
        self.code, self.seconds = running.returncode, time.monotonic() - begin
        self.crashes = crash.search(self.output) is not None

    def __str__(self):
        return f"{'hangs' if self.hangs else self.code}{', crashes' if self.crashes else ''}, {self.seconds:.1f} s"


def in_mounts(*commands):
    """What is mounted is seen by the program alone."""
    return ["unshare", "-m", "sh", "-c", " && ".join(commands) + ' && exec "$@"', "sh"]


def on(victim, words):
    return lambda rank: words if rank == victim else []


def spread(draw, least, most, parts):
    """One drawn number of each of as many parts of a range."""
    edges = [least + (most - least) * part // parts for part in range(parts + 1)]
    return [draw.randrange(low, high) for low, high in zip(edges, edges[1:])]


def faults(draw, ranks):
    last = ranks - 1
    dies = [broken.format(victim=last), r"tacc: MPI_\w+, rank \d of \d: .*(aborted|has failed)"]
    for way in ("kill", "stop"):
        yield Fault(way, way, lines=dies if way == "kill" else ())
    # The launcher hears of it late, so that the others are ended by the library or by nobody.
    yield Fault("left", "left", around=lambda rank: ["env", "TACC_MPI_CONTEST=off", "TACC_MPI_NONBLOCKING=0", *(heard_late if rank == last else [])],
                must=broken.format(victim=last))
    for way in ("shells", "errors", "abort", "unfinalized", "open"):
        yield Fault(way, way, ends_by_chance=way == "unfinalized")
    closed = draw.sample(["<&-", ">&-", "2>&-"], draw.randint(1, 3))
    yield Fault("streams " + " ".join(closed), around=on(draw.randrange(ranks), ["sh", "-c", f'exec "$@" {" ".join(closed)}', "sh"]))
    # From where MPI itself starts, and what a rank that meets others needs beyond; on all ranks, and on one that others come to.
    base = {"mpich": 28, "openmpi": 17}[mpi]
    for few in spread(draw, base - 4, base + 14, 3) + spread(draw, base, base + 6, 3):
        limit, victim = ["prlimit", f"--nofile={few}:{few}"], draw.randrange(ranks)
        for where, around in ("on all ranks", lambda rank, limit=limit: limit), (f"on rank {victim}", on(victim, limit)):
            yield Fault(f"few files, {few} {where}", around=around, fails_its_own_way=True,
                        lines=[joinless + r".*process \d+ may.*raise ulimit -n"])
    if can_mount:
        size = draw.choice(["64k", "200k", "2m", "9m"])
        yield Fault(f"shm of {size}", outside=in_mounts(f"mount -t tmpfs -o size={size} tmpfs /dev/shm"))
        yield Fault("shm read only", outside=in_mounts("mount -t tmpfs -o ro tmpfs /dev/shm"))
        yield Fault("tmp read only", outside=in_mounts("mount --rbind /tmp /tmp", "mount -o remount,ro,bind /tmp"))
    legal = ["TACC_ISA=avx2", "TACC_DEBUG=error", "TACC_SPIN=0", "TACC_TIMEOUT=300", "TACC_MPI_CONTEST=1", "TACC_MPI_CONTEST=off",
             "TACC_MPI_NONBLOCKING=0", "TACC_MPI_NONBLOCKING=off", "TACC_MPI=off", "TACC_TRANSPORT=mpi", "TACC_TRANSPORT=tcp",
             "TACC_SHM=off", "TACC_CMA=off", "TACC_CHUNK_SIZE=64K", "TACC_ALGO=ring", "TACC_DYNAMIC=off", "TACC_REPRODUCIBLE=on"]
    wrong = ["TACC_ALGO", "TACC_ISA", "TACC_TIMEOUT", "TACC_SPIN", "TACC_CHUNK_SIZE", "TACC_CMA", "TACC_TRANSPORT", "TACC_SHM",
             "TACC_INIT_TIMEOUT", "TACC_REPRODUCIBLE"]
    for one in draw.sample(legal, 2):
        victim = draw.randrange(ranks)
        yield Fault(f"{one} on rank {victim}", around=on(victim, ["env", one]),
                    lines=[f"tacc: .*{one.partition('=')[0]}\\b"])
    one, victim = draw.choice(wrong), draw.randrange(ranks)
    yield Fault(f"{one}=wrong on rank {victim}", around=on(victim, ["env", one + "=wrong"]),
                must=joinless + f'.*{one}="wrong" is not valid: allowed are .*')
    only, victim = draw.choice(["TACC_MPI", "TACC_MPI_NONBLOCKING", "TACC_MPI_CONTEST"]), draw.randrange(1, ranks)  # rank 0 speaks for all else
    yield Fault(f"{only}=wrong on rank {victim}", around=on(victim, ["env", only + "=wrong"]),
                must=f'tacc: {only} is "wrong" on rank {victim}; it must be .*')
    lacking = sorted(draw.sample(range(ranks), draw.randint(1, ranks - 1)))
    yield Fault(f"not preloaded: {lacking}", lacking=lacking,
                must=rf"tacc: libtacc_mpi is preloaded into some ranks only \(rank {', '.join(map(str, lacking))} has none\), .*")


def outcomes(fault, ranks, seed):
    """Without the library, and with it."""
    plain = Outcome(fault.command(ranks, seed, False)) if fault.name != "left" else None
    return plain, Outcome(fault.command(ranks, seed, True))


def complaints(fault, plain, preloaded):
    """`plain`: without the library; None where those who are left would wait for the killed one for ever."""
    if preloaded.hangs and not (plain and plain.hangs):
        yield "hangs"
    if not plain and preloaded.code == 0:
        yield "ends well"
    if not plain and preloaded.seconds >= late:
        yield "is ended by the launcher"
    if "FAILED" in preloaded.output:
        yield "gives wrong numbers"
    if preloaded.crashes and not (plain and (plain.crashes or (fault.fails_its_own_way and plain.code != 0))):
        yield "crashes"
    if plain and (plain.code == 0) != (preloaded.code == 0) and not preloaded.hangs and not fault.ends_by_chance:
        yield "ends otherwise"
    said = [line for line in preloaded.output.splitlines() if "tacc: " in line]
    for line in said:
        if not any(re.search(pattern, line) for pattern in [*fault.lines, fault.must or r"(?!)"]):
            yield "says what it should not: " + line
    times = sum(re.search(fault.must, line) is not None for line in said) if fault.must else 1
    # The first one that is left ends the program, before others may have spoken.
    if not 1 <= times <= (ranks - 1 if fault.name == "left" else 1):
        yield f"says {times} times: {fault.must}"


if shutil.which(launcher[0]) is None:
    print(f"skipped: {mpi} is not installed")
    sys.exit(77)
can_mount = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], stderr=subprocess.DEVNULL).returncode == 0
if not can_mount:
    print("left out: /dev/shm that is full and /tmp that nobody may write, as nothing may be mounted here")
bad = met = 0
at_once = ThreadPoolExecutor(3)  # of their time, they wait for most
for seed in map(int, os.environ.get("TACC_TEST_SEEDS", "1").split()):
    draw = random.Random(seed)
    ranks = 2 + seed % 2
    chosen = [fault for fault in faults(draw, ranks) if fault.name.startswith(os.environ.get("TACC_TEST_ONLY", ""))]
    for fault, (plain, preloaded) in zip(chosen, at_once.map(lambda fault: outcomes(fault, ranks, seed), chosen)):
        met += 1
        found = list(complaints(fault, plain, preloaded))
        print(f"seed {seed}, {ranks} ranks, {fault.name}: {plain or '-'} | {preloaded}: {'; '.join(found) or 'right'}", flush=True)
        if found:
            bad += 1
            print(preloaded.output)
print(f"{bad} of {met} wrong" if bad or not met else "all right")
sys.exit(1 if bad or not met else 0)
