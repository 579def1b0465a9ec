"""Starts a command once per rank on the hosts of a virtual cluster, as torchrun does, and ends all ranks together."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

import virtual_cluster

PATIENCE = 2  # seconds between asking ranks to end and ending them
MASTER_PORT = 29500


def place(ranks, placement, shape):
    """The host (1, 2, ...) of each rank.

    block: hosts are filled one after the other. random[:SEED]: the same with the hosts in a random order. cyclic: ranks are
    dealt round over the supernodes, and there over the hosts.
    """
    each = -(-ranks // shape.count)
    hosts = list(range(1, shape.count + 1))
    if placement == "block":
        return [hosts[rank // each] for rank in range(ranks)]
    if placement == "cyclic":
        number = {host.name: n for n, host in enumerate(shape.hosts, 1)}
        groups = [[number[host.name] for host in member.hosts()] for member in shape.members]
        dealt = [group[turn] for turn in range(max(map(len, groups))) for group in groups if turn < len(group)]
        return [dealt[rank % shape.count] for rank in range(ranks)]
    kind, _, seed = placement.partition(":")
    if kind != "random" or not (seed or "0").isdigit():
        raise virtual_cluster.Error(f'"{placement}" is not block, cyclic, random or random:SEED')
    random.Random(int(seed or 0)).shuffle(hosts)
    return [hosts[rank // each] for rank in range(ranks)]


class Ranks:
    """The running ranks."""

    def __init__(self, cluster, hosts, command, label):
        self._running = {}  # rank by process
        self._pumps = []
        self._lock = threading.Lock()
        try:
            for rank, host in enumerate(hosts):
                environment = {"RANK": rank, "WORLD_SIZE": len(hosts), "LOCAL_RANK": hosts[:rank].count(host),
                               "MASTER_ADDR": virtual_cluster.address(hosts[0]), "MASTER_PORT": MASTER_PORT}
                self._start(rank, cluster.enter(host, command), {k: str(v) for k, v in environment.items()}, label)
        except BaseException:
            self.end()
            raise

    def _start(self, rank, command, environment, label):
        output = subprocess.PIPE if label else None
        # A rank is in a session of its own so that Ctrl-C reaches it only through end(), and dies with this process.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], env={**os.environ, **environment},
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        self._running[process] = rank
        for pipe, target in [(process.stdout, sys.stdout), (process.stderr, sys.stderr)] if label else []:
            self._pumps.append(threading.Thread(target=self._pump, args=(rank, pipe, target), daemon=True))
            self._pumps[-1].start()

    def _pump(self, rank, pipe, target):
        for line in pipe:
            with self._lock:
                target.buffer.write(f"[{rank}] ".encode() + line.rstrip(b"\n") + b"\n")
                target.buffer.flush()

    def wait(self):
        """The status of the first rank that failed, or 0 when all have ended well."""
        while self._running:
            process = self._next()
            rank = self._running.pop(process)
            status = process.returncode if process.returncode >= 0 else 128 - process.returncode
            if status != 0:
                print(f"cluster: rank {rank} ended with status {status}", file=sys.stderr)
                self._signal(process, signal.SIGKILL)
                return status
        for pump in self._pumps:
            pump.join(1)  # what a rank left running may keep its output open
        return 0

    def _next(self):
        """The next one to end. WNOWAIT: its Popen collects the status."""
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            for process in self._running:
                if process.pid == ended:
                    process.wait()
                    return process
            os.waitpid(ended, 0)

    def end(self):
        """Asks the ranks to end, then ends them."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + PATIENCE
            for process in self._running:
                self._signal(process, number)
            for process in self._running:
                try:
                    process.wait(max(0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    pass
        for process in self._running:
            self._signal(process, signal.SIGKILL)  # what it left behind in its session
        self._running = {}

    @staticmethod
    def _signal(process, number):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
