// Requests to the service, and elements. Whatever comes back is put into pages as text, never as markup.

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `the service answered ${status}`);
    this.status = status;
    this.errors = told.errors || [];
  }
}

// The answer to a request as an object; a Problem if the service refused it or cannot be reached.
export async function ask(path, { method = "GET", body, type = "application/json", headers = {}, signal } = {}) {
  const given = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  if (given !== undefined) headers = { "Content-Type": type, ...headers };
  let answer;
  try {
    answer = await fetch(path, { method, body: given, headers, signal });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Problem(0, { detail: "the service cannot be reached" });
  }
  const text = await answer.text();
  let told = {};
  try {
    told = text ? JSON.parse(text) : {};
  } catch {
    told = { detail: "the service gave no JSON" };
  }
  if (!answer.ok) throw new Problem(answer.status, told);
  return told;
}

// An element with a class, text or children. Strings become text.
export function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "class") element.className = value;
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

export const at = (id) => document.getElementById(id);
export const number = (value) => Number(value).toLocaleString("en");

export function share(value) {
  if (value === null || value === undefined) return "-";
  const percent = value * 100;
  return `${percent >= 10 || percent === 0 ? percent.toFixed(0) : percent.toPrecision(2)} %`;
}

// A picture that the server drew: it is read as XML, and only shapes and texts are taken over.
const SHAPES = new Set(["svg", "g", "rect", "text", "title", "polyline"]);
const KEPT = new Set(["class", "viewBox", "role", "aria-label", "x", "y", "width", "height", "rx", "points"]);

export function picture(text) {
  const read = new DOMParser().parseFromString(text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '), "image/svg+xml");
  const copy = (from) => {
    const to = document.createElementNS("http://www.w3.org/2000/svg", from.localName);
    for (const { name, value } of from.attributes) if (KEPT.has(name)) to.setAttribute(name, value);
    for (const child of from.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) to.append(child.data);
      else if (SHAPES.has(child.localName)) to.append(copy(child));
    }
    return to;
  };
  return read.documentElement.localName === "svg" ? copy(read.documentElement) : make("p");
}
