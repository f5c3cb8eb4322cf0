// Matches as they arrive, through server-sent events; counters are asked for every second.

import { ask, at, make, number } from "./asking.js";
import { tree } from "./tree.js";

const KEPT = 200;
const SECONDS = 120;
const rows = at("rows");
let paused = false;
let fresh = [];
let passed = 0;
let drawing = false;
let source = null;

function matching(told) {
  const subscriber = at("subscriber").value.trim();
  const subscription = at("subscription").value.trim();
  return (!subscriber || told.subscriber === subscriber)
    && (!subscription || told.subscriptions.includes(subscription));
}

function connect() {
  source?.close();
  const asked = new URLSearchParams({ after: "now" });
  const subscription = at("subscription").value.trim();
  if (subscription) asked.set("subscription", subscription);
  source = new EventSource(`/v1/matches?${asked}`);
  source.onopen = () => state("live", "true");
  source.onerror = () => state("not connected", "false");
  source.onmessage = (message) => {
    let told;
    try {
      told = JSON.parse(message.data);
    } catch {
      return;
    }
    if (!matching(told)) return;
    passed += 1;
    if (paused) return;
    fresh.push(told);
    if (fresh.length > KEPT) fresh.splice(0, fresh.length - KEPT);
    if (!drawing) {
      drawing = true;
      requestAnimationFrame(draw);
    }
  };
}

function state(text, kind) {
  at("state").textContent = paused ? "paused" : text;
  at("state").className = `badge ${paused ? "unknown" : kind}`;
}

function draw() {
  drawing = false;
  const made = fresh.reverse().map(row);
  fresh = [];
  rows.prepend(...made);
  while (rows.children.length > KEPT) rows.lastElementChild.remove();
  count();
}

function count() {
  at("counted").textContent = `${number(passed)} ${passed === 1 ? "match" : "matches"} since the page was opened`;
}

function row(told) {
  const ids = told.subscriptions.slice(0, 5).join(", ") + (told.subscriptions.length > 5 ? ` and ${number(told.subscriptions.length - 5)} more` : "");
  const button = make("button", { class: "plain" }, number(told.number));
  const element = make("tr", {}, make("td", { class: "number" }, button), make("td", { class: "number" }, told.time.slice(11, 23)), make("td", {}, told.subscriber), make("td", {}, ids));
  element.addEventListener("click", () => inspect(told, element));
  return element;
}

function inspect(told, element) {
  for (const other of rows.querySelectorAll("[aria-selected]")) other.removeAttribute("aria-selected");
  element.setAttribute("aria-selected", "true");
  if (!paused) pause();
  const text = JSON.stringify(told.event, null, 1);
  const said = [
    make("h2", {}, `Event ${number(told.number)}`),
    make("p", { class: "hint" }, `${told.time}, version ${number(told.version)}`),
    make("pre", {}, text.length > 20_000 ? `${text.slice(0, 20_000)}…` : text),
  ];
  for (const id of told.subscriptions.slice(0, 20)) {
    const why = make("div");
    const button = make("button", { class: "plain" }, "Why");
    const link = make("a", { href: `/console/playground?${new URLSearchParams({ id, event: text.slice(0, 900) })}` }, id);
    if (text.length > 900) link.href = `/console/playground?${new URLSearchParams({ id })}`;
    button.addEventListener("click", async () => {
      try {
        const found = await ask("/v1/explain", { method: "POST", body: { event: told.event, id } });
        why.replaceChildren(tree(found.tree));
      } catch (problem) {
        why.replaceChildren(make("p", { class: "mistake" }, problem.message));
      }
    });
    said.push(make("p", {}, button, " ", link), why);
  }
  at("inspected").replaceChildren(...said);
}

function pause() {
  paused = !paused;
  at("pause").setAttribute("aria-pressed", String(paused));
  at("pause").firstChild.data = paused ? "Go on " : "Pause ";
  const open = source && source.readyState === EventSource.OPEN;
  state(open ? "live" : "not connected", String(Boolean(open)));
}

// ------------------------------------------------------------------ counters

const curves = { rate: [], matches: [], candidates: [], rejects: [] };
let before = null;

async function pulse() {
  if (!document.hidden) {
    try {
      const now = { ...(await ask("/console/api/pulse")), at: performance.now(), passed };
      if (before) {
        const seconds = (now.at - before.at) / 1000;
        const last = now.last;
        put("rate", (now.logged - before.logged) / seconds);
        put("matches", (now.passed - before.passed) / seconds);
        put("candidates", last.events ? last.candidates / last.events : 0);
        put("rejects", last.rejects || 0);
      }
      before = now;
      count();
    } catch { /* the badge says that it is not connected */ }
  }
  setTimeout(pulse, 1000);
}

function put(name, value) {
  const own = curves[name];
  own.push(value);
  if (own.length > SECONDS) own.shift();
  at(`${name}-now`).textContent = number(value >= 10 ? Math.round(value) : Number(value.toFixed(1)));
  const most = Math.max(...own, 1e-9);
  const points = own.map((each, place) => `${(240 - (own.length - 1 - place) * (240 / (SECONDS - 1))).toFixed(1)},${(48 - (46 * each) / most).toFixed(1)}`);
  at(`${name}-chart`).firstElementChild.setAttribute("points", points.join(" "));
}

at("pause").addEventListener("click", pause);
at("filters").addEventListener("submit", (sent) => {
  sent.preventDefault();
  rows.replaceChildren();
  passed = 0;
  before = null;
  connect();
});
document.addEventListener("keydown", (pressed) => {
  if (pressed.key.toLowerCase() === "p" && !pressed.ctrlKey && !pressed.metaKey && !pressed.altKey && !pressed.target.closest("input, textarea")) pause();
});
connect();
pulse();
