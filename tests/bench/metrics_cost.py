#!/usr/bin/env python3
"""What metrics and traces cost a farm.

usage: metrics_cost.py KILN [--pairs 10] [--trials 3000] [--every 5]

Two farms run on loopback, each with a builder of two places and a runner of the device null. In one of them each
daemon serves pages, which are scraped every so many seconds as Prometheus does, and the scheduler sends the spans
of all trials to a collector, a process that reads and drops them. The other one has neither. In turns, and in
the other order each time, each of them gets a job of --trials random candidates, whose size no other turn has.

Prints what both do in a second, and in a second of CPU time of all processes of a farm (neither the scraper's
nor the collector's), the ratio (geometric mean over the pairs), its 95% interval, and the goal. The exit status is
1 where an interval lies below its goal entirely, or if nothing was scraped or collected.
"""
import argparse
import http.server
import multiprocessing
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
import time
import urllib.request

from short_budgets import interval
from tls_cost import CPU, TRIALS, Side

GOAL = 0.98


def collect(port, requests):
    """A collector of OTLP over HTTP that drops what it gets."""

    class Collector(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.value += 1
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    port.value = server.server_address[1]
    server.serve_forever()


class SeenSide(Side):
    """A farm with pages and spans, or without."""

    def __init__(self, kiln, folder, secret, collector):
        super().__init__(kiln, folder, ["--secret-file", str(secret)], ["--secret-file", str(secret)])
        self.secret, self.collector, self.scrapes, self.bytes = secret.read_text().strip(), collector, 0, 0

    def start(self):
        pages = [] if self.collector else ["--http-port", "off"]
        tracker = self.farm.start("tracker", *self.daemon, *pages)
        common = ["--tracker", tracker, *self.daemon, *pages]
        spans = ["--otlp", f"127.0.0.1:{self.collector}"] if self.collector else []
        self.scheduler = self.farm.start("scheduler", "--db", str(self.farm.folder / "kiln.db"), *common, *spans)
        self.farm.start("builder", "--jobs", "2", *common)
        self.farm.start("runner", "--device", "null", *common)

    def scrape_every(self, seconds):
        """Scrapes all daemons for good, in a thread of its own."""
        addresses = [re.search(r"http://\S+/metrics", (self.farm.folder / f"{name}.log").read_text()).group()
                     for name in self.farm.processes]

        def scrape():
            while True:
                for address in addresses:
                    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.secret}"})
                    with urllib.request.urlopen(request, timeout=10) as page:
                        self.bytes += len(page.read())
                    self.scrapes += 1
                time.sleep(seconds)

        threading.Thread(target=scrape, daemon=True).start()


def measure(flags, both):
    pairs = {TRIALS: [], CPU: []}
    for number in range(-1, flags.pairs):
        order = ["seen", "unseen"] if number % 2 == 0 else ["unseen", "seen"]
        done = {way: both[way].trials(flags.trials if number >= 0 else 50, 64 + 8 * number) for way in order}
        # The first turn fills caches.
        for name in pairs if number >= 0 else ():
            pairs[name].append((done["seen"][name], done["unseen"][name]))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kiln")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--trials", type=int, default=3000)
    parser.add_argument("--every", type=float, default=5, help="seconds between two scrapes of a daemon")
    flags = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("KILN_")]:
        del os.environ[name]
    port, requests = multiprocessing.Value("i", 0), multiprocessing.Value("i", 0)
    collector = multiprocessing.Process(target=collect, args=(port, requests), daemon=True)
    collector.start()
    while port.value == 0:
        time.sleep(0.01)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        secret = folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(os.urandom(32).hex() + "\n")
        both = {}
        for way, at in (("seen", port.value), ("unseen", 0)):
            (folder / way).mkdir()
            both[way] = SeenSide(flags.kiln, folder / way, secret, at)
        try:
            for side in both.values():
                side.start()
            both["seen"].scrape_every(flags.every)
            pairs = measure(flags, both)
        finally:
            for side in both.values():
                side.stop()
            collector.terminate()
    scrapes, size = both["seen"].scrapes, both["seen"].bytes
    print(f"{scrapes} scrapes of {size / max(1, scrapes) / 1024:.1f} KiB on average, {requests.value} requests to the collector")
    ok = scrapes > 0 and requests.value > 0
    print("| figure | without | with metrics and traces | ratio | 95% interval | goal |\n|---|---|---|---|---|---|")
    for name, found in pairs.items():
        ratio, low, high = interval(found)
        seen, unseen = (statistics.fmean(pair[i] for pair in found) for i in (0, 1))
        print(f"| {name} | {unseen:.1f} | {seen:.1f} | {ratio:.3f} | {low:.3f} to {high:.3f} | {GOAL} |")
        ok &= high >= GOAL
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
