// The tree of an explanation: each node true, false or unknown, with the value that it met.

import { make } from "./asking.js";

const WORDS = new Map([[true, "true"], [false, "false"], [null, "unknown"]]);

export function tree(step) {
  return make("ul", { class: "tree" }, node(step));
}

function node(step) {
  const word = WORDS.get(step.truth);
  const said = [make("code", {}, step.text), " ", make("span", { class: `badge ${word}` }, word)];
  if (step.found) said.push(" ", make("span", { class: "met" }, step.found));
  if (step.construct) said.push(" ", make("span", { class: "met" }, `(${step.construct})`));
  if (!step.parts) return make("li", {}, ...said);
  const parts = make("ul", {}, ...step.parts.map(node));
  return make("li", {}, make("details", { open: "" }, make("summary", {}, ...said), parts));
}
