// The best records of the computations that were tuned of late, and of any that is asked for.
import { ask, query } from "/web/api.js";
import { h, panel, table, empty, replace } from "/web/dom.js";
import { latency, speed, times } from "/web/units.js";
import { jobLink, recordLink, time } from "/web/rows.js";

const WORKLOADS = [
  { title: "Computation", cell: (row) => [h("a", { class: "name", href: `#/records?workload=${encodeURIComponent(row.workload_id)}` }, row.description || row.workload_key || "imported computation"),
    h("span", { class: "two mono" }, row.workload_id.slice(0, 12))] },
  { title: "Target", cls: "wide", cell: (row) => [row.target, h("span", { class: "two" }, row.device)] },
  { title: "Best", cls: "n", cell: (row) => recordLink(row.record, latency(row.cost_s)) },
  { title: "Speed", cls: "n wide", cell: (row) => speed(row.flop_count / row.cost_s) },
  { title: "Job", cls: "wide", cell: (row) => [jobLink(row.job, row.job), h("span", { class: "two nowrap" }, `trial ${row.trial}`)] },
  { title: "Measured", cls: "n wide", cell: (row) => time(row.timestamp_s) },
];

const RECORDS = (best) => [
  { title: "Latency", cls: "n", cell: (row) => recordLink(row.record, latency(row.cost_s)) },
  { title: "Beside the best", cls: "n", cell: (row) => times(row.cost_s / best) },
  { title: "Speed", cls: "n wide", cell: (row) => speed(row.flop_count / row.cost_s) },
  { title: "Target", cell: (row) => [row.target, h("span", { class: "two" }, row.device)] },
  { title: "Measured as", cls: "wide", hint: "The way of measuring; costs of different ways are not compared", cell: (row) => row.measured_as || "not known" },
  { title: "Job", cell: (row) => [jobLink(row.job, row.job), h("span", { class: "two nowrap" }, `trial ${row.trial}`)] },
  { title: "Measured", cls: "n wide", cell: (row) => time(row.timestamp_s) },
];

// Goes to what the text names: a trial, a record, or a computation.
function open(page, text) {
  if (/^[^/\s]+\/\d+$/.test(text)) page.go(`#/record/${text.replace("/", "%2F")}`);
  else if (/^#?\d+$/.test(text)) page.go(`#/record/${text.replace("#", "")}`);
  else page.go(`#/records${query({ workload: text })}`);
}

async function ofWorkload(page, workload) {
  const answer = await ask(`/api/records${query({ workload })}`);
  const first = answer.rows[0];
  page.title(first?.description || "Records");
  page.show(h("p", { class: "crumbs" }, h("a", { href: "#/records" }, "Records"), " / ", workload),
    h("div", { class: "head" }, h("h1", {}, first?.description || "Records of a computation")),
    answer.rows.length === 0 ? panel("Records", empty("No record", "No trial of this computation has a result. The name must be a whole workload id, or a whole workload key."))
      : panel("Best records", table("Best records", RECORDS(first.cost_s), answer.rows), { note: `the ${answer.rows.length} fastest` }));
}

export async function recordsPage(page) {
  const workload = page.values.get("workload");
  if (workload) { await ofWorkload(page, workload); page.live(true); return; }
  const answer = await ask("/api/records");
  let needle = "", target = "";
  const list = h("div");
  const targets = [...new Set(answer.rows.map((row) => row.target))].sort();
  const draw = () => {
    const rows = answer.rows.filter((row) => (target === "" || row.target === target) &&
      [row.description, row.workload_key, row.workload_id, row.device, row.job].join(" ").toLowerCase().includes(needle.toLowerCase()));
    if (answer.rows.length === 0) replace(list, empty("No record yet", "A record appears here with the first result of a job."));
    else if (rows.length === 0) replace(list, empty("Nothing matches", "Press Enter to look for a trial (JOB/12), a record (#7), a workload id or a workload key in the whole database."));
    else replace(list, table("Best record of each computation", WORKLOADS, rows));
  };
  const form = h("form", { class: "filters", onsubmit: (event) => { event.preventDefault(); if (needle.trim()) open(page, needle.trim()); } },
    h("input", { class: "field", type: "search", size: 34, placeholder: "Computation, JOB/12, #7", title: "A computation, a trial (JOB/12), a record (#7), a workload id or a workload key", "aria-label": "Find records", oninput: (event) => { needle = event.target.value; draw(); } }),
    h("select", { class: "field", "aria-label": "Target", onchange: (event) => { target = event.target.value; draw(); } }, h("option", { value: "" }, "all targets"), targets.map((one) => h("option", { value: one }, one))));
  page.show(h("div", { class: "head" }, h("h1", {}, "Records"), h("span", { class: "grow" }), form),
    panel("Best record of each computation", list, { note: answer.more ? "of the newest jobs" : "" }));
  draw();
  page.live(true);
}
