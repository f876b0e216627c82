// Charts of our own, as SVG: curves with bands and points on linear or logarithmic axes, and small lines for tables.
import { h, s, replace } from "/web/dom.js";

const MARGIN = { left: 76, right: 14, top: 10, bottom: 30 };

// Returns "nice" places of an axis between two values.
export function ticks(low, high, most, log) {
  if (log) return logTicks(low, high, most);
  const rough = (high - low) / Math.max(1, most);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
  const places = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) places.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return places;
}

function logTicks(low, high, most) {
  for (const factors of [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const places = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const factor of factors) {
        const at = factor * 10 ** power;
        if (at >= low * 0.999 && at <= high * 1.001) places.push(at);
      }
    }
    if (places.length <= most + 1) return places.length >= 2 ? places : ticks(low, high, most, false);
  }
  const step = Math.ceil((Math.log10(high) - Math.log10(low)) / most);
  const places = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power += step) places.push(10 ** power);
  return places;
}

function scaleOf(low, high, from, to, log) {
  const map = log ? Math.log10 : (value) => value;
  const [a, b] = [map(low), map(high)];
  const size = b - a || 1;
  return (value) => from + ((map(value) - a) / size) * (to - from);
}

// Returns the span of the numbers; logarithmic axes have positive ones alone.
function extent(values, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!isFinite(value) || (log && !(value > 0))) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return null;
  if (low === high) return log ? [low / 1.5, high * 1.5] : [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  if (log) {
    const pad = (high / low) ** 0.06;
    return [low / pad, high * pad];
  }
  const pad = (high - low) * 0.06;
  return [Math.max(low - pad, low >= 0 ? 0 : -Infinity), high + pad];
}

const path = (points, x, y) => points.map(([a, b], i) => `${i === 0 ? "M" : "L"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");

// A line that holds its value until the next point.
function steps(points, x, y, end) {
  if (points.length === 0) return "";
  let line = `M${x(points[0][0]).toFixed(1)} ${y(points[0][1]).toFixed(1)}`;
  for (const [a, b] of points.slice(1)) line += `H${x(a).toFixed(1)}V${y(b).toFixed(1)}`;
  return `${line}H${x(Math.max(end, points.at(-1)[0])).toFixed(1)}`;
}

function nearest(points, at) {
  let best = null;
  for (const point of points) if (point[0] <= at && (best === null || point[0] >= best[0])) best = point;
  return best;
}

// Draws curves into a new element that follows its width.
//   series: [{name, points: [[x, y]], kind: "steps" | "line", cls, end}]; steps go on until `end`, or over the whole width
//   bands: [{points: [[x0, x1, low, high]]}]
//   dots: [{points: [[x, y]], cls, r}]   fails: [x]   refs: [{y, name}]   x, y: {label, format, log, min, max}
//   label: a sentence for people who do not see the chart   tip(x): lines about a place
export function chart(spec, height = 260) {
  const holder = h("div", { class: "chart" });
  const draw = () => {
    const width = Math.max(240, holder.clientWidth || 600);
    replace(holder, svgOf(spec, width, height, holder));
  };
  new ResizeObserver(draw).observe(holder);
  holder.update = (changes) => { Object.assign(spec, changes); draw(); };
  return holder;
}

function rangesOf(spec) {
  const xs = [], ys = [];
  for (const one of [...(spec.series || []), ...(spec.dots || [])]) for (const [a, b] of one.points) { xs.push(a); ys.push(b); }
  for (const band of spec.bands || []) for (const [a, b, low, high] of band.points) { xs.push(a, b); ys.push(low, high); }
  for (const ref of spec.refs || []) ys.push(ref.y);
  for (const at of spec.fails || []) xs.push(at);
  const xr = extent(xs, spec.x.log), yr = extent(ys, spec.y.log);
  if (xr === null || yr === null) return null;
  if (!spec.x.log && spec.x.min !== undefined) xr[0] = spec.x.min;
  if (spec.x.max !== undefined) xr[1] = Math.max(spec.x.max, xr[0] + 1e-9);
  return { xr, yr };
}

function svgOf(spec, width, height, holder) {
  const ranges = rangesOf(spec);
  const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.label });
  if (ranges === null) {
    svg.append(s("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, spec.none || "There is no result yet."));
    return svg;
  }
  const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
  const x = scaleOf(...ranges.xr, MARGIN.left, right, spec.x.log);
  const y = scaleOf(...ranges.yr, bottom, MARGIN.top, spec.y.log);
  axes(svg, spec, ranges, x, y, width, height);
  for (const band of spec.bands || []) {
    for (const [a, b, low, high] of band.points) {
      svg.append(s("rect", { class: "band", x: x(a), width: Math.max(1, x(b) - x(a)), y: y(high), height: Math.max(1, y(low) - y(high)) }));
    }
  }
  for (const at of spec.fails || []) svg.append(s("rect", { class: "fail", x: x(at) - 0.75, width: 1.5, y: bottom - 6, height: 6 }));
  for (const ref of spec.refs || []) {
    svg.append(s("line", { class: "ref", x1: MARGIN.left, x2: right, y1: y(ref.y), y2: y(ref.y) }));
    if (ref.name) svg.append(s("text", { x: right, y: y(ref.y) - 4, "text-anchor": "end" }, ref.name));
  }
  for (const group of spec.dots || []) {
    for (const [a, b, name] of group.points) {
      if (spec.y.log && !(b > 0)) continue;
      const dot = s("circle", { class: group.cls || "dot", cx: x(a), cy: y(b), r: group.r || 1.75 });
      if (name) dot.append(s("title", {}, name));
      svg.append(dot);
    }
  }
  for (const one of spec.series || []) {
    const points = one.points.filter(([, b]) => isFinite(b) && (!spec.y.log || b > 0));
    svg.append(s("path", { class: one.cls || "s0", d: one.kind === "line" ? path(points, x, y) : steps(points, x, y, one.end ?? ranges.xr[1]) }));
  }
  if (spec.tip) hover(svg, spec, ranges, x, width, bottom, holder);
  return svg;
}

function axes(svg, spec, ranges, x, y, width, height) {
  const bottom = height - MARGIN.bottom;
  for (const at of ticks(...ranges.yr, Math.max(2, Math.floor(height / 56)), spec.y.log)) {
    svg.append(s("line", { class: "gridline", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(at), y2: y(at) }));
    svg.append(s("text", { x: MARGIN.left - 7, y: y(at) + 4, "text-anchor": "end" }, spec.y.format(at)));
  }
  const across = ticks(...ranges.xr, Math.max(2, Math.floor(width / 110)), spec.x.log);
  for (const at of across) {
    const anchor = x(at) > width - MARGIN.right - 20 ? "end" : "middle";
    svg.append(s("text", { x: x(at), y: bottom + 15, "text-anchor": anchor }, spec.x.format(at)));
  }
  svg.append(s("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: bottom, y2: bottom }));
  svg.append(s("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 2, "text-anchor": "middle" }, spec.x.label));
}

function hover(svg, spec, ranges, x, width, bottom, holder) {
  const cross = s("line", { class: "cross", y1: MARGIN.top, y2: bottom, visibility: "hidden" });
  svg.append(cross);
  let tip = null;
  const leave = () => { cross.setAttribute("visibility", "hidden"); tip?.remove(); tip = null; };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointermove", (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    if (at < MARGIN.left || at > width - MARGIN.right) { leave(); return; }
    const share = (at - MARGIN.left) / (width - MARGIN.right - MARGIN.left);
    const lines = spec.tip(ranges.xr[0] + share * (ranges.xr[1] - ranges.xr[0]));
    if (lines === null) { leave(); return; }
    cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
    if (tip === null) { tip = h("div", { class: "tip", "aria-hidden": "true" }); holder.append(tip); }
    replace(tip, h("b", {}, lines[0]), lines.slice(1).map((line) => h("div", {}, line)));
    tip.style.top = "14px";
    tip.style.left = at > width / 2 ? "" : `${at + 12}px`;
    tip.style.right = at > width / 2 ? `${width - at + 12}px` : "";
  });
}

// Returns the value that a curve of steps has at a place.
export const valueAt = (points, at) => nearest(points, at)?.[1];

// A line without axes for a cell of a table.
export function spark(points, label) {
  const svg = s("svg", { class: "spark", viewBox: "0 0 120 28", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const range = extent(points.map(([, b]) => b), true);
  if (range === null || points.length === 0) return svg;
  const last = points.at(-1)[0];
  const x = scaleOf(Math.min(0, points[0][0]), Math.max(last, 1), 2, 116, false);
  const y = scaleOf(...range, 25, 3, true);
  svg.append(s("path", { d: steps(points, x, y, last) }));
  return svg;
}
