"""Hosts, switches and links in Linux namespaces; see docs/extend/cluster.md.

Every host and every switch is a namespace that one sleeping process, its holder, keeps alive. The holder's argument list
carries its title, "virtual-cluster NAME ROLE SHAPE", so the process table is the only state: nothing can be stale, and when
the holders have gone, the namespaces, the links and the hosts' /dev/shm go with them.
"""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import time

MOST_HOSTS = 250
LEAST_RATE, MOST_RATE = 1e3, 1e12  # bytes per second
MOST_LATENCY = 8  # seconds; half of it is a delay at either end, which the kernel holds in 32 bits of nanoseconds
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


class Node(collections.namedtuple("Node", "name kbit delay members")):
    """A host (no members), or a switch with what is plugged into it; the link that leads on from it, with its rate in kbit/s
    (0: no limit) and how long it holds a frame on its way, in nanoseconds."""

    def __str__(self):
        inside = f"({','.join(map(str, self.members))})" if self.members else ""
        return f"{self.name}:{self.kbit}/{self.delay}{inside}"

    def hosts(self):
        return [host for member in self.members for host in member.hosts()] if self.members else [self]


class Shape:
    """What a cluster is: what is plugged into its core, and the text by which it is known."""

    def __init__(self, text, members):
        self.text = text
        self.members = members
        self.hosts = [host for member in members for host in member.hosts()]
        self.switches = {}  # by name
        self.parents = {}  # the name of the switch that a host or a switch is plugged into
        self._climb("core", members)
        if not 1 <= self.count <= MOST_HOSTS:
            raise Error(f"{self.count} hosts; a cluster has 1 to {MOST_HOSTS}")

    def _climb(self, parent, members):
        for node in members:
            self.parents[node.name] = parent
            if node.members:
                self.switches[node.name] = node
                self._climb(node.name, node.members)

    @classmethod
    def parse(cls, text):
        """S,H,MBIT,UPLINK; a topology file; or what title() gives."""
        if re.fullmatch(r"\d+,\d+,\d+,\d+", text):
            supernodes, hosts, mbit, uplink = map(int, text.split(","))
            return cls(text, [
                Node(f"leaf{s + 1}", uplink * 1000, 0,
                     [Node(f"tacc{s * hosts + h + 1}", mbit * 1000, 0, None) for h in range(hosts)])
                for s in range(supernodes) if hosts])
        if text.startswith(TITLE):
            name, _, nodes = text[len(TITLE):].partition("=")
            return cls(name, read_nodes(nodes))
        if os.path.exists(text):
            return cls(os.path.basename(text).replace(" ", "_"), read_topology(text))
        raise Error(f'"{text}" is neither SUPERNODES,HOSTS_PER_SUPERNODE,HOST_MBIT,UPLINK_MBIT, such as 2,4,200,200, nor a '
                    "topology file that is there")

    @property
    def count(self):
        return len(self.hosts)

    def title(self):
        """All of it, without a space."""
        return f"{TITLE}{self.text}={','.join(map(str, self.members))}"

    def __eq__(self, other):
        return self.members == other.members

    def __str__(self):
        return self.text


TITLE = "network:"


def read_nodes(text):
    """What str() makes of nodes."""
    def read(at):
        nodes = []
        while True:
            name, kbit, delay = re.compile(r"([\w.-]+):(\d+)/(\d+)").match(text, at).groups()
            at += len(f"{name}:{kbit}/{delay}")
            members = None
            if text[at:at + 1] == "(":
                members, at = read(at + 1)
                at += 1
            nodes.append(Node(name, int(kbit), int(delay), members))
            if text[at:at + 1] != ",":
                return nodes, at
            at += 1
    return read(0)[0]


def topology_program():
    """tacc_topo, which reads files of topologies; it has been built, or is installed."""
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.environ.get("TACC_TOPO"), f"{here}/../build/tools/tacc_topo", f"{here}/../../bin/tacc_topo",
                 shutil.which("tacc_topo")):
        if path and os.access(path, os.X_OK):
            return path
    raise Error("a topology file is read by tacc_topo, which is not there; build it: ./dev build tools/tacc_topo")


def line_of(path, heading, which=1):
    """":12" for the heading of this number, such as [[level]], in a file that has such lines."""
    with open(path, errors="replace") as file:
        found = [number for number, line in enumerate(file, 1) if line.strip() == heading]
    return f":{found[which - 1]}" if which <= len(found) else ""


def kbit_of(link, rate):
    """Of bytes per second, or of None, which is no limit."""
    if rate and not LEAST_RATE <= rate <= MOST_RATE:
        raise Error(f"{link} carries {rate:g} B/s; a link of a virtual cluster carries 1 kB/s to 1 TB/s, or has no limit")
    return round(rate * 8e-3) if rate else 0


def read_topology(path):
    """The nodes of a file that tacc_topo reads: links as the hosts and groups have them. What its levels add to the latency
    is spread over the links on the way: half at each end."""
    read = subprocess.run([topology_program(), "--file", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if read.returncode:
        raise Error(read.stderr.strip().removeprefix("tacc_topo: "))
    topology = json.loads(read.stdout)
    names = [host["name"] for host in topology["hosts"]]
    if not 1 <= len(names) <= MOST_HOSTS:
        raise Error(f"{path}: {len(names)} hosts; a virtual cluster has 1 to {MOST_HOSTS}")
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,62}", name):
            raise Error(f'{path}: "{name}" cannot be the name of a host here: letters, digits, ".", "_" and "-"')
        if re.fullmatch(r"core|leaf\d+|switch\d+\.\d+", name):
            raise Error(f'{path}: the host "{name}" has the name of a switch of virtual clusters; call it otherwise')
    at = f"{path}{line_of(path, '[node]')}"
    nodes = {host["name"]: Node(host["name"], kbit_of(f"{at}: the link of host {host['name']}", host["uplink"]), 0, None)
             for host in topology["hosts"]}
    latency, top = 0, list(names)  # the names of what is not plugged in yet; a host stands for the switch it is in
    for number, level in enumerate(topology["levels"], 1):
        at = f"{path}{line_of(path, '[[level]]', number)}: level {number} ({level['name']})"
        if level["wiring"] != "tree":
            raise Error(f"{at} is wired as {level['wiring']}; a virtual cluster has switches only, one above the other")
        reached = max(level["latency"] or 0, latency)
        if reached > MOST_LATENCY:
            raise Error(f"{at} has a latency of {reached:g} s; in a virtual cluster it is {MOST_LATENCY} s at most")
        for name in top:
            nodes[name] = nodes[name]._replace(delay=round((reached - latency) / 2 * 1e9))
        latency = reached
        if number == len(topology["levels"]):
            break
        heads = []
        for place, group in enumerate(level["groups"], 1):
            inside = [nodes[name] for name in top if name in set(group["hosts"])]
            if not group["uplink"]:
                raise Error(f"{at}: nobody says what leaves the group of {group['hosts'][0]}; give it an uplink")
            switch = f"leaf{place}" if number == 1 else f"switch{number}.{place}"
            rate = kbit_of(f"{at}: the uplink of the group of {group['hosts'][0]}", group["uplink"])
            nodes[group["hosts"][0]] = Node(switch, rate, 0, inside)
            heads.append(group["hosts"][0])
        top = heads
    return [nodes[name] for name in top]


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


def can_hold():
    """Whether the kernel can hold frames on their way (netem)."""
    probe = "ip link add name v0 type veth peer name v1 && tc qdisc add dev v0 root netem delay 1ms"
    return subprocess.run(["unshare", "--net", "sh", "-c", probe], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


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
        self.holds = False
        self.holders = {}
        for pid in processes():
            title = read_title(pid)
            if title and title.name == name:
                self.holders[title.role] = pid
                self.shape = self.shape or Shape.parse(title.shape)

    @property
    def is_up(self):
        # The core is made after all other holders, so what was left half-built has none.
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
        shown = self._ip(self.switch_of(host), ["-o", "link", "show", f"h{host}"])
        return "state DOWN" not in shown

    def plug(self, host, state):
        """Sets the switch's end of the host's cable "up" or "down"."""
        self._ip(self.switch_of(host), ["link", "set", f"h{host}", state])

    def switch_of(self, host):
        """The switch that host 1, 2, ... is plugged into."""
        return self.shape.parents[self.shape.hosts[host - 1].name]

    def limit(self, link, mbit):
        """Changes the rate of a link that has one: "3" is host 3's, "leaf1" a switch's uplink. What is on its way stays."""
        host = int(link) if link.isdigit() and 1 <= int(link) <= self.shape.count else None
        node = self.shape.hosts[host - 1] if host else self.shape.switches.get(link)
        if node is None:
            raise Error(f'there is no link "{link}": links are hosts, 1 to {self.shape.count}, and uplinks, '
                        f"{' '.join(self.shape.switches)}")
        if node.kbit == 0 or mbit < 1:
            raise Error(f"link {link} goes at {node.kbit / 1000:g} Mbit/s (0: no limit); a limited link can be set to 1 Mbit/s "
                        "or more")
        for role, device in self._ends(node, host):
            self._shape(role, device, node._replace(kbit=mbit * 1000), "change")

    def _ends(self, node, host):
        """Both ends of the link that leads on from a node: where, and which device."""
        parent = self.shape.parents[node.name]
        if host:
            return [(f"host{host}", "eth0"), (parent, f"h{host}")]
        return [(node.name, "uplink"), (parent, f"s{list(self.shape.switches).index(node.name) + 1}")]

    def _ip(self, role, words, text=""):
        command = ["nsenter", "--target", str(self.holders[role]), "--net", "ip", *words]
        return subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout

    def build(self, shape):
        """Makes the cluster, the core last. Whoever calls this destroys what a failure leaves behind."""
        self.shape = shape
        self.holds = any(node.delay for node in [*shape.hosts, *shape.switches.values()]) and can_hold()
        hosts = list(enumerate(shape.hosts, 1))
        names = "127.0.0.1 localhost\n" + "".join(f"{address(host)} {node.name}\n" for host, node in hosts)
        started = [self._hold(switch, ["--net"], SWITCH) for switch in shape.switches]
        started += [self._hold(f"host{host}", ["--net", "--uts", "--ipc", "--mount"], HOST, node.name, names)
                    for host, node in hosts]
        for holder in started:
            self._await(holder)
        for switch in shape.switches:
            self._ip(switch, BRIDGE)
        self._await(self._hold("core", ["--net"], SWITCH))
        self._ip("core", BRIDGE)
        for host, node in hosts:
            self._link(node, host)
            self._ip(f"host{host}", ["-batch", "-"], f"link set lo up\naddr add {address(host)}/24 dev eth0\n")
        for node in shape.switches.values():
            self._link(node, None)

    def _hold(self, role, namespaces, script, *words):
        title = f"virtual-cluster {self.name} {role} {self.shape.title()}"
        holder = subprocess.Popen(["unshare", *namespaces, "bash", "-c", script, title, *words],
                                  cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        self.holders[role] = holder.pid
        return holder

    @staticmethod
    def _await(holder):
        if holder.stdout.readline() != b"ready\n":
            raise Error("a host or a switch could not be started")

    def _link(self, node, host):
        """A cable; both ends hold back what is above the rate."""
        (role, device), (switch, port) = ends = self._ends(node, host)
        subprocess.run(["ip", "link", "add", device, "netns", str(self.holders[role]), "type", "veth", "peer", "name", port,
                        "netns", str(self.holders[switch])], check=True)
        for end, name in ends:
            bridge = "" if name == "eth0" else f"link set {name} master br0\n"
            self._ip(end, ["-batch", "-"], f"{bridge}link set {name} addrgenmode none up\n")
            self._shape(end, name, node, "add")

    def _shape(self, role, device, node, verb):
        # Token buckets refill continuously; a millisecond's worth of burst lets fast links reach their rate. TCP hands down
        # up to 64 KiB at a time, which count with the headers of 45 frames: a smaller bucket takes them apart, and every
        # frame costs a timer.
        change = lambda *words: subprocess.run(["nsenter", "--target", str(self.holders[role]), "--net", "tc", "qdisc", verb,
                                                "dev", device, *words], check=True)
        if node.kbit:
            burst = max(72 << 10, node.kbit // 8)
            change("root", "handle", "1:", "tbf", "rate", f"{node.kbit}kbit", "burst", str(burst), "latency", "400ms")
        if node.delay and verb == "add" and self.holds:
            change(*(["parent", "1:1"] if node.kbit else ["root"]), "netem", "delay", f"{node.delay / 1000:g}us", "limit", "100000")

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
