// Completion of attribute names in a text: a list below it, for arrow keys, Enter, Tab and the mouse.

import { ask, make } from "./asking.js";

const NAME = /[\p{L}_][\p{L}\p{N}_.]*$/u;
const WORDS = new Set("and or not in is null like rlike between true false case when then else end exists forall set".split(" "));

export function complete(text, list) {
  let chosen = -1;
  let asked = 0;

  const close = () => {
    asked += 1;
    list.hidden = true;
    list.replaceChildren();
    chosen = -1;
    text.removeAttribute("aria-activedescendant");
  };

  const begun = () => {
    const before = text.value.slice(0, text.selectionStart);
    const quotes = before.split("'").length - 1;
    return quotes % 2 ? "" : (before.match(NAME) || [""])[0];
  };

  const take = (name) => {
    const start = text.selectionStart - begun().length;
    text.setRangeText(name, start, text.selectionStart, "end");
    close();
    text.dispatchEvent(new Event("input"));
    close();
    text.focus();
  };

  const choose = (place) => {
    const items = [...list.children];
    chosen = (place + items.length) % items.length;
    items.forEach((item, own) => item.setAttribute("aria-selected", own === chosen));
    items[chosen].scrollIntoView({ block: "nearest" });
    text.setAttribute("aria-activedescendant", items[chosen].id);
  };

  const show = async () => {
    const start = begun();
    if (!start || WORDS.has(start.toLowerCase())) return close();
    asked += 1;
    const own = asked;
    let names;
    try {
      names = (await ask(`/console/api/attributes?start=${encodeURIComponent(start.slice(0, 200))}`)).names;
    } catch {
      return close();
    }
    if (own !== asked || begun() !== start) return undefined;
    names = names.filter((name) => name !== start);
    if (!names.length) return close();
    list.replaceChildren(...names.map((name, place) => {
      const item = make("li", { role: "option", id: `name-${place}`, "aria-selected": "false" }, name);
      item.addEventListener("mousedown", (pressed) => {
        pressed.preventDefault();
        take(name);
      });
      return item;
    }));
    list.hidden = false;
    return choose(0);
  };

  text.addEventListener("input", show);
  text.addEventListener("blur", close);
  text.addEventListener("keydown", (pressed) => {
    if (list.hidden || pressed.ctrlKey || pressed.metaKey) return;
    if (pressed.key === "ArrowDown") choose(chosen + 1);
    else if (pressed.key === "ArrowUp") choose(chosen - 1);
    else if (pressed.key === "Escape") close();
    else if (pressed.key === "Tab" || pressed.key === "Enter") take(list.children[chosen].textContent);
    else return;
    pressed.preventDefault();
  });
}
