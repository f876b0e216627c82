// Makes elements. Every text goes in as a text node, so a name is never read as HTML.

// Makes <tag> with properties and children. A property that begins with "on" is a listener; null and false children
// are left out.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  set(element, properties);
  append(element, children);
  return element;
}

// Makes an element of SVG.
export function s(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, properties);
  append(element, children);
  return element;
}

function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

// Names an element within a page that is drawn anew.
const nameOf = (element) => [element.tagName, element.id, element.getAttribute("aria-label"), element.getAttribute("href"),
  element.dataset?.mode, element.dataset?.form].join(" ");

// Replaces the contents. The focus and the places to which tables were scrolled stay where they were.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) && element !== document.activeElement ? nameOf(document.activeElement) : null;
  const scrolled = [...element.querySelectorAll(".scroll, pre, .steps")].map((region) => [nameOf(region), region.scrollLeft, region.scrollTop]);
  element.textContent = "";
  append(element, children);
  for (const [name, left, top] of scrolled.filter((one) => one[1] > 0 || one[2] > 0)) {
    const region = [...element.querySelectorAll(".scroll, pre, .steps")].find((one) => nameOf(one) === name);
    if (region) { region.scrollLeft = left; region.scrollTop = top; }
  }
  if (focused === null) return;
  const again = [...element.querySelectorAll("a, button, input, select, [tabindex]")].find((one) => nameOf(one) === focused);
  again?.focus({ preventScroll: true });
}

// Makes a panel with a heading. `aside` stands at the right of the heading.
export function panel(title, content, { aside = null, note = "", cls = "" } = {}) {
  return h("section", { class: `panel ${cls}` },
    h("header", {}, h("h2", {}, title), note && h("span", { class: "note" }, note), h("span", { class: "grow" }), aside),
    content);
}

// Makes a table whose columns are {title, cell(row), cls, hint}. The table scrolls in a region of its own.
export function table(caption, columns, rows, { rowClass = () => "" } = {}) {
  const head = columns.map((column) => h("th", { scope: "col", class: column.cls, title: column.hint }, column.title));
  const body = rows.map((row) => h("tr", { class: rowClass(row) || null },
    columns.map((column) => h("td", { class: column.cls }, column.cell(row)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "visually-hidden" }, caption), h("thead", {}, h("tr", {}, head)),
      h("tbody", {}, body)));
}

// Makes a list of figures: [name, value, remark, hint].
export function figures(items) {
  return h("dl", { class: "figures" }, items.map(([name, value, remark, hint]) =>
    h("div", { title: hint || null }, h("dt", {}, name), h("dd", {}, value, remark && h("small", {}, remark)))));
}

export function facts(items) {
  return h("dl", { class: "facts" },
    items.filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value, hint]) => [h("dt", { title: hint || null }, name), h("dd", {}, value)]));
}

// The scheduler's address, which commands are given; "" until it is known.
let place = "";
export function setPlace(port) {
  const host = location.hostname.includes(":") ? `[${location.hostname}]` : location.hostname;
  place = port > 0 ? ` --scheduler ${host}:${port}` : "";
}

// Makes a command line that can be copied. A command names the scheduler of these pages, unless it names a tracker.
export function command(line) {
  const text = line.includes("--tracker") ? line : line + place;
  const button = h("button", { type: "button", "aria-label": `Copy the command ${text}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
  return h("div", { class: "cmd" }, h("code", { tabindex: "0" }, text), button);
}

export function empty(title, text, line = "") {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, text), line && command(line));
}

// Makes a bar that is full at share 1.
export function meter(share, label, hot = false) {
  const width = Math.max(0, Math.min(1, share || 0)) * 100;
  return s("svg", { class: "meter", role: "img", "aria-label": label, viewBox: "0 0 100 5", preserveAspectRatio: "none" },
    s("rect", { class: "rail", width: 100, height: 5 }), s("rect", { class: hot ? "fill hot" : "fill", width, height: 5 }));
}

const TONES = {
  running: "run", succeeded: "good", failed: "bad", cancelled: "", queued: "warn", waiting: "warn", paused: "warn",
  serves: "good", cordoned: "warn", drains: "warn", paused_worker: "warn", quarantined: "bad",
};

export function chip(word, title = "") {
  return h("span", { class: `chip ${TONES[word] || ""}`, title: title || null }, word);
}
