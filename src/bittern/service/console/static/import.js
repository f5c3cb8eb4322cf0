// A file: looked at first, with every mistake and its place, and loaded then.

import { ask, at, make, number } from "./asking.js";

const MOST = 32 << 20;
const format = at("format");

function given() {
  return { format: format.value, text: at("text").value, lists: at("lists").value };
}

function say(text, kind = "") {
  at("said").textContent = text;
  at("said").className = kind;
}

async function look() {
  say("reading …");
  const table = at("preview");
  try {
    const found = await ask("/console/api/preview", { method: "POST", body: given() });
    say(`${number(found.good)} good, ${number(found.bad)} not`, found.bad ? "unknown" : "true");
    table.tBodies[0].replaceChildren(...found.rows.map(row));
    table.hidden = !found.rows.length;
    if (at("load")) at("load").disabled = !found.good;
  } catch (problem) {
    table.hidden = true;
    say(problem.message, "mistake");
  }
}

function row(each) {
  const isGood = each.problem === null;
  const text = make("td", {});
  if (each.expression) text.append(make("code", {}, each.expression));
  if (!isGood) {
    const place = each.position === null ? "" : `, position ${each.position}`;
    text.append(make("p", { class: "mistake" }, `${each.problem}${place}`));
  }
  const badge = make("span", { class: `badge ${isGood}` }, isGood ? "good" : "refused");
  return make("tr", {}, make("td", {}, badge), make("td", {}, each.id), text);
}

async function load() {
  at("load").disabled = true;
  say("loading …");
  try {
    const told = await ask("/console/api/import", { method: "POST", body: given() });
    say(`version ${number(told.version)}: ${number(told.added)} added, ${number(told.changed)} changed, ${number(told.unchanged)} unchanged`, "true");
  } catch (problem) {
    say(problem.message, "mistake");
  }
}

format.addEventListener("change", () => {
  at("lists-field").hidden = !format.dataset.lists.split(" ").includes(format.value);
});
at("file").addEventListener("change", async () => {
  const [file] = at("file").files;
  if (!file) return;
  if (file.size > MOST) {
    say("the file is too large for this page: use bittern import", "mistake");
    return;
  }
  at("text").value = await file.text();
  const ending = file.name.split(".").pop().toLowerCase();
  if (ending === "csv") format.value = "csv";
  look();
});
at("import").addEventListener("submit", (sent) => {
  sent.preventDefault();
  look();
});
at("load")?.addEventListener("click", load);
at("text").addEventListener("input", () => {
  if (at("load")) at("load").disabled = true;
});
