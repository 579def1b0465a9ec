#!/usr/bin/env python3
"""slurm_test.py CLUSTER_TOOL TACC_BENCH TACC_TOPO [PRELOAD MPI_PROGRAM]: jobs that Slurm's own daemons start.

A virtual cluster of two hosts has slurmctld and a slurmd on each, with a munged and a configuration that are the test's alone.
Skipped (77) without Slurm, without a virtual cluster, or as another user than root.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

NAME = f"slurm{os.getpid()}"
HOSTS = ["tacc1", "tacc2"]
PROGRAMS = ["srun", "sinfo", "slurmctld", "slurmd", "munged", "mungekey"]
PATIENCE = 60  # seconds; all of these take one or two on an idle machine

CONFIGURATION = """
ClusterName=test
SlurmctldHost=tacc1(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=tacc1 NodeAddr=10.77.0.1 CPUs={cpus} State=UNKNOWN
NodeName=tacc2 NodeAddr=10.77.0.2 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE
"""
# The hosts have no cgroups. With those of version 1 slurmd starts all the same, and uses none for what is configured above.
CGROUPS = "CgroupPlugin=cgroup/v1\nCgroupMountpoint={folder}/cgroups\n"
SWITCHES = "SwitchName=left Nodes=tacc1\nSwitchName=right Nodes=tacc2\nSwitchName=top Switches=left,right\n"


def cluster(*command):
    return [cluster_tool, "--name", NAME, *command]


class Site:
    """The cluster with its daemons, while a `with` lasts."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.daemons = []

    def begin(self, *command):
        self.daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def __enter__(self):
        os.environ["SLURM_CONF"] = str(self.folder / "slurm.conf")
        for file, text in (("slurm.conf", CONFIGURATION), ("cgroup.conf", CGROUPS), ("topology.conf", SWITCHES)):
            (self.folder / file).write_text(text.format(folder=self.folder, cpus=os.cpu_count()))
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        subprocess.run(["mungekey", "--create", f"--keyfile={key}"], check=True)
        self.begin("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", f"--key-file={key}",
                   f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                   f"--seed-file={self.folder}/munged.seed")
        subprocess.run(cluster("up", "1", "2", "1000", "1000"), check=True, stdout=subprocess.DEVNULL)
        self.begin(*cluster("exec", HOSTS[0], "slurmctld", "-D"))
        for host in HOSTS:
            self.begin(*cluster("exec", host, "slurmd", "-D", "-N", host))
        end = time.monotonic() + PATIENCE
        while "idle" not in (state := self.output("sinfo", "--noheader", "--format=%T %D")) or "2" not in state:
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm does not begin: {state}\n{self.logs()}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_):
        subprocess.run(cluster("down"), check=False, stdout=subprocess.DEVNULL)
        for daemon in self.daemons:
            daemon.terminate()
            daemon.wait()

    def logs(self):
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in sorted(self.folder.glob("*.log")))

    def start(self, *command):
        """On the first host, as a user logged in there would."""
        return subprocess.Popen(cluster("exec", HOSTS[0], *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, process):
        output = process.communicate(timeout=PATIENCE)[0]
        return output if process.returncode == 0 else f"{output}\nends with {process.returncode}"

    def output(self, *command):
        return self.finish(self.start(*command))

    def srun(self, ranks, *command, mpi="none", distribution="block"):
        return self.start("srun", f"--mpi={mpi}", "--overcommit", "--nodes=2", f"--ntasks={ranks}",
                          f"--distribution={distribution}", *command)


class Slurm(unittest.TestCase):
    def check_bench(self, process, ranks):
        output = site.finish(process)
        for said in ("one job of all ranks that Slurm started, on 2 hosts", "Out of bounds values : 0 OK",
                     f"summary: {ranks} ranks, allreduce"):
            self.assertIn(said, output, site.logs())

    def bench(self, ranks, **options):
        return site.srun(ranks, tacc_bench, "allreduce", "--size", "64K", "-w", "1", "-n", "2", "--repetitions", "1", **options)

    def test_a_job_needs_nothing_else(self):
        for mpi in ("none", "pmi2"):
            for distribution in ("block", "cyclic"):
                with self.subTest(mpi=mpi, distribution=distribution):
                    self.check_bench(self.bench(4, mpi=mpi, distribution=distribution), 4)

    def test_steps_at_the_same_time_are_jobs_apart(self):
        steps = {ranks: self.bench(ranks) for ranks in (2, 3, 4)}
        for ranks, step in steps.items():
            self.check_bench(step, ranks)

    def test_the_site_says_how_hosts_are_grouped(self):
        output = site.finish(site.srun(2, tacc_topo))
        self.assertRegex(output, r"(?s)top\n.*leaf switch left: 1 host tacc1\n.*leaf switch right: 1 host tacc2", site.logs())

    def test_an_mpi_program_under_preload(self):
        if not preload:
            self.skipTest("MPICH is not installed")
        output = site.finish(site.srun(4, "env", f"LD_PRELOAD={preload}", "TACC_MPI=report", mpi_program, "counted", mpi="pmi2"))
        self.assertIn("all right", output, site.logs())
        self.assertTrue(re.search(r"MPI_Allreduce +7 +56000 +4 ", output), output)


if __name__ == "__main__":
    cluster_tool, tacc_bench, tacc_topo, preload, mpi_program = (sys.argv[1:] + ["", ""])[:5]
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing or os.geteuid() != 0:
        print(f"skipped: {', '.join(missing)} not installed" if missing else "skipped: this user is not root")
        sys.exit(77)
    if subprocess.run([cluster_tool, "check"], check=False).returncode != 0:
        sys.exit(77)
    with tempfile.TemporaryDirectory() as temporary, Site(temporary) as site:
        unittest.main(argv=sys.argv[:1])
