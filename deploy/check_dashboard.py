"""Clicks through the pages of a scheduler on the null target in Chromium (deploy/check_dashboard.sh).

usage: check_dashboard.py KILN AXE_JS FOLDER

Starts a farm with jobs of each state, one of them with 20,000 trials. Each page is opened in dark and light, at widths
of 1440 and 390; axe-core looks at it, and the browser's log must have no error. Then figures are measured. What is
found is printed, and pictures go into the folder.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

HOSTILE = '<img src=x onerror="document.title=1">'
MANY_TRIALS = 20_000
# Pages whose pictures are for docs/, by their names there.
PICTURES = {"jobs": "jobs", "job": "job", "job of many trials": "many-trials", "queue": "queue", "fleet": "fleet",
            "records": "records", "record": "record", "compare jobs": "compare"}
WIDTHS, SCHEMES = (1440, 390), ("light", "dark")
# Pictures are cut here: long tables look alike all the way down.
HIGHEST = 1800


class Farm:
    """A farm with keys, of the binary, in a folder of its own; it ends with the `with` statement."""

    def __init__(self, kiln, folder):
        self.kiln = kiln
        self.folder = folder
        self.variables = {}

    def run(self, *words, check=True):
        done = subprocess.run([self.kiln, *words], capture_output=True, text=True, timeout=600,
                              env={**os.environ, **self.variables})
        if check and done.returncode != 0:
            raise RuntimeError(f"kiln {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def __enter__(self):
        text = self.run("farm", "up", "--folder", self.folder, "--device", "null", "--workers", "2", "--tls")
        self.variables = dict(re.findall(r"(KILN_[A-Z_]+)=(\S+)", text))
        return self

    def __exit__(self, *_):
        self.run("farm", "down", "--folder", self.folder, check=False)

    def submit(self, *words):
        """Submits a job and returns its id."""
        lines = self.run("submit", *words, "--target", "null", "--json").splitlines()
        return next(json.loads(line)["job"] for line in lines if '"event":"start"' in line.replace(": ", ":"))

    def state(self, job):
        return json.loads(self.run("why", job, "--json"))["state"]

    def await_end(self, job, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.state(job)
            if state in ("SUCCEEDED", "FAILED", "CANCELLED"):
                return state
            time.sleep(1)
        raise RuntimeError(f"job {job} is {self.state(job)} after {seconds} s")

    def url(self):
        return self.run("dashboard", "--print")


class Browser:
    def __init__(self, profile, axe):
        options = webdriver.ChromeOptions()
        # Chromium's own sandbox takes namespaces, which a container may forbid.
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--user-data-dir={profile}"):
            options.add_argument(word)
        # The farm's authority is nobody that a browser knows.
        options.accept_insecure_certs = True
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        # A machine may be busy with other work.
        self.driver.set_script_timeout(180)
        self.axe = axe

    def look(self, width, scheme, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, url):
        self.driver.get(url)
        self.driver.refresh()
        self.settle()

    def settle(self):
        """Waits until the page shows something else than that it loads."""
        WebDriverWait(self.driver, 30).until(lambda driver: driver.execute_script(
            "return document.querySelector('main h1') && !document.querySelector('main .loading')"))
        time.sleep(0.4)

    def violations(self):
        # The page's own policy keeps foreign scripts out, so the debugger brings the checks in.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": self.axe})
        return self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then((found) => done(found.violations.map((one) => "
            "one.id + ': ' + one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(' | '))))"
            ".catch((error) => done(['axe: ' + error]))")

    def click(self, by, value):
        """Clicks on an element in the middle of the window."""
        element = self.driver.find_element(by, value)
        self.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", element)
        element.click()

    def errors(self):
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]

    def picture(self, path, width, scheme):
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        self.look(width, scheme, min(height, HIGHEST))
        time.sleep(0.3)
        self.driver.save_screenshot(path)
        self.look(width, scheme)

    def heap_bytes(self):
        self.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        figures = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(one["value"] for one in figures if one["name"] == "JSHeapUsedSize")

    def paints_ms(self):
        """The times from the start of the navigation to the first paint, and to that of the largest part."""
        return self.driver.execute_async_script(
            "const done = arguments[0];"
            " const first = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null;"
            " new PerformanceObserver((list) => done([first, list.getEntries().at(-1).startTime]))"
            ".observe({ type: 'largest-contentful-paint', buffered: true }); setTimeout(() => done([first, null]), 3000);")

    def frames_ms(self, selector, frames):
        """Moves a pointer over an element, one place a frame. Returns the milliseconds from frame to frame."""
        return self.driver.execute_async_script(
            "const [selector, frames, done] = arguments; const target = document.querySelector(selector);"
            " const box = target.getBoundingClientRect(); const all = []; let last = null;"
            " const step = (now) => { if (last !== null) all.push(now - last); last = now;"
            " if (all.length >= frames) { done(all); return; }"
            " target.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientY: box.top + 40,"
            " clientX: box.left + 80 + (box.width - 100) * (all.length / frames) })); requestAnimationFrame(step); };"
            " requestAnimationFrame(step);", selector, frames)

    def fetch(self, path):
        """Asks for a path as the pages do. Returns its JSON."""
        return self.driver.execute_async_script(
            "const done = arguments[1]; fetch(arguments[0]).then((a) => a.json()).then(done)"
            ".catch((e) => done(String(e)))",
            path)

    def times_ms(self, path, calls):
        return self.driver.execute_async_script(
            "const [path, calls, done] = arguments; (async () => { const all = []; for (let i = 0; i < calls; i++) {"
            " const from = performance.now(); await (await fetch(path)).text(); all.push(performance.now() - from); }"
            " done(all); })().catch((e) => done([]));", path, calls)


def jobs_of(farm):
    """Submits jobs of several states. Returns their ids by what they are."""
    conv = ["conv2d_nchw", "--args", "1,7,7,512,512,3,3,1,1", "--epilogue", "bias,relu"]
    quick = ["--policy", "sketch.random"]
    jobs = {"many": farm.submit("matmul", "--args", "512,512,512", "--trials", str(MANY_TRIALS), *quick,
                                "--name", "many trials")}
    jobs["network"] = farm.submit("network:resnet-18", "--trials", "600", *quick)
    jobs["small"] = farm.submit(*conv, "--trials", "64", "--seed", "1")
    jobs["hostile"] = farm.submit("matmul", "--args", "64,64,64", "--trials", "16", "--name", HOSTILE)
    jobs["cancelled"] = farm.submit("matmul", "--args", "128,128,128", "--trials", "100000", *quick)
    jobs["waiting"] = farm.submit("matmul", "--args", "256,256,256", "--trials", "100", "--priority", "-5")
    farm.run("cancel", jobs["cancelled"])
    farm.run("jobs", "pause", jobs["waiting"])
    return jobs


def jobs_that_wait(farm):
    """Pauses the runner, and submits jobs that wait for it."""
    workers = json.loads(farm.run("workers", "--json"))["workers"]
    runner = next(one["address"] for one in workers if one["kind"] == "RUNNER")
    farm.run("workers", "pause", runner, "--why", "a new fan is built in")
    for size in (96, 160):
        farm.submit("matmul", "--args", f"{size},{size},{size}", "--trials", "64", "--priority", str(size))


def pages_of(browser, jobs):
    tasks = browser.fetch(f"/api/jobs/{jobs['network']}")["tasks"]
    best = [task["best_record"] for task in tasks if task["best_record"]]
    return {"jobs": "jobs", "job": f"job/{jobs['network']}", "job of one task": f"job/{jobs['small']}",
            "job with a hostile name": f"job/{jobs['hostile']}", "job of many trials": f"job/{jobs['many']}",
            "paused job": f"job/{jobs['waiting']}", "queue": "queue", "fleet": "fleet", "records": "records",
            "record": f"record/{best[0]}", "records of one": f"records?workload={workload_of(browser, best[0])}",
            "compare": "compare", "compare jobs": f"compare?a={jobs['many']}&b={jobs['network']}",
            "compare records": f"compare?kind=records&a={best[0]}&b={best[1]}", "nothing": "job/none"}


def workload_of(browser, record):
    return browser.fetch(f"/api/records/{record}")["workload_id"]


def check_pages(browser, base, pages, folder):
    """Opens each page in each width and scheme. Returns what is wrong."""
    found = []
    for name, address in pages.items():
        for width in WIDTHS:
            for scheme in SCHEMES:
                browser.look(width, scheme)
                browser.open(f"{base}/#/{address}")
                where = f"{name}, {width} wide, {scheme}"
                expected = "404" if name == "nothing" else None
                found += [f"{where}: {line}" for line in browser.errors() if expected is None or expected not in line]
                found += [f"{where}: {line}" for line in browser.violations()]
                wide = browser.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    found.append(f"{where}: the page is {wide} points wider than the window")
                picture = f"doc-{PICTURES[name]}" if name in PICTURES else name.replace(" ", "-")
                browser.picture(f"{folder}/{picture}-{width}-{scheme}.png", width, scheme)
        print(f"looked at {name}", flush=True)
    return found


def check_ways(browser, base, jobs):
    """Uses the pages as a person does: by the keyboard, the links, the switch of the scheme."""
    found = []
    driver = browser.driver
    browser.look(1440, "light")
    browser.open(f"{base}/#/jobs")
    if driver.title == "1" or not driver.find_elements(By.XPATH, f"//a[contains(text(), '{HOSTILE[:8]}')]"):
        found.append("the name of the hostile job is not shown as it is")
    browser.click(By.ID, "theme")
    if driver.execute_script("return document.documentElement.dataset.theme") != "dark":
        found.append("the switch does not change the scheme")
    driver.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("resnet")
    rows = driver.find_elements(By.CSS_SELECTOR, "tbody tr")
    if len(rows) != 1:
        found.append(f"the search finds {len(rows)} jobs instead of one")
    browser.click(By.CSS_SELECTOR, f"a[href='#/job/{jobs['network']}']")
    browser.settle()
    for text in ("Oldest", "Best", "Over time"):
        browser.click(By.XPATH, f"//button[text()='{text}']")
        time.sleep(0.5)
    browser.click(By.CSS_SELECTOR, "table a[href^='#/record/']")
    browser.settle()
    for text in ("Schedule", "Program", "Computation", "Loops"):
        browser.click(By.XPATH, f"//button[text()='{text}']")
        time.sleep(0.5)
        if not driver.find_elements(By.CSS_SELECTOR, "pre"):
            found.append(f"a record has no text for {text}")
    driver.execute_script("localStorage.clear()")
    return found + [f"by use: {line}" for line in browser.errors()]


def check_strangers(browser, url):
    """The address lets nobody in twice, and without a session there is nothing."""
    found = []
    browser.driver.get(url)
    if "Kiln" in browser.driver.title and browser.driver.find_elements(By.ID, "main"):
        found.append("an address that was used lets a second browser in")
    browser.driver.delete_all_cookies()
    base = url.split("/login")[0]
    for path in ("/", "/api/jobs", "/web/app.js"):
        status = browser.driver.execute_async_script(
            "const done = arguments[1]; fetch(arguments[0]).then((a) => done(a.status)).catch((e) => done(String(e)))",
            base + path)
        if status != 401:
            found.append(f"{path} answers {status} to a stranger, expected 401")
    browser.errors()
    return found


def measure_curve(browser, job):
    """Prints how much of a job of many trials its page draws, and how smoothly. The page is open."""
    curve = browser.fetch(f"/api/jobs/{job}/curve")
    points = sum(len(task["best"]) for task in curve["tasks"])
    spans = sum(len(task["buckets"]) for task in curve["tasks"])
    size = browser.driver.execute_script("return document.querySelectorAll('*').length")
    frames = sorted(browser.frames_ms(".card svg, .body .chart svg", 240))
    print(f"curves of {curve['read']:,} trials: {len(curve['rounds'])} points of the total, {points} of the best so "
          f"far, {spans} spans, {len(json.dumps(curve)) / 1024:.0f} KiB; {size} elements on the page; frames under a "
          f"moving pointer p50 {statistics.median(frames):.1f} ms, p99 {frames[int(len(frames) * 0.99)]:.1f} ms")


def measure(browser, base, jobs):
    browser.driver.execute_cdp_cmd("Performance.enable", {})
    browser.look(1440, "light")
    for name, address in (("jobs", "jobs"), (f"job of {MANY_TRIALS} trials", f"job/{jobs['many']}")):
        firsts, largest = [], []
        for _ in range(9):
            browser.open(f"{base}/#/{address}")
            first, last = browser.paints_ms()
            firsts.append(first or float("nan"))
            largest.append(last or float("nan"))
        print(f"{name}: first contentful paint {statistics.median(firsts):.0f} ms, largest "
              f"{statistics.median(largest):.0f} ms, JavaScript heap {browser.heap_bytes() / 2**20:.1f} MiB")
    measure_curve(browser, jobs["many"])
    record = browser.fetch("/api/records")["rows"][0]
    paths = ["/api/jobs", f"/api/jobs/{jobs['many']}", f"/api/jobs/{jobs['many']}/curve",
             f"/api/jobs/{jobs['many']}/trials?page=200&order=newest", f"/api/jobs/{jobs['many']}/trials?order=best",
             "/api/queue", "/api/fleet", "/api/records", f"/api/records?workload={record['workload_id']}",
             f"/api/records/{record['record']}", f"/api/records/{record['record']}/text/loops"]
    for path in paths:
        times = sorted(browser.times_ms(path, 200))
        print(f"{path[:60]:60} p50 {times[len(times) // 2]:6.1f} ms  p99 {times[int(len(times) * 0.99)]:6.1f} ms")


def main():
    kiln, axe_path, folder = sys.argv[1:]
    with open(axe_path, encoding="utf-8") as file:
        axe = file.read()
    with Farm(kiln, f"{os.environ['HOME']}/farm") as farm:
        jobs = jobs_of(farm)
        for job in ("network", "small", "hostile"):
            print(f"job {job}: {farm.await_end(jobs[job], 300)}", flush=True)
        browser = Browser(f"{os.environ['HOME']}/chromium", axe)
        try:
            url = farm.url()
            base = url.split("/login")[0]
            browser.driver.get(url)
            browser.errors()
            print(f"job many: {farm.await_end(jobs['many'], 1200)}", flush=True)
            jobs_that_wait(farm)
            found = check_pages(browser, base, pages_of(browser, jobs), folder)
            found += check_ways(browser, base, jobs)
            measure(browser, base, jobs)
            found += check_strangers(browser, url)
        finally:
            browser.driver.quit()
    for line in found:
        print(f"WRONG: {line}")
    print(f"{len(found)} things are wrong" if found else "all pages are well")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
