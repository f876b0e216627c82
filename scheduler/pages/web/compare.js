// Two jobs, or two records, side by side.
import { ask, query } from "/web/api.js";
import { h, panel, table, chip, empty, replace } from "/web/dom.js";
import { totalCurve } from "/web/curves.js";
import { roofline } from "/web/record.js";
import { count, latency, percent, span, speed, times } from "/web/units.js";
import { jobLink, nameOf, recordLink } from "/web/rows.js";

// How the second value differs from the first one. `less` tells whether less is better.
function delta(a, b, less = true) {
  if (!(a > 0) || !(b > 0)) return "–";
  const change = b / a - 1;
  if (Math.abs(change) < 0.0005) return h("span", { class: "muted" }, "equal");
  const better = less ? change < 0 : change > 0;
  const by = change >= 1 ? times(b / a) : `${change > 0 ? "+" : "−"}${(Math.abs(change) * 100).toFixed(1)}%`;
  return h("span", { class: `delta nowrap ${better ? "good" : "bad"}` }, `${by} ${better ? "better" : "worse"}`);
}

const COLUMNS = (a, b) => [{ title: "Figure", cell: (row) => row[0] }, { title: a, cls: "v", cell: (row) => row[1] }, { title: b, cls: "v", cell: (row) => row[2] }, { title: "Change", cls: "v", hint: "The second against the first", cell: (row) => row[3] ?? "" }];

function jobRows(a, b) {
  const of = (name, field, text, less) => [name, text(a[field]), text(b[field]), less === undefined ? "" : delta(a[field], b[field], less)];
  return [["Job", jobLink(a.id, nameOf(a)), jobLink(b.id, nameOf(b))], ["State", chip(a.state), chip(b.state)], of("Total latency", "total_s", latency, true), of("Trials", "trials_done", count), of("Failed", "errors", count),
    of("Ran", "elapsed_s", span, true), of("Device busy", "busy_share", percent), ["Device", a.device || "–", b.device || "–"], ["Target", a.target, b.target]];
}

async function jobs(page, result, a, b) {
  const [one, two, curveA, curveB] = await Promise.all([ask(`/api/jobs/${encodeURIComponent(a)}`), ask(`/api/jobs/${encodeURIComponent(b)}`),
    ask(`/api/jobs/${encodeURIComponent(a)}/curve`), ask(`/api/jobs/${encodeURIComponent(b)}/curve`)]);
  const others = new Map(two.tasks.map((task) => [`${task.workload_id} ${task.variant}`, task]));
  const pairs = one.tasks.map((task) => [task, others.get(`${task.workload_id} ${task.variant}`)]).filter(([, other]) => other);
  const columns = [{ title: "Computation", cell: ([task]) => h("span", { class: "name" }, task.description || task.workload_key) },
    { title: "First", cls: "n", cell: ([task]) => (task.best_record ? recordLink(task.best_record, latency(task.best_s)) : "–") },
    { title: "Second", cls: "n", cell: ([, task]) => (task.best_record ? recordLink(task.best_record, latency(task.best_s)) : "–") },
    { title: "Change", cls: "n", hint: "The second against the first", cell: ([x, y]) => delta(x.best_s, y.best_s) }];
  const key = h("div", { class: "legend" }, h("span", {}, h("i", { class: "key" }), "first"), h("span", {}, h("i", { class: "key k1" }), "second"));
  replace(result, panel("Total latency", h("div", { class: "body" }, totalCurve([{ name: "first", rounds: curveA.rounds }, { name: "second", rounds: curveB.rounds }])), { aside: key }),
    panel("Figures", table("Figures of both jobs", COLUMNS("First", "Second"), jobRows(one.job, two.job))),
    panel("Computations of both", pairs.length === 0 ? empty("None in common", "The two jobs tune different computations.") : table("Computations of both jobs", columns, pairs)));
}

// Marks the steps that only one of two schedules has, by the longest common part.
function differences(a, b) {
  const same = (x, y) => x.name === y.name && x.values === y.values;
  const most = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) most[i][j] = same(a[i], b[j]) ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
  const rows = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && same(a[i], b[j])) rows.push([a[i++], b[j++]]);
    else if (j >= b.length || (i < a.length && most[i + 1][j] >= most[i][j + 1])) rows.push([a[i++], null]);
    else rows.push([null, b[j++]]);
  }
  return rows;
}

const stepCell = (step) => (step ? [step.name, " ", h("code", { class: "muted" }, step.values)] : "");

async function records(page, result, a, b) {
  const [one, two] = await Promise.all([ask(`/api/records/${encodeURIComponent(a)}`), ask(`/api/records/${encodeURIComponent(b)}`)]);
  const text = (record) => recordLink(record.record, `${record.job}/${record.trial}`);
  const rows = [["Record", text(one), text(two)], ["Computation", one.description || one.workload_id, two.description || two.workload_id], ["Latency", latency(one.cost_s), latency(two.cost_s), delta(one.cost_s, two.cost_s)],
    ["Speed", speed(one.flop_count / one.cost_s), speed(two.flop_count / two.cost_s), delta(one.flop_count / one.cost_s, two.flop_count / two.cost_s, false)], ["Device", one.device, two.device], ["Target", one.target, two.target],
    ["Came from", one.origin, two.origin], ["Beside the best", times(one.cost_s / one.best_s), times(two.cost_s / two.best_s)]];
  const marks = [one, two].filter((record) => record.roof.known).map((record) => ({ name: `${record.job}/${record.trial}`, ...record.roof }));
  const LIMIT = 400;
  const both = differences(one.steps.slice(0, LIMIT), two.steps.slice(0, LIMIT));
  const stepColumns = [{ title: "In", cell: ([x, y]) => (x && y ? "both" : x ? "first only" : "second only") }, { title: "First", cell: ([x]) => stepCell(x) }, { title: "Second", cell: ([, y]) => stepCell(y) }];
  replace(result, panel("Figures", table("Figures of both records", COLUMNS("First", "Second"), rows)),
    marks.length > 0 && panel("Roofline", h("div", { class: "body" }, roofline(marks[0], marks)), { note: "the device of the first one" }), panel("Schedule steps", table("Schedule steps of both", stepColumns, both)));
}

export async function comparePage(page) {
  const kind = page.values.get("kind") === "records" ? "records" : "jobs";
  const [a, b] = [page.values.get("a") || "", page.values.get("b") || ""];
  const result = h("div");
  const options = h("datalist", { id: "known" });
  const field = (name, label, value) => h("label", {}, label, h("input", { class: "field", name, value, list: kind === "jobs" ? "known" : null, placeholder: kind === "jobs" ? "job id" : "JOB/12 or record", required: true }));
  const form = h("form", { class: "filters", onsubmit: (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    page.go(`#/compare${query({ kind: kind === "records" ? kind : "", a: values.get("a").trim(), b: values.get("b").trim() })}`);
  } }, field("a", "First", a), field("b", "Second", b), h("button", { class: "ghost" }, "Compare"), options);
  const tab = (name, text) => h("a", { class: "ghost", href: `#/compare${name === "records" ? "?kind=records" : ""}`, "aria-current": name === kind ? "true" : null }, text);
  page.show(h("div", { class: "head" }, h("h1", {}, "Compare"), h("div", { class: "tabs" }, tab("jobs", "Jobs"), tab("records", "Records")), h("span", { class: "grow" }), form), result);
  if (kind === "jobs") {
    const known = await ask("/api/jobs?limit=50");
    replace(options, known.jobs.map((job) => h("option", { value: job.id }, nameOf(job))));
    if (!a && !b && known.jobs.length >= 2) {
      replace(result, panel("Newest jobs", h("div", { class: "body" }, known.jobs.slice(0, 8).map((job) => h("p", {}, jobLink(job.id, nameOf(job)), h("span", { class: "muted mono" }, ` ${job.id}`))))));
    }
  }
  page.live(true);
  if (a && b) await (kind === "records" ? records : jobs)(page, result, a, b);
  else if (result.childNodes.length === 0) replace(result, panel("Nothing to compare yet", empty("Name two", kind === "jobs" ? "Two job ids, from the list of jobs." : "Two records: JOB/12 names a trial, a number a record.")));
}
