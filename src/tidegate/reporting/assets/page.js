"use strict";
{
  const root = document.documentElement;
  root.classList.add("js");
  const remember = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* not allowed here */ } };
  const recall = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const stored = recall();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    remember(root.dataset.theme);
  });
}
