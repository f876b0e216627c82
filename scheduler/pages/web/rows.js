// Cells and words that several pages share.
import { h, s, chip, meter } from "/web/dom.js";
import { ago, count, exact, latency, percent, plural, span, times } from "/web/units.js";
import { spark } from "/web/chart.js";

export const jobLink = (id, text = id) => h("a", { href: `#/job/${encodeURIComponent(id)}` }, text);
export const recordLink = (id, text) => h("a", { href: `#/record/${id}` }, text || `record ${id}`);
export const time = (unix) => (unix ? h("time", { datetime: new Date(unix * 1000).toISOString(), title: exact(unix) }, ago(unix)) : "–");

// A job that was given no name is called after its network, or after its first task.
export function nameOf(job) {
  const network = job.networks?.[0]?.replace(/^network:/, "");
  const given = job.name === job.description ? "" : job.name;
  return given || network || job.description || job.id;
}

// A job that runs may wait for a device.
export const stateChip = (job) => chip(job.state === "running" && job.waiting ? "waiting" : job.state, job.message);

// The name of a job with its id and what it tunes; on a phone also its state and its trials.
export function jobCell(job) {
  const about = [plural(job.task_count, "task"), job.target].filter(Boolean).join(" · ");
  return [h("a", { class: "name", href: `#/job/${encodeURIComponent(job.id)}` }, nameOf(job)),
    h("span", { class: "two" }, h("span", { class: "mono" }, job.id), ` · ${about}`),
    h("span", { class: "narrow" }, stateChip(job), `${trialsText(job)} trials`, job.estimate && h("span", {}, job.estimate))];
}

const trialsText = (job) => `${count(job.trials_done)}${job.trials_limit ? ` / ${count(job.trials_limit)}` : ""}`;

export function progressCell(job) {
  return [h("span", { class: "nowrap" }, trialsText(job)),
    job.progress === null ? null : meter(job.progress, `${percent(job.progress)} of the trials or of the time are used`, job.state === "succeeded")];
}

export function stateCell(job) {
  return [stateChip(job), job.estimate && h("span", { class: "two nowrap" }, job.estimate)];
}

export function sparkCell(job) {
  if (!job.curve?.length) return h("span", { class: "muted" }, "–");
  return spark(job.curve, `Total latency fell from ${latency(job.curve[0][1])} to ${latency(job.curve.at(-1)[1])}`);
}

export const totalCell = (job) => [h("span", { class: "name nowrap" }, latency(job.total_s)),
  job.speed_up > 0 && h("span", { class: "two nowrap", title: "Beside the unscheduled loops, which are the computation with no schedule applied" }, `${times(job.speed_up)} faster`)];

// A sentence of the scheduler: it begins with a capital, and what stands between backticks is code.
const prose = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`.split("`").map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part));

// The reasons why a job waits or is slow.
export function whyList(why) {
  return h("div", {}, why.reasons.map((reason) => h("div", { class: "why" }, h("p", {}, prose(reason.text)),
    reason.details.length > 0 && h("ul", {}, reason.details.map((line) => h("li", {}, prose(line)))),
    reason.remedy && h("p", { class: "help" }, prose(reason.remedy)))));
}

// The marks of spans of drift over the last 24 hours.
export function driftBar(drifts, now) {
  const day = 86400;
  const bar = s("svg", { class: "drift", viewBox: "0 0 1000 14", preserveAspectRatio: "none", role: "img",
    "aria-label": drifts.length === 0 ? "No drift in the last 24 hours" : `${plural(drifts.length, "span")} of drift in the last 24 hours` },
  s("rect", { class: "rail", width: 1000, height: 14, rx: 3 }));
  for (const drift of drifts) {
    const from = Math.max(0, 1 - (now - drift.from_s) / day) * 1000;
    const to = drift.to_s ? Math.max(0, 1 - (now - drift.to_s) / day) * 1000 : 1000;
    bar.append(s("rect", { class: "span", x: from, width: Math.max(4, to - from), height: 14 }, s("title", {}, drift.reason)));
  }
  return bar;
}

// A share that rounds to 0% says that no program was run: the target is null.
const LEAST_SHARE = 0.005;

export const shareText = (job) => {
  if (job.busy_share_last_minute >= LEAST_SHARE) return [percent(job.busy_share_last_minute), "of the last minute"];
  return job.busy_share >= LEAST_SHARE ? [percent(job.busy_share), "of the job's time"] : ["–", ""];
};

export const paceText = (job) => {
  if (job.trials_per_s > 0) return [`${job.trials_per_s.toFixed(1)} / s`, "trials of the last minute"];
  const mean = job.trials_done / job.elapsed_s;
  return mean > 0 && isFinite(mean) ? [`${mean.toFixed(1)} / s`, "trials of the job's time"] : ["–", ""];
};

export const elapsed = (job) => (job.elapsed_s > 0 ? span(job.elapsed_s) : "–");
