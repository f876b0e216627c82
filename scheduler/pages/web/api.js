// Asks the scheduler: JSON answers, and events while something changes.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function ask(path) {
  let answer;
  try {
    answer = await fetch(path, { headers: { accept: "application/json" }, credentials: "same-origin" });
  } catch {
    throw new Refused(0, "The scheduler does not answer. It may be stopped, or the network may be down.");
  }
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim() || answer.statusText);
  return answer.json();
}

export const query = (values) => {
  const set = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return set.length === 0 ? "" : `?${new URLSearchParams(set)}`;
};

// Calls `take(message)` for each event of the path. The browser connects again by itself, and names the last event
// that it has. `state(on)` tells whether the connection is there. Returns a function that ends it.
export function follow(path, take, state) {
  const source = new EventSource(path);
  source.onopen = () => state(true);
  source.onerror = () => state(false);
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.addEventListener("end", () => source.close());
  return () => source.close();
}
