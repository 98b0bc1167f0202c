// The light or the dark theme, as Cockpit's shell has it.

/** Sets the theme, and follows the choices of the shell and of the system. */
export function followTheme() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (style) => {
    const chosen = style ?? localStorage.getItem("shell:style") ?? "auto";
    const isDark = chosen === "dark" || (chosen === "auto" && dark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
  };
  window.addEventListener("storage", (event) => event.key === "shell:style" && set());
  window.addEventListener("cockpit-style", (event) => set(event.detail?.style));
  dark.addEventListener("change", () => set());
  set();
}
