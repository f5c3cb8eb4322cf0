// Mistakes in an expression: each with its line, and a caret below the place.

export function mistakes(text, errors) {
  return errors.map(({ position, message }) => {
    const start = text.lastIndexOf("\n", position - 1) + 1;
    const end = text.indexOf("\n", position);
    const line = text.slice(start, end < 0 ? undefined : end);
    const from = Math.max(0, position - start - 50);
    return `${message}\n${line.slice(from, from + 80)}\n${" ".repeat(position - start - from)}^`;
  }).join("\n");
}
