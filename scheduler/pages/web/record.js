// One record: how fast it is and against what, its schedule, its loops, and the commands that show its code.
import { ask } from "/web/api.js";
import { h, panel, figures, facts, command, empty, replace } from "/web/dom.js";
import { chart } from "/web/chart.js";
import { briefSpeed, count, exact, latency, plural, scaled, span, speed, times } from "/web/units.js";
import { jobLink, recordLink } from "/web/rows.js";

const bytes = (value) => scaled(value, "B");

// Where the program lies under the device's limits: operations for each byte that it must move, against its speed.
export function roofline(roof, marks, height = 300) {
  const ridge = roof.peak_flops / roof.bytes_per_s;
  const intensities = marks.map((mark) => mark.intensity);
  const low = Math.min(ridge / 20, ...intensities.map((value) => value / 3));
  const high = Math.max(ridge * 20, ...intensities.map((value) => value * 3));
  return chart({
    series: [{ name: "limit", kind: "line", cls: "roof", points: [[low, low * roof.bytes_per_s], [ridge, roof.peak_flops], [high, roof.peak_flops]] }],
    dots: marks.map((mark, i) => ({ cls: `p${i}`, r: 6, points: [[mark.intensity, mark.flops, `${mark.name}: ${speed(mark.flops)}`]] })),
    x: { label: "operations for each byte of inputs and outputs", format: (value) => (value >= 1 ? count(Math.round(value)) : value.toPrecision(1)), log: true },
    y: { format: briefSpeed, log: true },
    label: marks.map((mark) => `${mark.name} does ${mark.intensity.toFixed(1)} operations for each byte and reaches ${speed(mark.flops)} of at most ${speed(mark.limit)}`).join("; "),
  }, height);
}

function roofPanel(record) {
  const { roof } = record;
  if (!roof.known) return panel("Roofline", empty("Not known", roof.reason), { cls: "c6" });
  const share = roof.flops / roof.limit;
  return panel("Roofline", h("div", {}, h("div", { class: "body" }, roofline(roof, [{ name: "this record", intensity: roof.intensity, flops: roof.flops, limit: roof.limit }])),
    facts([["Reaches", `${Math.round(share * 100)}% of what its device allows: ${speed(roof.flops)} of ${speed(roof.limit)}`],
      ["Limited by", roof.bound === "memory" ? "the memory's bandwidth" : "the arithmetic units"],
      ["Operations", `${scaled(roof.operations, "FLOP")}, ${bytes(roof.bytes)} of inputs and outputs`],
      ["Device", `${speed(roof.peak_flops)} in ${roof.peak_of}, ${scaled(roof.bytes_per_s, "B/s")} from ${roof.bytes_of}`, "From the model of the device that measured the record"]])),
  { cls: "c6", note: "speed against what the device allows" });
}

function stepList(steps) {
  if (steps.length === 0) return empty("No step", "The record measures the computation with no schedule applied.");
  return h("ol", { class: "steps", start: "0", tabindex: "0", "aria-label": "Schedule steps" }, steps.map((step) => h("li", {}, h("span", { title: step.code }, step.name), h("code", {}, step.values))));
}

export async function recordPage(page) {
  const record = await ask(`/api/records/${page.parts.map(encodeURIComponent).join("/")}`);
  page.title(`${record.job}/${record.trial}`);
  page.live(true);
  const loops = h("div", {}, h("p", { class: "loading", role: "status" }, "Making the loops"));
  const form = (name, text) => h("button", { type: "button", class: "ghost", "data-form": name, "aria-pressed": String(name === "loops"), onclick: () => showText(name) }, text);
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Form" }, form("loops", "Loops"), form("schedule", "Schedule"), form("program", "Program"), form("dag", "Computation"));
  async function showText(name) {
    for (const button of tabs.children) button.setAttribute("aria-pressed", String(button.dataset.form === name));
    try {
      const answer = await ask(`/api/records/${record.record}/text/${name}`);
      replace(loops, answer.text ? h("pre", { tabindex: "0", "aria-label": `Text of the ${name}` }, answer.text) : empty("No text", answer.reason));
    } catch (error) {
      replace(loops, h("p", { class: "notice bad", role: "alert" }, error.message));
    }
  }
  page.show(h("p", { class: "crumbs" }, h("a", { href: "#/records" }, "Records"), " / ", h("a", { href: `#/records?workload=${encodeURIComponent(record.workload_id)}` }, record.description || record.workload_id), ` / ${record.job}/${record.trial}`),
    h("div", { class: "head" }, h("h1", {}, record.description || "Record"), h("span", { class: "chip plain mono" }, `${record.job}/${record.trial}`), record.error ? h("span", { class: "chip bad" }, record.error_name) : null,
      h("span", { class: "grow" }), h("a", { href: `#/compare?kind=records&a=${record.record}` }, "Compare with another record")),
    record.mark && h("p", { class: "notice" }, record.mark), record.unchecked && h("p", { class: "notice" }, record.unchecked),
    record.error ? h("p", { class: "notice bad" }, record.message || record.error_name) : null,
    h("section", { class: "panel", "aria-label": "Figures" }, figures([
      ["Latency", latency(record.cost_s), record.confidence_s > 0 ? `95% sure to within ±${latency(record.confidence_s)}` : plural(record.costs_s.length, "reading")],
      ["Speed", speed(record.flop_count / record.cost_s), scaled(record.flop_count, "FLOP")],
      ["Beside the best", record.best_s > 0 ? times(record.cost_s / record.best_s) : "–", record.best_record && record.best_record !== record.record ? recordLink(record.best_record, latency(record.best_s)) : "it is the best one"],
      ["Largest error", record.error ? "–" : record.max_error === 0 ? "0" : record.max_error.toExponential(1), "of the largest value", "Beside the reference's outputs on random inputs"],
      ["Build", record.build_s > 0 ? span(record.build_s) : "–", "at the builder"], ["Run", record.run_s > 0 ? span(record.run_s) : "–", "at the runner"]])),
    h("div", { class: "grid" }, roofPanel(record), panel("Schedule", stepList(record.steps), { cls: "c6", note: plural(record.steps.length, "step") })),
    panel("Program", loops, { aside: tabs }),
    panel("Code and commands", h("div", { class: "body" }, h("p", { class: "sub" }, "The scheduler has no compiler. These commands print the code, and repeat the trial:"), record.commands.map((line) => h("div", {}, h("br"), command(line))))),
    panel("About the record", facts([["Record", String(record.record)], ["Job", jobLink(record.job)], ["Task", String(record.task)], ["Workload", h("span", { class: "mono" }, record.workload_id || "not known")],
      ["Workload key", h("span", { class: "mono" }, record.workload_key)], ["Target", h("span", { class: "mono" }, record.target)], ["Device", [record.device, record.device_summary && h("span", { class: "two" }, record.device_summary)]],
      ["Device state", record.device_state], ["Measured as", record.measured_as], ["Readings", record.costs_s.map(latency).join(", ")], ["Read again", record.remeasurements ? plural(record.remeasurements, "time") : ""],
      ["Came from", record.origin], ["Score", record.score === null ? "" : String(record.score)], ["Measured", exact(record.timestamp_s)], ["Builder", h("span", { class: "mono" }, record.builder)], ["Runner", h("span", { class: "mono" }, record.runner)], ["Trace", record.trace_id && h("span", { class: "mono" }, record.trace_id)]])));
  await showText("loops");
}
