// The jobs that wait, each with the reason.
import { ask } from "/web/api.js";
import { h, panel, empty, figures } from "/web/dom.js";
import { count, plural } from "/web/units.js";
import { jobCell, stateChip, time, whyList } from "/web/rows.js";

function card(job, place) {
  const facts = [`place ${place}`, `priority ${job.priority}`, job.user || "no user", `${count(job.trials_done)} of ${job.trials_limit ? count(job.trials_limit) : "any number of"} trials`];
  return h("section", { class: "panel", "aria-label": `Job ${job.id}` },
    h("header", {}, h("span", { class: "wide" }, stateChip(job)), h("div", {}, jobCell(job)), h("span", { class: "grow" }),
      h("span", { class: "note" }, facts.join(" · "), " · ", time(job.created_s))),
    whyList(job.why));
}

export async function queuePage(page) {
  page.repeat(3, async () => {
    const answer = await ask("/api/queue");
    const waiting = answer.jobs.length;
    page.show(h("div", { class: "head" }, h("h1", {}, "Queue"), h("p", { class: "sub" }, "Jobs that wait: for their turn, for a device, for a process or for results.")),
      h("section", { class: "panel", "aria-label": "Counts" }, figures([["Waiting", count(waiting)], ["Running", count(answer.running)],
        ["Waits longest", waiting ? time(Math.min(...answer.jobs.map((job) => job.created_s))) : "–"]])),
      waiting === 0 ? panel("Waiting jobs", empty("Nothing waits", answer.running === 0 ? "No job runs either." : `${plural(answer.running, "job")} ${answer.running === 1 ? "has" : "have"} what ${answer.running === 1 ? "it needs" : "they need"}.`)) : answer.jobs.map((job, i) => card(job, i + 1)),
      answer.more && h("p", { class: "notice" }, `The first ${waiting} are shown; kiln jobs lists all.`));
  });
}
