// The curves of a job: its total latency, and each task's way to its best candidate.
import { chart, valueAt } from "/web/chart.js";
import { h } from "/web/dom.js";
import { brief, count, latency, span } from "/web/units.js";

const WIDE = 4;

// A logarithmic axis shows a fall by several times better, a linear one a fall by some percent.
const isWide = (values) => {
  const positive = values.filter((value) => value > 0);
  return positive.length > 1 && Math.max(...positive) / Math.min(...positive) > WIDE;
};

// Rounds are [trials, elapsed_s, total_s, task].
export function totalCurve(series, { byTime = false, height = 280 } = {}) {
  const place = byTime ? 1 : 0;
  const lines = series.map(({ name, rounds }, i) => ({ name, kind: "steps", cls: `s${i}`, end: rounds.at(-1)?.[place] ?? 0,
    points: rounds.filter((round) => round[2] > 0).map((round) => [round[place], round[2]]) }));
  const end = Math.max(0, ...lines.map((line) => line.end));
  const values = lines.flatMap((line) => line.points.map(([, value]) => value));
  return chart({
    series: lines,
    x: { label: byTime ? "seconds since the job began" : "trials", format: byTime ? span : count, min: 0, max: end || undefined },
    y: { format: brief, log: isWide(values) },
    none: "The total is known once each task has a result.",
    label: lines.map((line) => line.points.length === 0 ? `${line.name}: no total latency yet`
      : `${line.name}: total latency from ${latency(line.points[0][1])} to ${latency(line.points.at(-1)[1])}`).join("; "),
    tip: (at) => [byTime ? `after ${span(at)}` : `trial ${count(Math.round(at))}`,
      ...lines.map((line) => `${series.length > 1 ? `${line.name}: ` : ""}${latency(valueAt(line.points, at))}`)],
  }, height);
}

// `task` has best: [[trial, cost]], buckets: [[first, last, low, high, measured, failed]] and points: [[trial, cost]].
export function taskCurve(task, { height = 150, reference = 0, name = "", last = 0 } = {}) {
  const bands = task.buckets.filter((bucket) => bucket[4] > 0).map(([first, end, low, high]) => [first, end + 1, low, high]);
  const values = [...task.best.map(([, cost]) => cost), ...bands.map((band) => band[3])];
  const best = task.best.at(-1)?.[1];
  return chart({
    series: [{ name: "best so far", points: task.best, kind: "steps", cls: "s0" }],
    bands: [{ points: bands }],
    dots: [{ points: task.points || [] }],
    fails: task.buckets.filter((bucket) => bucket[5] > 0).map(([first]) => first),
    refs: reference > 0 && best && reference < best * 40 ? [{ y: reference, name: "unscheduled loops" }] : [],
    x: { label: "trials of the job", format: count, min: 0, max: last || undefined },
    y: { format: brief, log: isWide(values) },
    label: best ? `${name}: the best candidate takes ${latency(best)}` : `${name}: no result yet`,
    tip: (at) => {
      const bucket = task.buckets.find(([first, end]) => at >= first && at <= end + 1);
      return [`trial ${count(Math.round(at))}`, `best so far ${latency(valueAt(task.best, at))}`,
        ...(bucket && bucket[4] > 0 ? [`measured here: ${latency(bucket[2])} to ${latency(bucket[3])}`] : []),
        ...(bucket && bucket[5] > 0 ? [`${count(bucket[5])} failed`] : [])];
    },
  }, height);
}

export function legend() {
  return h("div", { class: "legend" }, h("span", {}, h("i", { class: "key" }), "best so far"),
    h("span", {}, h("i", { class: "key kband" }), "measured, fastest to slowest"), h("span", {}, h("i", { class: "key kfail" }), "failed trials"));
}
