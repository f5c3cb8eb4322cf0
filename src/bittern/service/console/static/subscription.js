// One subscription: saving, undoing, going back, removing. The page is drawn again after each.

import { ask, at } from "./asking.js";
import { mistakes } from "./mistakes.js";

const edit = at("edit");
const { id, version, there } = edit.dataset;
const path = `/v1/subscriptions/${encodeURIComponent(id)}`;

async function doing(work) {
  at("mistake").textContent = "";
  at("saved").textContent = "…";
  try {
    await work();
    location.reload();
  } catch (problem) {
    at("saved").textContent = "";
    const placed = problem.errors.filter((each) => each.message && each.position !== undefined);
    at("mistake").textContent = placed.length ? mistakes(at("expression").value, placed) : problem.message;
  }
}

function save() {
  const weight = at("weight").value.trim();
  const body = {
    expression: at("expression").value,
    subscriber: at("subscriber").value.trim() || null,
    weight: weight ? Number(weight) : null,
    enabled: at("enabled").checked,
  };
  // Only if nobody else has changed it since the page was drawn.
  if (there === "yes") return ask(path, { method: "PATCH", body, headers: { "If-Match": `"${version}"` } });
  return ask(path, { method: "PUT", body });
}

const undo = (body) => ask("/v1/undo", { method: "POST", body });

at("save")?.addEventListener("click", () => doing(save));
at("undo")?.addEventListener("click", () => doing(() => undo({ id })));
at("remove")?.addEventListener("click", () => doing(() => ask(path, { method: "DELETE", headers: { "If-Match": `"${version}"` } })));
for (const button of document.querySelectorAll("button.back")) {
  button.addEventListener("click", () => doing(() => undo({ id, version: Number(button.dataset.version) })));
}
document.addEventListener("keydown", (pressed) => {
  if ((pressed.ctrlKey || pressed.metaKey) && pressed.key === "s") {
    pressed.preventDefault();
    at("save")?.click();
  }
});
