{
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  const cases = all(".case");
  const tiles = new Map(all(".tile").map((tile) => [tile.getAttribute("href").slice(1), tile]));
  for (const one of cases) tiles.get(one.id).title = one.querySelector(".title").textContent;
  const form = byId("filter");
  const told = ".id, .title, .faults, .reason, dd:first-of-type";
  const words = new Map(cases.map((one) => [one, all(told, one).map((part) => part.textContent).join(" ").toLowerCase()]));
  const ticked = (name) => new Set(all(`input[name=${name}]:checked`, form).map((box) => box.value));
  const filter = () => {
    const outcomes = ticked("outcome"), severities = ticked("severity"), area = byId("area").value;
    const sought = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    let number = 0;
    for (const one of cases) {
      const its = one.parentElement.dataset.area;
      const isShown = outcomes.has(one.classList[1]) && severities.has(one.dataset.severity) && (!area || area === its)
        && sought.every((word) => words.get(one).includes(word));
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

  const copy = async (button, pre) => {
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
  };
  for (const pre of all("pre")) pre.tabIndex = 0;
  for (const pre of all("pre.command")) {
    const frame = document.createElement("div"), button = document.createElement("button");
    frame.className = "copied";
    Object.assign(button, { type: "button", textContent: "Copy", ariaLabel: "Copy the command" });
    button.addEventListener("click", () => copy(button, pre));
    pre.replaceWith(frame);
    frame.append(button, pre);
  }

  const seconds = (row) => {
    const text = row.cells[1].textContent;
    return parseFloat(text.replaceAll(",", "")) / (text.endsWith("ms") ? 1000 : 1);
  };
  for (const svg of all(".timeline[data-end]")) {
    const rows = all(".events tr[id]", svg.parentElement).map((row) => [row.id, seconds(row)]);
    if (!rows.length) continue;
    svg.classList.add("leads");
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = svg.dataset.end * ((event.clientX - box.left) / box.width - 0.01) / 0.98;
      const [id] = rows.reduce((near, row) => Math.abs(row[1] - at) < Math.abs(near[1] - at) ? row : near);
      location.hash = id;
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
}
