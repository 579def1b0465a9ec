"""Hosts, switches and links in Linux namespaces; see docs/cluster.md.

Every host and every switch is a namespace that one sleeping process, its holder, keeps alive. The holder's argument list
carries its title, "virtual-cluster NAME ROLE SHAPE", so the process table is the only state: nothing can be stale, and when
the holders have gone, the namespaces, the links and the hosts' /dev/shm go with them.
"""
import collections
import os
import re
import shutil
import signal
import subprocess
import time

MOST_HOSTS = 250
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
# Everything that a cluster is made of, in namespaces that vanish at once.
PROBE = """ip link add name v0 type veth peer name v1 && ip link add name b0 type bridge &&
mount -t tmpfs tmpfs /dev/shm && mount -t sysfs sysfs /sys && tc qdisc add dev v0 root tbf rate 1mbit burst 64kb latency 400ms"""
# A host has a name, a /dev/shm and a /sys/class/net of its own, and knows the others' names. Its boot id, by which libraries
# tell whether ranks share a machine, is its own too. $0 title, $1 name, $2 the text of /etc/hosts. A file that is mounted over
# another lives on when its own name has gone. Its TCP is Linux's usual one, cubic, or its nearest relative where a machine
# does not lend cubic to namespaces: others, as bbr, set a timer for every packet, a fifth of a large allreduce's processor time.
HOST = """set -e; random=/proc/sys/kernel/random
control=/proc/sys/net/ipv4/tcp_congestion_control; { grep -q cubic $control || echo cubic >$control || echo reno >$control ||:; } 2>&-
hostname "$1"; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /dev/shm; cd /dev/shm
printf %s "$2" >hosts; mount --bind hosts /etc/hosts; cat $random/uuid >boot_id; mount --bind boot_id $random/boot_id
rm hosts boot_id; cd /; echo ready; exec -a "$0" sleep infinity >/dev/null 2>&1"""
BRIDGE = ["link", "add", "name", "br0", "up", "type", "bridge"]
# Where the kernel's br_netfilter is loaded, every frame would pass the packet filter: 5 to 9 % of a large allreduce's processor
# time, and rules made for other networks.
SWITCH = """for filter in /proc/sys/net/bridge/bridge-nf-call-*tables; do [ ! -w $filter ] || echo 0 >$filter; done
echo ready; exec -a "$0" sleep infinity >/dev/null 2>&1"""


class Error(Exception):
    """What the user has to know, in a sentence."""


class Shape(collections.namedtuple("Shape", "supernodes hosts host_mbit uplink_mbit")):
    """SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT; a rate of 0 is no limit."""

    @classmethod
    def parse(cls, text):
        if not re.fullmatch(r"\d+,\d+,\d+,\d+", text):
            raise Error(f'"{text}" is not SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT, such as 2,4,200,200')
        shape = cls(*map(int, text.split(",")))
        if not 1 <= shape.count <= MOST_HOSTS:
            raise Error(f"{shape.count} hosts; a cluster has 1 to {MOST_HOSTS}")
        return shape

    @property
    def count(self):
        return self.supernodes * self.hosts

    def leaf(self, host):
        """The switch of host 1, 2, ..."""
        return f"leaf{(host - 1) // self.hosts + 1}"

    def __str__(self):
        return ",".join(map(str, self))


def address(host):
    return f"10.77.0.{host}"


def obstacle():
    """Why there can be no virtual cluster here; None if there can."""
    for program, package in PACKAGES.items():
        if not shutil.which(program):
            return f"no virtual cluster here: {program} is not installed (package {package})"
    probe = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "sh", "-c", PROBE],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if probe.returncode == 0:
        return None
    reason = (probe.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"no virtual cluster here: it takes root, namespaces and rate-limited links ({reason})"


def processes():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


Title = collections.namedtuple("Title", "name role shape settled")


def read_title(pid):
    """What a holder is; None for any other process. It is settled once it is in its namespaces."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return None
    except OSError:
        return None
    for word in words if words[0] in ("unshare", "bash") else words[:1]:
        parts = word.split(" ")
        if len(parts) == 4 and parts[0] == "virtual-cluster":
            return Title(*parts[1:], settled=word == words[0])
    return None


class Cluster:
    """The cluster that is up under a name: its shape, and the process ids of its holders by role (host3, leaf1, core)."""

    def __init__(self, name):
        self.name = name
        self.shape = None
        self.holders = {}
        for pid in processes():
            title = read_title(pid)
            if title and title.name == name:
                self.holders[title.role] = pid
                self.shape = Shape.parse(title.shape)

    @property
    def is_up(self):
        # The core is made last, so what was left half-built has none.
        return "core" in self.holders

    def require(self, host=1):
        if not self.is_up:
            raise Error(f'no virtual cluster "{self.name}" is up; start one with: cluster up 2 4 200 200')
        if not 1 <= host <= self.shape.count:
            raise Error(f"host {host} is not one of 1 to {self.shape.count}")

    def enter(self, host, command):
        """The command line that runs `command` on the host, in the working directory of the caller; there, this cluster is
        the default."""
        return ["nsenter", "--target", str(self.holders[f"host{host}"]), "--net", "--uts", "--ipc", "--mount",
                "env", "-C", os.getcwd(), f"VIRTUAL_CLUSTER={self.name}", *command]

    def is_plugged(self, host):
        shown = self._ip(self.shape.leaf(host), ["-o", "link", "show", f"h{host}"])
        return "state DOWN" not in shown

    def plug(self, host, state):
        """Sets the switch's end of the host's cable "up" or "down"."""
        self._ip(self.shape.leaf(host), ["link", "set", f"h{host}", state])

    def limit(self, link, mbit):
        """Changes the rate of a link that has one: "3" is host 3's, "leaf1" a supernode's uplink. What is on its way stays."""
        if re.fullmatch(r"leaf\d+", link) and link in self.holders:
            ends, old = [(link, "uplink"), ("core", f"s{link[4:]}")], self.shape.uplink_mbit
        elif re.fullmatch(r"\d+", link) and f"host{link}" in self.holders:
            ends, old = [(f"host{link}", "eth0"), (self.shape.leaf(int(link)), f"h{link}")], self.shape.host_mbit
        else:
            raise Error(f'there is no link "{link}": links are hosts, 1 to {self.shape.count}, and uplinks, '
                        f"leaf1 to leaf{self.shape.supernodes}")
        if old == 0 or mbit < 1:
            raise Error(f"link {link} goes at {old} Mbit/s (0: no limit); a limited link can be set to 1 Mbit/s or more")
        for role, device in ends:
            self._shape(role, device, mbit, "change")

    def _ip(self, role, words, text=""):
        command = ["nsenter", "--target", str(self.holders[role]), "--net", "ip", *words]
        return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout

    def build(self, shape):
        """Makes the cluster, the core last. Whoever calls this destroys what a failure leaves behind."""
        self.shape = shape
        leaves = range(1, shape.supernodes + 1)
        hosts = range(1, shape.count + 1)
        names = "127.0.0.1 localhost\n" + "".join(f"{address(host)} tacc{host}\n" for host in hosts)
        started = [self._hold(f"leaf{leaf}", ["--net"], SWITCH) for leaf in leaves]
        started += [self._hold(f"host{host}", ["--net", "--uts", "--ipc", "--mount"], HOST, f"tacc{host}", names)
                    for host in hosts]
        for holder in started:
            self._await(holder)
        for leaf in leaves:
            self._ip(f"leaf{leaf}", BRIDGE)
        for host in hosts:
            self._link(f"host{host}", "eth0", shape.leaf(host), f"h{host}", shape.host_mbit)
            self._ip(f"host{host}", ["-batch", "-"], f"link set lo up\naddr add {address(host)}/24 dev eth0\n")
        self._await(self._hold("core", ["--net"], SWITCH))
        self._ip("core", BRIDGE)
        for leaf in leaves:
            self._link(f"leaf{leaf}", "uplink", "core", f"s{leaf}", shape.uplink_mbit)

    def _hold(self, role, namespaces, script, *words):
        title = f"virtual-cluster {self.name} {role} {self.shape}"
        holder = subprocess.Popen(["unshare", *namespaces, "bash", "-c", script, title, *words],
                                  cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        self.holders[role] = holder.pid
        return holder

    @staticmethod
    def _await(holder):
        if holder.stdout.readline() != b"ready\n":
            raise Error("a host or a switch could not be started")

    def _link(self, role, device, switch, port, mbit):
        """A cable; both ends hold back what is above the rate."""
        ends = [(role, device), (switch, port)]
        subprocess.run(["ip", "link", "add", device, "netns", str(self.holders[role]), "type", "veth", "peer", "name", port,
                        "netns", str(self.holders[switch])], check=True)
        for end, name in ends:
            bridge = "" if name == "eth0" else f"link set {name} master br0\n"
            self._ip(end, ["-batch", "-"], f"{bridge}link set {name} addrgenmode none up\n")
            if mbit > 0:
                self._shape(end, name, mbit, "add")

    def _shape(self, role, device, mbit, verb):
        # Token buckets refill continuously; a millisecond's worth of burst lets fast links reach their rate. TCP hands down
        # up to 64 KiB at a time, which count with the headers of 45 frames: a smaller bucket takes them apart, and every
        # frame costs a timer.
        burst = max(72 << 10, mbit * 125)
        subprocess.run(["nsenter", "--target", str(self.holders[role]), "--net", "tc", "qdisc", verb, "dev", device,
                        "root", "tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "400ms"], check=True)

    def destroy(self):
        """Ends the holders and every process that is in one of their namespaces. Returns when all have gone."""
        outside = os.stat("/proc/self/ns/net").st_ino
        deadline = time.monotonic() + 10
        while victims := self._members(outside):
            for pid in victims:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if time.monotonic() > deadline:
                raise Error(f"processes {sorted(victims)} do not end")
            time.sleep(0.01)

    def _members(self, outside):
        networks = {}
        holders = set()
        inside = set()
        for pid in processes():
            try:
                networks[pid] = os.stat(f"/proc/{pid}/ns/net").st_ino  # fails for those that have ended
            except OSError:
                continue
            title = read_title(pid)
            if title and title.name == self.name:
                holders.add(pid)
                # One that is still on its way into its namespaces must not take those of its parent along.
                if title.settled and networks[pid] != outside:
                    inside.add(networks[pid])
        return holders | {pid for pid, network in networks.items() if network in inside}
