// What every page does: dark and light, and "/" goes to the search.

const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `bittern_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
});

document.addEventListener("keydown", (pressed) => {
  const typing = pressed.target.closest("input, textarea, select");
  const search = document.querySelector("[data-search]");
  if (pressed.key === "/" && !typing && search) {
    pressed.preventDefault();
    search.focus();
  }
});
