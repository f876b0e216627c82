"""A Slurm of one node on this machine: munged, slurmctld and slurmd, in a folder of their own, as this user."""
import os
import pathlib
import secrets
import socket
import subprocess
import time

CONF = """ClusterName=check
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
GresTypes=device
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 Gres=device:6 State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """Its daemons end with `stop`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._daemons: list[subprocess.Popen] = []
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
        host = socket.gethostname().split(".")[0]
        (folder / "slurm.conf").write_text(CONF.format(host=host, user=user, folder=folder))
        (folder / "gres.conf").write_text("Name=device Count=6\n")
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        os.environ["SLURM_CONF"] = str(folder / "slurm.conf")

    def start(self) -> None:
        """Returns when the node is idle."""
        of = self.folder
        self._start("munged", "--foreground", "--force", f"--key-file={of}/munge.key", f"--socket={of}/munge.socket",
                    f"--pid-file={of}/munge.pid", f"--log-file={of}/munge.log", f"--seed-file={of}/munge.seed")
        self._wait("munged answers", lambda: (of / "munge.socket").exists())
        self._start("slurmctld", "-D")
        self._start("slurmd", "-D", "-N", "node1")
        self._wait("the node is idle", lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def ask(self, *command: str) -> str:
        """Returns what a program of Slurm prints; "" when it fails."""
        return subprocess.run(command, capture_output=True, text=True).stdout

    def jobs(self, name: str) -> dict[int, str]:
        """Returns the states of the jobs of this name."""
        lines = self.ask("squeue", "--noheader", f"--name={name}", "--format=%A %T").splitlines()
        return {int(line.split()[0]): line.split()[1] for line in lines}

    def _start(self, *command: str) -> None:
        log = (self.folder / f"{command[0]}.out").open("w")
        self._daemons.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _wait(self, what: str, done) -> None:
        for _ in range(600):
            if done():
                return
            for daemon in self._daemons:
                if daemon.poll() is not None:
                    self._fail(f"{daemon.args[0]} has ended with {daemon.returncode}, and {what} was waited for")
            time.sleep(0.2)
        self._fail(f"{what}: not within two minutes")

    def _fail(self, message: str) -> None:
        for log in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
        raise SystemExit(f"check_slurm: {message}")
