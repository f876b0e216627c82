// Numbers and times as people read them. A unit always follows a number that has one.

const DASH = "–";

function significant(value, digits = 4) {
  const size = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, Math.min(digits, digits - size)));
}

// 0.00123 -> "1.230 ms"
export function latency(seconds) {
  if (!(seconds > 0) || !isFinite(seconds)) return DASH;
  for (const [unit, scale] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) {
    if (seconds >= scale) return `${significant(seconds / scale)} ${unit}`;
  }
  return `${significant(seconds / 1e-9)} ns`;
}

// The same for an axis, without zeros at the end: "2 ms".
const bare = (text) => text.replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
export const brief = (seconds) => bare(latency(seconds));

// A span for people: "4 ms", "12 s", "3 min 20 s", "2 h 5 min".
export function span(seconds) {
  if (seconds === null || seconds === undefined || !isFinite(seconds)) return DASH;
  const whole = Math.round(seconds);
  if (seconds > 0 && seconds < 0.1) return `${Number((seconds * 1e3).toPrecision(2))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function scaled(value, unit) {
  if (!(value > 0) || !isFinite(value)) return DASH;
  for (const [prefix, scale] of [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (value >= scale) return `${significant(value / scale)} ${prefix}${unit}`;
  }
  return `${significant(value)} ${unit}`;
}

export const speed = (flops) => scaled(flops, "FLOP/s");
export const briefSpeed = (flops) => bare(speed(flops));
export const count = (value) => (value === null || value === undefined ? DASH : Number(value).toLocaleString("en-US"));
export const percent = (share) => (share === null || share === undefined ? DASH : `${Math.round(share * 100)}%`);
export const times = (ratio) => (ratio > 0 && isFinite(ratio) ? `${significant(ratio, 3)}×` : DASH);

// "4 min ago"; the exact time is in the title of time().
export function ago(unix, now = Date.now() / 1000) {
  if (!unix) return DASH;
  const seconds = Math.max(0, now - unix);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function exact(unix) {
  const pad = (number) => String(number).padStart(2, "0");
  const at = new Date(unix * 1000);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ` +
    `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
