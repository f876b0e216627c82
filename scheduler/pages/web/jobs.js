// The list of jobs, the newest first.
import { ask, query } from "/web/api.js";
import { h, table, panel, figures, empty, replace } from "/web/dom.js";
import { count } from "/web/units.js";
import { elapsed, jobCell, nameOf, progressCell, sparkCell, stateCell, time, totalCell } from "/web/rows.js";

const COLUMNS = [
  { title: "State", cls: "wide", cell: stateCell },
  { title: "Job", cell: jobCell },
  { title: "Total latency", cls: "n", hint: "The job's objective: by default the sum of the best latency of each task times its uses", cell: totalCell },
  { title: "Curve", cls: "wide", hint: "Total latency over the trials, on a logarithmic axis", cell: sparkCell },
  { title: "Trials", cls: "wide", cell: progressCell },
  { title: "Failed", cls: "n wide", hint: "Trials that did not build, crashed, timed out or answered wrongly", cell: (job) => count(job.errors) },
  { title: "User", cls: "wide", cell: (job) => job.user || h("span", { class: "muted" }, "no user") },
  { title: "Device", cls: "wide", cell: (job) => job.device || h("span", { class: "muted" }, "–") },
  { title: "Ran", cls: "n wide", hint: "Time since the job began, or that it took", cell: elapsed },
  { title: "Submitted", cls: "n wide", cell: (job) => time(job.created_s) },
];

export async function jobsPage(page) {
  let limit = 50;
  let needle = page.values.get("find") || "";
  let state = page.values.get("state") || "";
  let answer = null;
  const find = h("input", { class: "field", type: "search", placeholder: "Name, id, user, device", "aria-label": "Find jobs", value: needle,
    oninput: (event) => { needle = event.target.value; draw(); } });
  const states = h("select", { class: "field", "aria-label": "State", onchange: (event) => { state = event.target.value; draw(); } },
    ["", "running", "queued", "paused", "succeeded", "failed", "cancelled"].map((one) => h("option", { value: one, selected: one === state }, one || "all states")));
  const list = h("div");
  const sums = h("div");

  const matches = (job) => (state === "" || job.state === state) &&
    (needle === "" || [job.id, job.user, job.device, nameOf(job), job.target].join(" ").toLowerCase().includes(needle.toLowerCase()));

  function draw() {
    const jobs = answer.jobs.filter(matches);
    const by = (word) => count(answer.jobs.filter((job) => job.state === word).length);
    replace(sums, figures([["Running", by("running")], ["Queued", by("queued")], ["Paused", by("paused")],
      ["Succeeded", by("succeeded"), "of those listed"], ["Failed", by("failed"), "of those listed"]]));
    if (answer.jobs.length === 0) replace(list, empty("No job yet", "A job appears here as soon as it is submitted:", "kiln submit conv2d_nchw --args 1,7,7,512,512,3,3,1,1"));
    else if (jobs.length === 0) replace(list, empty("No job matches", "Another word or another state may find it."));
    else replace(list, table("Jobs, the newest first", COLUMNS, jobs));
    more.hidden = !answer.more;
    note.textContent = `The newest ${answer.jobs.length} jobs`;
  }

  const note = h("span");
  const more = h("button", { type: "button", class: "ghost", onclick: async () => {
    limit = Math.min(500, limit * 2);
    try { await load(); } catch (error) { page.fail(error); }
  } }, "Show more");
  let shown = false;
  async function load() {
    answer = await ask(`/api/jobs${query({ limit })}`);
    if (!shown) {
      page.show(h("div", { class: "head" }, h("h1", {}, "Jobs"), h("span", { class: "grow" }), h("div", { class: "filters" }, find, states)),
        h("section", { class: "panel", "aria-label": "Counts" }, sums), panel("All jobs", list, {}), h("div", { class: "more" }, note, more));
      shown = true;
    }
    draw();
    // Statuses that take long come with the next answers.
    if (answer.partial && page.shown()) setTimeout(() => load().catch(() => {}), 150);
  }
  page.repeat(3, load);
}
