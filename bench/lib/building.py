"""Builds our programs and those of the peers, each into build/."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ROOT / "build/release/bench"
GO = ROOT / "build/bench-go"
RUST = ROOT / "build/bench-rust"
AGAINST = ROOT / "build/against"
REGISTRY = Path("/usr/share/cargo/registry")  # Debian's


def say(text):
    print(text, file=sys.stderr, flush=True)


def call(command, **more):
    """Runs quietly; shows what the command printed if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        say((done.stdout + done.stderr)[-4000:])
    return done.returncode == 0


def jobs():
    return ["-j", str(os.cpu_count())]


def build_ours():
    say("building the release preset ...")
    good = (call(["cmake", "--preset", "release", "-DMAGPIE_BUILD_BENCH=ON"], cwd=ROOT) and
            call(["cmake", "--build", "build/release", *jobs(), "--target", "magpie_bench"],
                 cwd=ROOT))
    if not good:
        sys.exit("bench: the release preset does not build")


def build_go():
    """True if all programs are there."""
    if not shutil.which("go"):
        say("no Go here (Debian: golang-go): left out")
        return False
    say("building the programs on Go ...")
    environment = dict(os.environ, GOCACHE=str(GO / "cache"), GOFLAGS="-mod=mod",
                       GOTOOLCHAIN="local")
    sources = sorted((ROOT / "bench/workloads").glob("*/go")) + [ROOT / "bench/http/go"]
    good = True
    for source in sources:
        good &= call(["go", "build", "-o", GO / source.parent.name,
                      f"./{source.relative_to(ROOT / 'bench')}"],
                     cwd=ROOT / "bench", env=environment)
    return good


def build_rust():
    if not shutil.which("cargo"):
        say("no cargo here (Debian: cargo): Tokio and hyper are left out")
        return False
    for crate in ("tokio", "hyper"):
        if not any(REGISTRY.glob(f"{crate}-[0-9]*")):
            say(f"no {crate} in {REGISTRY} (Debian: librust-{crate}-dev): "
                "Tokio and hyper are left out")
            return False
    say("building the programs on Tokio and hyper ...")
    # A copy: cargo writes Cargo.lock beside the manifest, and the versions are this machine's.
    package = RUST / "package"
    shutil.rmtree(package, ignore_errors=True)
    for source in [ROOT / "bench/Cargo.toml", *(ROOT / "bench").rglob("*.rs")]:
        target = package / source.relative_to(ROOT / "bench")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    return call(["cargo", "build", "--release", "--offline",
                 "--config", 'source.crates-io.replace-with="debian"',
                 "--config", f'source.debian.directory="{REGISTRY}"'],
                cwd=package, env=dict(os.environ, CARGO_TARGET_DIR=str(RUST)))


def build_against(commit):
    """The library of a commit under the programs of now, in a worktree of its own. A program that
    needs what that commit does not have is left out."""
    say(f"building the library of {commit} ...")
    if AGAINST.exists():
        subprocess.run(["git", "worktree", "remove", "--force", AGAINST], cwd=ROOT,
                       capture_output=True)
        shutil.rmtree(AGAINST, ignore_errors=True)
    subprocess.run(["git", "worktree", "prune"], cwd=ROOT, capture_output=True)
    if not call(["git", "worktree", "add", "--detach", AGAINST, commit], cwd=ROOT):
        sys.exit(f"bench: no commit {commit}")
    shutil.rmtree(AGAINST / "bench", ignore_errors=True)
    shutil.copytree(ROOT / "bench", AGAINST / "bench")
    options = ["-DMAGPIE_BUILD_BENCH=ON", "-DMAGPIE_BUILD_TESTS=OFF",
               "-DMAGPIE_BUILD_EXAMPLES=OFF", "-DMAGPIE_BUILD_COMMAND=OFF"]
    if not call(["cmake", "--preset", "release", *options], cwd=AGAINST):
        sys.exit(f"bench: {commit} does not configure")
    if not call(["cmake", "--build", "build/release", *jobs(), "--target", "magpie_bench",
                 "--", "-k", "0"], cwd=AGAINST):
        say("not all programs build with that commit; those that do are measured")


def program(peer, workload):
    """Where the peer's program of the workload is; "nginx" for nginx. None: there is none."""
    if workload.http_connections:
        found = {"magpie": OURS / "bench_http", "go": GO / "http",
                 "before": AGAINST / "build/release/bench/bench_http",
                 "hyper": RUST / "release/hyper_http",
                 "nginx": "nginx" if shutil.which("nginx") else None}.get(peer)
    else:
        folder = workload.folder_of(peer)
        found = {"magpie": OURS / f"bench_{folder}", "go": GO / folder,
                 "before": AGAINST / f"build/release/bench/bench_{folder}",
                 "tokio": RUST / f"release/tokio_{folder}",
                 "fiber": OURS / f"bench_{folder}_fiber",
                 "tbb": OURS / f"bench_{folder}_tbb"}.get(peer)
    return found if found == "nginx" or (found and Path(found).exists()) else None


def versions():
    """{what: its version}, of what is here."""
    asked = {"gcc": ["g++", "-dumpfullversion"], "go": ["go", "version"],
             "rustc": ["rustc", "--version"], "nginx": ["nginx", "-v"]}
    found = {}
    for name, command in asked.items():
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True)
            match = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
            if match:
                found[name] = match.group()
    for crate in ("tokio", "hyper"):
        for folder in sorted(REGISTRY.glob(f"{crate}-[0-9]*")):
            found[crate] = folder.name.split("-", 1)[1]
    headers = {"Boost": ("/usr/include/boost/version.hpp", "BOOST_LIB_VERSION"),
               "oneTBB": ("/usr/include/oneapi/tbb/version.h", "TBB_VERSION_STRING")}
    for name, (header, macro) in headers.items():
        if Path(header).exists():
            done = subprocess.run(["g++", "-E", "-P", "-x", "c++", "-"], capture_output=True,
                                  text=True, input=f'#include "{header}"\n{macro}\n')
            if done.returncode == 0 and done.stdout.strip():
                words = done.stdout.strip().splitlines()[-1]
                found[name] = words.replace('"', "").replace(" ", "").replace("_", ".")
    return found
