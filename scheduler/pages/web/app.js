// The frame of the pages: which page an address stands for, the scheme of colours, and the state of the connection.
import { h, replace, empty, setPlace } from "/web/dom.js";
import { ask, Refused } from "/web/api.js";
import { jobsPage } from "/web/jobs.js";
import { jobPage } from "/web/job.js";
import { queuePage } from "/web/queue.js";
import { fleetPage } from "/web/fleet.js";
import { recordsPage } from "/web/records.js";
import { recordPage } from "/web/record.js";
import { comparePage } from "/web/compare.js";

const PAGES = [
  { name: "jobs", title: "Jobs", open: jobsPage },
  { name: "queue", title: "Queue", open: queuePage },
  { name: "fleet", title: "Fleet", open: fleetPage },
  { name: "records", title: "Records", open: recordsPage },
  { name: "compare", title: "Compare", open: comparePage },
  { name: "job", title: "Job", open: jobPage, under: "jobs" },
  { name: "record", title: "Record", open: recordPage, under: "records" },
];

const main = document.getElementById("main");
const live = document.getElementById("live");
let leave = () => {};
let visit = 0;

// What a page gets: its element, the rest of the address, and ways to say what goes on.
function contextOf(parts, values, mine) {
  const cleanups = [];
  return {
    parts, values, main,
    shown: () => mine === visit,
    show: (...children) => { if (mine === visit) replace(main, ...children); },
    title: (text) => { if (mine === visit) document.title = `${text} – Kiln`; },
    live: (on) => { if (mine === visit) setLive(on); },
    fail: (error) => { if (mine === visit) showError(error); },
    onLeave: (cleanup) => { if (mine === visit) cleanups.push(cleanup); else cleanup(); },
    // Calls `work` now and every `seconds` while the page is looked at. An error stays on the page until a call works.
    repeat: (seconds, work) => repeat(seconds, work, mine, cleanups),
    go: (address) => { location.hash = address; },
    leaveAll: () => cleanups.splice(0).forEach((cleanup) => cleanup()),
  };
}

function repeat(seconds, work, mine, cleanups) {
  let timer = null, first = true, stopped = false;
  const run = async () => {
    if (mine !== visit) return;
    if (document.visibilityState === "visible" || first) {
      try {
        await work();
        first = false;
        if (mine === visit) setLive(true);
      } catch (error) {
        if (mine !== visit) return;
        setLive(false);
        if (first || error.status === 401 || error.status === 403) showError(error);
      }
    }
    if (!stopped) timer = setTimeout(run, seconds * 1000);
  };
  run();
  cleanups.push(() => { stopped = true; clearTimeout(timer); });
}

function setLive(on) {
  live.dataset.on = on ? "yes" : "no";
  live.textContent = on ? "Live" : "Not connected";
}

function showError(error) {
  if (!(error instanceof Refused)) console.error(error);
  if (error.status === 401 || error.status === 403) {
    replace(main, h("h1", {}, "This browser is not let in"),
      empty("The session has ended, or there was none", `${error.message} This command opens a new session:`, "kiln dashboard"));
  } else if (error.status === 404) {
    replace(main, h("h1", {}, "Not found"), empty("There is no such thing", error.message));
  } else {
    replace(main, h("h1", {}, "No answer"), h("p", { class: "notice bad", role: "alert" }, error.message),
      h("button", { type: "button", class: "ghost", onclick: open }, "Try again"));
  }
}

async function open() {
  leave();
  const mine = ++visit;
  const [address, search] = (location.hash.slice(2) || "jobs").split("?");
  const parts = address.split("/").map(decodeURIComponent);
  const page = PAGES.find((one) => one.name === parts[0]) || PAGES[0];
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.page === (page.under || page.name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const context = contextOf(parts.slice(1), new URLSearchParams(search || ""), mine);
  leave = context.leaveAll;
  document.title = `${page.title} – Kiln`;
  replace(main, h("h1", { class: "visually-hidden" }, page.title), h("p", { class: "loading", role: "status" }, "Loading"));
  window.scrollTo(0, 0);
  try {
    await page.open(context);
  } catch (error) {
    context.fail(error);
  }
}

// ---- the scheme of colours: the system's, or one that was chosen

const dark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");

function chosen() {
  try { return localStorage.getItem("kiln-theme"); } catch { return null; }
}

function paint() {
  const theme = chosen() || (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  const other = theme === "dark" ? "light" : "dark";
  button.textContent = other === "dark" ? "Dark" : "Light";
  button.setAttribute("aria-label", `Change to the ${other} colours`);
  button.onclick = () => {
    try { localStorage.setItem("kiln-theme", other); } catch { /* the choice lasts as long as the page */ }
    paint();
  };
}

replace(document.getElementById("nav"), PAGES.filter((page) => !page.under)
  .map((page) => h("a", { href: `#/${page.name}`, "data-page": page.name }, page.title)));
dark.addEventListener("change", paint);
window.addEventListener("hashchange", open);
paint();
ask("/api/about").then((about) => setPlace(about.scheduler_port)).catch(() => {}).finally(open);
