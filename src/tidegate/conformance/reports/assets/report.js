"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.classList.add("js");

  const remember = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* not allowed here */ } };
  const recall = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const stored = recall();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  byId("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    remember(root.dataset.theme);
  });

  const cases = all(".case");
  const tiles = new Map(all(".tile").map((tile) => [tile.getAttribute("href").slice(1), tile]));
  const form = byId("filter");
  const ticked = (name) => new Set(all(`input[name=${name}]:checked`, form).map((box) => box.value));
  const filter = () => {
    const outcomes = ticked("outcome"), severities = ticked("severity"), area = byId("area").value;
    const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    let number = 0;
    for (const one of cases) {
      const { outcome, severity, area: its, text } = one.dataset;
      const isShown = outcomes.has(outcome) && severities.has(severity) && (!area || area === its)
        && words.every((word) => text.includes(word));
      one.hidden = !isShown;
      tiles.get(one.id)?.classList.toggle("faded", !isShown);
      number += isShown;
    }
    for (const section of all("section.area")) section.hidden = all(".case:not([hidden])", section).length === 0;
    byId("none").hidden = number > 0;
    byId("shown").textContent = `${number} of ${cases.length} cases`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  byId("open").addEventListener("click", () => cases.forEach((one) => { one.open = one.open || !one.hidden; }));
  byId("close").addEventListener("click", () => cases.forEach((one) => { one.open = false; }));
  filter();

  const reveal = () => {
    const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
      if (at.hidden) at.hidden = false;
    }
    for (const inner of target.matches("tr") ? [target.closest("details")] : []) inner.open = true;
    target.scrollIntoView({ block: target.matches("tr") ? "center" : "start" });
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) setTimeout(reveal);
  });
  reveal();

  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      const pre = button.parentElement.querySelector("pre");
      let isCopied = false;
      try {
        await navigator.clipboard.writeText(pre.textContent);
        isCopied = true;
      } catch {
        getSelection().selectAllChildren(pre);
        isCopied = document.execCommand("copy");
      }
      button.textContent = isCopied ? "Copied" : "Selected";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches?.("input, select, textarea")) {
      event.preventDefault();
      byId("text").focus();
    }
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all(".case.fail:not([open]):not([hidden])");
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
})();
