// The workers: what each does now, how its device is, and whether its clock drifts.
import { ask } from "/web/api.js";
import { h, panel, table, figures, chip, meter, empty, facts } from "/web/dom.js";
import { spark } from "/web/chart.js";
import { count, exact, latency, percent, plural, span } from "/web/units.js";
import { driftBar } from "/web/rows.js";

const KEPT = 120;

function stateWords(state) {
  if (!state) return [];
  return [state.sm_clock_mhz && `${count(state.sm_clock_mhz)} MHz`, state.cpu_mhz && `${count(state.cpu_mhz)} MHz`,
    state.temperature_c && `${state.temperature_c} °C`, state.power_w && `${Math.round(state.power_w)} W`,
    state.load !== undefined && state.load !== null && `load ${state.load.toFixed(1)}`,
    state.steal_share > 0.005 && `${percent(state.steal_share)} stolen by the hypervisor`].filter(Boolean);
}

function device(worker, now, history) {
  const words = stateWords(worker.state);
  return h("section", { class: "panel c6", "aria-label": `Runner ${worker.address}` },
    h("header", {}, chip(worker.mode, worker.mode_reason), h("h2", {}, worker.device || "device without a name"), h("span", { class: "grow" }),
      h("span", { class: "note mono" }, worker.address)),
    figures([
      ["Busy", `${worker.busy} of ${plural(worker.slots, "slot")}`, h("span", {}, spark(history.map((value, i) => [i, value + 0.02]), "Busy share since this page was opened")), "Slots that a scheduler leases now"],
      ["Busy share", percent(history.reduce((sum, value) => sum + value, 0) / Math.max(1, history.length)), "since this page was opened"],
      ["Canary", latency(worker.canary_s), "a fixed program, timed again and again", "If the canary takes longer than usual, the device has drifted"],
      ["Trials", count(worker.trials_done), "since the runner started"]]),
    worker.mode_reason && h("p", { class: "notice" }, worker.mode_reason),
    facts([
      ["State", words.join(" · "), "Of the device, right after its last trial"],
      ["Throttled by", (worker.state?.throttle_reasons || []).join(", ")],
      ["Drift, 24 h", [driftBar(worker.drifts, now), worker.drifts.slice(-3).map((drift) =>
        h("span", { class: "two" }, `${exact(drift.from_s)}, ${drift.to_s ? span(drift.to_s - drift.from_s) : "going on"}: ${drift.reason}`))],
      "Spans in which the canary took longer than usual; measurements of these spans are marked"],
      ["Device", worker.device_summary],
      ["Keys", h("span", { class: "mono" }, worker.keys.join(", "))],
      ["Version", worker.version && h("span", { class: "mono" }, worker.version)],
      ["Sandbox", [worker.sandbox.join(", ") || "not known", worker.sandbox_gaps.map((gap) => h("span", { class: "two" }, gap))]]]));
}

const BUILDERS = [
  { title: "Mode", cell: (worker) => chip(worker.mode, worker.mode_reason) },
  { title: "Address", cell: (worker) => [h("span", { class: "mono" }, worker.address), worker.mode_reason && h("span", { class: "two" }, worker.mode_reason)] },
  { title: "Busy", cell: (worker) => [h("span", { class: "nowrap" }, `${worker.busy} of ${worker.slots}`), meter(worker.slots ? worker.busy / worker.slots : 0, `${worker.busy} of ${worker.slots} slots are busy`)] },
  { title: "Builds", cls: "n", hint: "Since the builder started", cell: (worker) => count(worker.trials_done) },
  { title: "Keys", cls: "wide", cell: (worker) => h("span", { class: "mono" }, worker.keys.join(", ")) },
  { title: "Version", cls: "wide", cell: (worker) => h("span", { class: "mono" }, worker.version) },
];

const KEYS = [
  { title: "Key", hint: "What a worker serves: a kind of target, or a device", cell: (key) => h("span", { class: "mono" }, key.key) },
  { title: "Workers", cell: (key) => `${key.kind}s` },
  { title: "Slots", cls: "n", cell: (key) => count(key.total) },
  { title: "Free", cls: "n", cell: (key) => count(key.free) },
  { title: "Requests that wait", cls: "n", cell: (key) => count(key.pending) },
];

export async function fleetPage(page) {
  const histories = new Map();
  page.repeat(2, async () => {
    const answer = await ask("/api/fleet");
    const head = h("div", { class: "head" }, h("h1", {}, "Fleet"));
    if (answer.error) {
      page.show(head, h("p", { class: "notice bad", role: "alert" }, answer.error));
      return;
    }
    for (const worker of answer.workers) {
      const history = histories.get(worker.id) || [];
      history.push(worker.slots ? worker.busy / worker.slots : 0);
      histories.set(worker.id, history.slice(-KEPT));
    }
    const runners = answer.workers.filter((worker) => worker.kind === "runner");
    const builders = answer.workers.filter((worker) => worker.kind === "builder");
    const sum = (workers, field) => workers.reduce((total, worker) => total + worker[field], 0);
    const away = answer.workers.filter((worker) => worker.mode !== "serves").length;
    page.show(head,
      h("section", { class: "panel", "aria-label": "Counts" }, figures([
        ["Devices", count(runners.length), `${count(sum(runners, "busy"))} of ${plural(sum(runners, "slots"), "slot")} busy`],
        ["Builders", count(builders.length), `${count(sum(builders, "busy"))} of ${plural(sum(builders, "slots"), "slot")} busy`],
        ["Out of service", count(away), away ? "paused, drained or quarantined" : "all workers serve"],
        ["Drift now", count(answer.workers.filter((worker) => worker.drifts.some((drift) => !drift.to_s)).length), "devices slower than usual"]])),
      answer.workers.length === 0 ? panel("Workers", empty("No worker is there", "A builder and a runner announce themselves to the tracker:", "kiln runner --tracker HOST:9190")) : null,
      h("div", { class: "grid" }, runners.map((worker) => device(worker, answer.now_s, histories.get(worker.id)))),
      builders.length > 0 && panel("Builders", table("Builders", BUILDERS, builders)),
      answer.keys.length > 0 && panel("Keys and who waits for them", table("Keys", KEYS, answer.keys)),
      answer.more && h("p", { class: "notice" }, "Not all workers are shown; kiln workers lists all."));
  });
}
