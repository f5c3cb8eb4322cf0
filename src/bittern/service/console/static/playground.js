// The playground: a draft and an event, looked at as they are typed; the backtest; saving.

import { ask, at, make, number, picture, share } from "./asking.js";
import { complete } from "./completing.js";
import { mistakes } from "./mistakes.js";
import { tree } from "./tree.js";

const expression = at("expression");
const event = at("event");
const PAUSE = 180;
let waiting = 0;
let asking = null;
let isGood = false;

complete(expression, at("names"));

async function look() {
  asking?.abort();
  const own = (asking = new AbortController());
  const text = expression.value;
  if (!text.trim()) {
    isGood = false;
    at("mistake").textContent = "";
    at("verdict").textContent = "";
    return buttons();
  }
  let told;
  try {
    told = await ask("/console/api/draft", {
      method: "POST",
      body: { expression: text, event: event.value, filing: true },
      signal: own.signal,
    });
  } catch (problem) {
    if (problem.name === "AbortError") return undefined;
    at("mistake").textContent = problem.message;
    isGood = false;
    return buttons();
  }
  isGood = !told.errors.length;
  at("mistake").textContent = mistakes(text, told.errors);
  expression.setAttribute("aria-invalid", String(!isGood));
  at("event-mistake").textContent = told.event_error || "";
  if (isGood) {
    const verdict = told.matched === null ? "" : told.matched ? "matches" : "does not match";
    at("verdict").textContent = verdict;
    at("verdict").className = `badge ${told.matched}`;
    if (told.tree) at("tree").replaceChildren(tree(told.tree));
    if (told.filing) at("filing").replaceChildren(...filing(told.filing));
  }
  return buttons();
}

function filing(found) {
  if (found.problem) return [make("p", { class: "hint" }, found.problem)];
  const where = {
    pivot: `filed under ${found.pivots.join(", ")}`,
    bits: "kept in bitmaps, as its ranges are wide",
    always: "looked at for every event: no predicate can be looked up",
    never: "never looked at: no event can match it",
  }[found.strategy] || `filed by ${found.strategy}`;
  const rows = found.predicates.map(([text, part]) =>
    make("tr", {}, make("td", {}, make("code", {}, text)), make("td", { class: "number" }, share(part))));
  const said = [make("p", {}, make("strong", {}, where))];
  if (found.looked_at !== null) {
    said.push(make("p", {}, `Of the last ${number(found.events)} events, ${share(found.looked_at)} make it a candidate, ${share(found.matched)} match it.`));
    const head = make("tr", {}, make("th", {}, "Predicate"), make("th", {}, "True"));
    said.push(make("table", { class: "rows" }, make("thead", {}, head), make("tbody", {}, ...rows)));
  } else {
    said.push(make("p", { class: "hint" }, "No event has been published yet, so nothing is known of how often that is."));
  }
  return said;
}

function buttons() {
  if (at("save")) at("save").disabled = !isGood || !at("id").value.trim();
  at("backtest").disabled = !isGood;
}

function later() {
  clearTimeout(waiting);
  waiting = setTimeout(look, PAUSE);
  isGood = false;
  buttons();
}

async function save() {
  const id = at("id").value.trim();
  at("saved").textContent = "";
  try {
    const fields = { expression: expression.value };
    if (at("subscriber").value.trim()) fields.subscriber = at("subscriber").value.trim();
    const told = await ask(`/v1/subscriptions/${encodeURIComponent(id)}`, { method: "PUT", body: fields });
    const link = make("a", { href: `/console/live?${new URLSearchParams({ subscription: id })}` }, "watch it live");
    at("saved").replaceChildren(`saved as version ${number(told.version)}; `, link);
  } catch (problem) {
    at("mistake").textContent = problem.message;
  }
}

async function backtest() {
  const found = at("found");
  found.replaceChildren(make("p", { class: "hint" }, "reading events …"));
  at("backtest").disabled = true;
  const body = { expression: expression.value, last: Number(at("last").value) || 1, samples: 10 };
  if (at("source").value) body.file = at("source").value;
  if (at("time").value.trim()) body.time = at("time").value.trim();
  try {
    const told = await ask("/v1/backtest", { method: "POST", body });
    const drawn = told.hours.length
      ? await fetch("/console/api/hours", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ hours: told.hours }),
      }).then((answer) => (answer.ok ? answer.text() : ""))
      : "";
    found.replaceChildren(...result(told, drawn));
  } catch (problem) {
    found.replaceChildren(make("p", { class: "mistake" }, problem.message));
  }
  buttons();
}

function result(told, drawn) {
  const said = [make("p", { class: "big" }, "would have matched ", make("strong", {}, number(told.matches)), ` of the last ${number(told.events)}`)];
  if (told.unreadable) said.push(make("p", { class: "hint" }, `${number(told.unreadable)} more could not be read`));
  if (drawn) said.push(make("p", { class: "hint" }, "Matches per hour (UTC)"), picture(drawn));
  if (told.predicates.length) {
    const head = make("tr", {}, ...["Predicate", "True", "Rejects", "Alone"].map((name) => make("th", {}, name)));
    const rows = told.predicates.map((each) => {
      const text = make("td", {}, make("code", {}, each.text), " ");
      if (each.text === told.rejects_most) text.append(make("span", { class: "badge false" }, "rejects most"));
      return make("tr", {}, text, ...[each.true, each.rejects, each.alone].map((value) => make("td", { class: "number" }, number(value))));
    });
    said.push(make("table", { class: "rows" }, make("thead", {}, head), make("tbody", {}, ...rows)));
  }
  if (told.samples.length) {
    said.push(make("h2", {}, "Samples"));
    for (const sample of told.samples) {
      const text = JSON.stringify(sample.values);
      const button = make("button", { class: "plain" }, "Take it");
      button.addEventListener("click", () => {
        event.value = JSON.stringify(sample.values, null, 1);
        look();
        event.scrollIntoView({ block: "center" });
      });
      said.push(make("p", {}, button, " ", make("code", {}, text.length > 300 ? `${text.slice(0, 300)}…` : text)));
    }
  }
  return said;
}

async function newest() {
  try {
    const told = await ask("/console/api/event");
    if (told.event === null) {
      at("event-mistake").textContent = "no event has been published yet";
      return;
    }
    event.value = told.event;
    try {
      event.value = JSON.stringify(JSON.parse(told.event), null, 1);
    } catch { /* it stays as it is */ }
    look();
  } catch (problem) {
    at("event-mistake").textContent = problem.message;
  }
}

async function publish() {
  at("published").textContent = "";
  try {
    const told = await ask("/v1/events", { method: "POST", body: event.value });
    at("published").textContent = `event ${number(told.first)}: ${number(told.matches)} matches`;
  } catch (problem) {
    at("event-mistake").textContent = problem.message;
  }
}

for (const element of [expression, event]) element.addEventListener("input", later);
at("id").addEventListener("input", buttons);
at("save")?.addEventListener("click", save);
at("backtest").addEventListener("click", backtest);
at("newest").addEventListener("click", newest);
at("publish")?.addEventListener("click", publish);
document.addEventListener("keydown", (pressed) => {
  if (!(pressed.ctrlKey || pressed.metaKey)) return;
  const button = { s: at("save"), Enter: at("backtest") }[pressed.key];
  if (button === undefined) return;
  pressed.preventDefault();
  if (button && !button.disabled) button.click();
});
buttons();
if (expression.value.trim()) look();
if (!event.value.trim()) newest();
