// One job: what it does now and why, its curves, its tasks, its trials, and what failed.
import { ask, follow, query } from "/web/api.js";
import { h, panel, table, figures, facts, chip, command, empty, replace } from "/web/dom.js";
import { count, exact, latency, percent, plural, span, speed, times } from "/web/units.js";
import { nameOf, paceText, recordLink, shareText, stateChip, time, whyList } from "/web/rows.js";
import { legend, taskCurve, totalCurve } from "/web/curves.js";

const CARDS = 24;
const ROWS = 50;

const TASKS = [
  { title: "Task", cls: "n", cell: (task) => task.index },
  { title: "Computation", cell: (task) => [h("span", { class: "name" }, task.description || task.workload_key),
    task.variant && h("span", { class: "two" }, `algorithm ${task.variant}`), task.tuned_by_job && h("span", { class: "two" }, `tuned by job ${task.tuned_by_job}`)] },
  { title: "Uses", cls: "n wide", hint: "How often the network uses this computation; the total latency counts it so often", cell: (task) => count(task.weight) },
  { title: "Trials", cls: "n wide", cell: (task) => count(task.trials) },
  { title: "Best", cls: "n", cell: (task) => (task.best_record ? recordLink(task.best_record, latency(task.best_s)) : "–") },
  { title: "Speed", cls: "n wide", hint: "Arithmetic operations per second of the best candidate", cell: (task) => speed(task.flop_count / task.best_s) },
  { title: "Speed-up", cls: "n wide", hint: "Beside the unscheduled loops: the computation with no schedule applied", cell: (task) => times(task.reference_s / task.best_s) },
  { title: "Share", cls: "n", hint: "Of the job's total latency. Of several algorithms the fastest one counts", cell: (task) => (task.share > 0 ? percent(task.share) : "–") },
];

const TRIALS = [
  { title: "Trial", cell: (trial) => h("a", { class: "nowrap", href: `#/record/${trial.record}` }, count(trial.trial)) },
  { title: "Task", cls: "n", cell: (trial) => trial.task },
  { title: "Latency", cls: "n", cell: (trial) => (trial.error ? h("span", { class: "chip bad", title: trial.message }, trial.error_name)
    : [h("span", { class: "name nowrap" }, latency(trial.cost_s)), trial.remeasurements > 0 && h("span", { class: "two nowrap", title: "Measured again, in turns with its rivals" }, `${plural(trial.remeasurements, "reading")} more`),
      trial.stopped_early && h("span", { class: "two nowrap", title: "Clearly slower than the best one, so it was read once" }, "read once")]) },
  { title: "Speed", cls: "n wide", cell: (trial) => (trial.error ? "–" : speed(trial.flop_count / trial.cost_s)) },
  { title: "Came from", cls: "wide", hint: "The part of the search that proposed the candidate", cell: (trial) => trial.origin },
  { title: "Build", cls: "n wide", cell: (trial) => (trial.build_s > 0 ? span(trial.build_s) : "–") },
  { title: "Run", cls: "n wide", cell: (trial) => (trial.run_s > 0 ? span(trial.run_s) : "–") },
  { title: "Measured", cls: "n wide", cell: (trial) => time(trial.timestamp_s) },
];

const CAUSES = [
  { title: "Cause", cell: (cause) => [chip("failed"), " ", h("span", { class: "name" }, cause.kind), h("span", { class: "two" }, cause.message || "no message")] },
  { title: "Trials", cls: "n", cell: (cause) => count(cause.count) },
  { title: "Last", cls: "n wide", cell: (cause) => recordLink(cause.record, `trial ${count(cause.last_trial)}`) },
  { title: "Repeat one of them alone", cell: (cause) => command(cause.command) },
];

class JobView {
  constructor(page, id) {
    this.page = page;
    this.id = id;
    this.byTime = false;
    this.mode = "newest";
    this.trialPage = 0;
    this.curve = null;
    this.parts = Object.fromEntries(["head", "figures", "why", "total", "causes", "tasks", "cards", "trials", "about"].map((name) => [name, h("div")]));
    this.shown = false;
  }

  async load() {
    const answer = await ask(`/api/jobs/${encodeURIComponent(this.id)}`);
    this.answer = answer;
    await this.loadCurve();
    if (!this.shown) {
      this.lay();
      await this.loadTrials();
      this.shown = true;
    }
    this.draw();
  }

  async loadCurve() {
    const before = this.curve;
    const curve = await ask(`/api/jobs/${encodeURIComponent(this.id)}/curve`);
    this.curve = curve;
    this.curveChanged = before === null || before.trials !== curve.trials || before.rounds.length !== curve.rounds.length;
  }

  async loadTrials() {
    const values = this.mode === "best" ? { best: 1 } : { page: this.trialPage, order: this.mode };
    this.trials = await ask(`/api/jobs/${encodeURIComponent(this.id)}/trials${query(values)}`);
    this.drawTrials();
  }

  lay() {
    const { parts } = this;
    const axis = h("button", { type: "button", class: "ghost", "aria-pressed": "false", onclick: () => {
      this.byTime = !this.byTime;
      axis.setAttribute("aria-pressed", String(this.byTime));
      this.drawTotal();
    } }, "Over time");
    const order = (mode, text) => h("button", { type: "button", class: "ghost", "data-mode": mode, "aria-pressed": String(mode === this.mode), onclick: async () => {
      this.mode = mode;
      this.trialPage = 0;
      for (const button of tabs.children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
      try { await this.loadTrials(); } catch (error) { this.page.fail(error); }
    } }, text);
    const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Order of the trials" }, order("newest", "Newest"), order("oldest", "Oldest"), order("best", "Best"));
    this.page.show(h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs"), " / ", this.id), parts.head,
      h("section", { class: "panel", "aria-label": "Figures" }, parts.figures),
      h("div", { class: "grid" }, panel("Total latency", h("div", { class: "body" }, parts.total), { aside: axis, cls: "c8" }), panel("Why", parts.why, { cls: "c4", note: "what the job does now, and what would help" })),
      panel("Tasks", parts.tasks), panel("Convergence", parts.cards, { aside: legend() }), panel("Failures by cause", parts.causes), panel("Trials", parts.trials, { aside: tabs }), panel("About the job", parts.about));
  }

  draw() {
    const { job } = this.answer;
    this.page.title(nameOf(job));
    replace(this.parts.head, h("div", { class: "head" }, h("h1", {}, nameOf(job)), stateChip(job), h("span", { class: "muted" }, this.answer.why.estimate), h("span", { class: "grow" }),
      h("a", { href: `#/compare?a=${encodeURIComponent(this.id)}` }, "Compare with another job")),
    (job.message || job.phase) && h("p", { class: job.state === "failed" ? "notice bad" : "notice" }, job.message || job.phase));
    const [share, shareOf] = shareText(job);
    replace(this.parts.figures, figures([
      ["Total latency", latency(job.total_s), job.speed_up > 0 ? `${times(job.speed_up)} faster than with no schedule` : "", "The objective: by default the sum of the best latency of each task times its uses"],
      ["Trials", count(job.trials_done), job.trials_limit ? `of ${count(job.trials_limit)}` : "no limit"],
      ["Failed", count(job.errors), job.trials_done ? percent(job.errors / job.trials_done) : ""],
      ["Pace", ...paceText(job)],
      ["Device busy", share, shareOf, "Share of the device's time that measured trials or the best candidates again"],
      ["Ran", job.elapsed_s > 0 ? span(job.elapsed_s) : "–", job.ending]]));
    replace(this.parts.why, whyList(this.answer.why));
    replace(this.parts.tasks, table("Tasks", TASKS, this.answer.tasks), this.answer.tasks_more > 0 && h("p", { class: "more" }, `${count(this.answer.tasks_more)} more tasks are not shown; kiln jobs ${this.id} lists all.`));
    if (this.curveChanged) {
      this.drawTotal();
      this.drawCards();
      this.drawCauses();
    }
    this.drawAbout();
  }

  drawTotal() {
    replace(this.parts.total, totalCurve([{ name: "this job", rounds: this.curve.rounds }], { byTime: this.byTime }));
  }

  drawCards() {
    const byIndex = new Map(this.curve.tasks.map((task) => [task.index, task]));
    const shown = this.answer.tasks.filter((task) => byIndex.has(task.index)).sort((a, b) => b.best_s * b.weight - a.best_s * a.weight).slice(0, CARDS);
    if (shown.length === 0) { replace(this.parts.cards, empty("No trial yet", "Each task gets a curve with its first result.")); return; }
    const single = shown.length === 1;
    replace(this.parts.cards, h("div", { class: single ? "body" : "cards" }, shown.map((task) => h("div", { class: single ? "" : "card" },
      h("div", { class: "row" }, h("h3", {}, task.description || task.workload_key), h("span", { class: "big" }, latency(task.best_s))),
      h("p", { class: "sub" }, [`task ${task.index}`, plural(task.trials, "trial"), task.reference_s > 0 && task.best_s > 0 && `${times(task.reference_s / task.best_s)} faster`].filter(Boolean).join(" · ")),
      taskCurve(byIndex.get(task.index), { height: single ? 260 : 150, reference: task.reference_s, name: task.description, last: this.curve.trials })))),
    !this.curve.complete && h("p", { class: "more", role: "status" }, `Reading the trials: ${count(this.curve.read)} of ${count(this.curve.trials)}`),
    this.answer.tasks.length > CARDS && h("p", { class: "more" }, `The ${CARDS} tasks with the largest share of the total are drawn.`));
  }

  drawCauses() {
    const { causes } = this.curve;
    replace(this.parts.causes, causes.length === 0 ? empty("No failure", "Each trial that was read has built, run and answered rightly.") : table("Failures by cause", CAUSES, causes));
  }

  drawTrials() {
    const { rows, pages, best } = this.answer && this.trials;
    const turn = (by) => async () => {
      this.trialPage += by;
      try { await this.loadTrials(); } catch (error) { this.page.fail(error); }
    };
    replace(this.parts.trials, rows.length === 0 ? empty("No trial yet", "Trials appear here as they are measured.") : table("Trials", TRIALS, rows),
      !best && pages > 1 && h("div", { class: "more" }, h("span", {}, `Page ${this.trialPage + 1} of ${count(pages)}, ${ROWS} trials each`),
        h("button", { type: "button", class: "ghost", disabled: this.trialPage === 0, onclick: turn(-1) }, "Back"),
        h("button", { type: "button", class: "ghost", disabled: this.trialPage + 1 >= pages, onclick: turn(1) }, "Next")));
  }

  drawAbout() {
    const { job, options, commands } = this.answer;
    replace(this.parts.about, facts([["Job", h("span", { class: "mono" }, job.id)], ["User", job.user || "no user"], ["Priority", String(job.priority), "Jobs with a higher number go first"],
      ["Target", h("span", { class: "mono" }, job.target)], ["Device", job.device], ["Networks", job.networks.join(", ")], ["Submitted", exact(job.created_s)],
      ["Search", options.policy, "The policy that proposes candidates"], ["Seed", String(options.seed)], ["Objective", options.objective], ["Limits", options.limits],
      ["Notices", job.notices.length ? job.notices.map((line) => h("div", {}, line)) : null],
      ["Commands", commands.map((line) => command(line))]]));
  }
}

export async function jobPage(page) {
  const view = new JobView(page, page.parts[0] || "");
  await view.load();
  if (!page.shown()) return;
  page.live(true);
  if (view.answer.job.is_final && view.curve.complete) return;
  // Events say that something is new; what is shown is read at most every two seconds.
  let fresh = false, busy = false, ended = false;
  const stop = follow(`/api/jobs/${encodeURIComponent(view.id)}/events?after=${view.curve.last_record}`, (event) => {
    fresh = true;
    ended = event.is_final;
  }, (on) => page.live(on));
  const timer = setInterval(async () => {
    if ((!fresh && view.curve.complete) || busy || document.visibilityState !== "visible") return;
    busy = true;
    fresh = false;
    try {
      await view.load();
      if (view.mode === "newest" && view.trialPage === 0) await view.loadTrials();
      if (ended && view.curve.complete) { stop(); clearInterval(timer); }
    } catch (error) {
      if (error.status === 401 || error.status === 403) page.fail(error);
      else page.live(false);
    }
    busy = false;
  }, 2000);
  page.onLeave(() => { stop(); clearInterval(timer); });
}
