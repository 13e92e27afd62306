// Sets the reader's choice of light or dark before the page is painted.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser may forbid storage: then there is no choice.
}
