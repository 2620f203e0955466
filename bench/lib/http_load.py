"""HTTP servers under the load of wrk: Magpie, Go, hyper and nginx, a thread for each proc."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from measuring import Failed, Run, Watch

TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A running server: a program that prints port=N, or nginx."""

    def __init__(self, program, procs, *arguments):
        self.folder = None
        if program == "nginx":
            self.start_nginx(procs)
            return
        self.process = subprocess.Popen([str(program), f"procs={procs}", *arguments],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("port="):
            self.process.kill()
            self.process.wait()
            raise Failed(f"{program} does not say its port")
        self.port = int(line.split("=")[1])

    def start_nginx(self, procs):
        self.folder = tempfile.mkdtemp()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config = Path(self.folder) / "nginx.conf"
        config.write_text(f"""
            worker_processes {procs}; daemon off;
            pid {self.folder}/pid; error_log {self.folder}/error;
            events {{ worker_connections 4096; }}
            http {{ access_log off; keepalive_requests 1000000000;
              client_body_temp_path {self.folder}/a; proxy_temp_path {self.folder}/b;
              fastcgi_temp_path {self.folder}/c;
              uwsgi_temp_path {self.folder}/d; scgi_temp_path {self.folder}/e;
              server {{ listen 127.0.0.1:{self.port} backlog=4096; default_type text/plain;
                location / {{ return 200 "hello, world\\n"; }} }} }}""")
        self.process = subprocess.Popen(["nginx", "-c", config, "-e", f"{self.folder}/error"])
        for _ in range(500):
            try:
                connect(self.port).close()
                return
            except OSError:
                time.sleep(0.01)
        self.__exit__()
        raise Failed("nginx does not answer")

    def processes(self):
        asked = ["pgrep", "-P", str(self.process.pid)]
        children = subprocess.run(asked, capture_output=True, text=True).stdout.split()
        return [self.process.pid, *map(int, children)]

    def used(self):
        """(user, system) seconds, (voluntary, involuntary) switches, of all its threads."""
        user = system = voluntary = involuntary = 0
        for pid in self.processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            user, system = user + int(fields[11]) / TICKS, system + int(fields[12]) / TICKS
            for status in Path(f"/proc/{pid}/task").glob("*/status"):
                text = status.read_text()
                voluntary += int(re.search(r"^voluntary_\w+:\s+(\d+)", text, re.M).group(1))
                involuntary += int(re.search(r"^nonvoluntary_\w+:\s+(\d+)", text, re.M).group(1))
        return user, system, voluntary, involuntary

    def memory_bytes(self, field="VmRSS"):
        """The sum over its processes. VmHWM is the most there ever was."""
        total = 0
        for pid in self.processes():
            status = Path(f"/proc/{pid}/status").read_text()
            total += int(re.search(rf"{field}:\s+(\d+)", status).group(1)) * 1024
        return total

    def count_syscalls(self, seconds):
        """System calls per second under the load that runs meanwhile; None without perf."""
        done = subprocess.run(
            ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter",
             "-p", ",".join(map(str, self.processes())), "--", "sleep", str(seconds)],
            capture_output=True, text=True)
        match = re.search(r"^(\d+),", done.stderr, re.MULTILINE)
        return int(match.group(1)) / seconds if match else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate() if self.folder else self.process.kill()
        self.process.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def in_milliseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60000}[unit]


def parse_wrk(text):
    """(requests, requests a second, p99 in milliseconds) of what wrk prints."""
    if "Non-2xx" in text or "Socket errors" in text:
        raise Failed("wrk reports errors:\n" + text)
    requests = int(re.search(r"(\d+) requests in", text).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    # not the 97.99% of its table
    p99 = in_milliseconds(re.search(r"^ +99% +(\S+)", text, re.MULTILINE).group(1))
    return requests, rate, p99


def start_wrk(server, seconds, connections):
    return subprocess.Popen(
        ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--latency",
         f"http://127.0.0.1:{server.port}/"], stdout=subprocess.PIPE, text=True)


def load(server, seconds, connections):
    process = start_wrk(server, seconds, connections)
    text, _ = process.communicate()
    if process.returncode != 0:
        raise Failed(f"wrk ended with {process.returncode}")
    return parse_wrk(text)


def measure(program, procs, connections, seconds):
    """One server, from its start: the first second is the cold figure."""
    with Server(program, procs) as server:
        children = os.times()
        watch = Watch()
        _, first, _ = load(server, 1, connections)
        before = server.used()
        requests, rate, p99 = load(server, seconds, connections)
        used = server.used()
        after = os.times()
        own = (after.children_user - children.children_user +
               after.children_system - children.children_system + used[0] + used[1])
        steal, others = watch.stop(own)
        user, system, voluntary, involuntary = (b - a for a, b in zip(before, used))
        return Run({"requests_per_second": rate, "p99_ms": p99, "first_per_second": first,
                    "operations": requests}, server.memory_bytes("VmHWM"), user, system,
                   voluntary, involuntary, steal, others)


def syscalls_per_request(program, procs, connections):
    with Server(program, procs) as server:
        process = start_wrk(server, 3, connections)
        time.sleep(1)
        each_second = server.count_syscalls(1)
        text, _ = process.communicate()
        rate = parse_wrk(text)[1]
        return each_second / rate if each_second is not None else None
