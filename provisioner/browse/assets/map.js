/* The heat map: builds down, driver branches or GPUs across; a grid that the arrow keys walk through. */
"use strict";

Site.pages.map = (_, query) => {
  const component = Site.select("map-framework", Site.frameworks.map((one) => [one, Site.title(one)]), query.get("framework") || "");
  const across = Site.select("map-across", [["driver", "driver branches, for one GPU"], ["gpu", "GPUs, for one driver branch"]], query.get("across") || "driver");
  const devices = Site.grid.devices.map((one, index) => [String(index), `${Site.deviceName(index)}${one.product ? ` (${one.product})` : ""}`]);
  const usual = Math.max(0, Site.grid.devices.findIndex((one) => one.target === "8.0" && one.kind === "datacenter"));
  const device = Site.select("map-device", devices, query.get("device") || String(usual));
  const drivers = Site.driverOptions();
  const driver = Site.select("map-driver", drivers, query.get("driver") || String(Math.max(0, Site.grid.drivers.findIndex((one) => one.startsWith("580.")))));
  const platform = Site.select("map-platform", Object.keys(Site.grid.table).map((one) => [one, one]), query.get("platform") || "");
  const build = Site.element("select", { id: "map-build" });
  const latest = Site.element("input", { type: "checkbox", id: "map-latest", checked: query.get("every") !== "1" });
  const holder = Site.element("div", { id: "map-holder" });
  const deviceField = Site.field("map-device", "GPU", device);
  const driverField = Site.field("map-driver", "Driver branch", driver);
  const show = (isFirst) => {
    const names = [...new Set(Site.grid.builds.filter((one) => one.component === component.value).map((one) => one.build))].sort().reverse();
    const kept = isFirst ? query.get("build") : build.value;
    build.replaceChildren(Site.element("option", { value: "" }, "all"), ...names.map((name) => Site.element("option", { value: name }, name)));
    build.value = names.includes(kept) ? kept : "";
    deviceField.hidden = across.value !== "driver";
    driverField.hidden = across.value !== "gpu";
    Site.drawMap(holder, { component: component.value, across: across.value, device: Number(device.value), driver: Number(driver.value), platform: platform.value, build: build.value, latest: latest.checked });
    if (!isFirst) {
      const state = { framework: component.value, across: across.value, platform: platform.value, build: build.value, every: latest.checked ? "" : "1" };
      const fixed = across.value === "driver" ? { device: device.value } : { driver: driver.value };
      const words = Object.entries({ ...state, ...fixed }).filter(([, value]) => value !== "");
      history.replaceState(null, "", `#/map?${new URLSearchParams(words)}`);
    }
  };
  for (const control of [component, across, device, driver, platform, build, latest]) control.addEventListener("change", () => show(false));
  show(true);
  return [
    Site.element("h1", {}, "Framework × CUDA × driver × GPU"),
    Site.element("p", { class: "soft" }, "Walk the map with the arrow keys; Enter opens the evidence of a cell, Escape closes it. Letters and patterns mean the same as colours."),
    Site.element("div", { class: "controls", role: "group", "aria-label": "What the map shows" },
      Site.field("map-framework", "Framework", component), Site.field("map-across", "Across", across), deviceField, driverField,
      Site.field("map-platform", "Platform", platform), Site.field("map-build", "Build", build),
      Site.element("div", { class: "ticks" }, Site.element("label", {}, latest, "only the newest release of each series"))),
    Site.element("ul", { class: "legend", "aria-label": "Legend" }, Object.entries(Site.letters).map(([letter, one]) => Site.element("li", {}, Site.mark(letter), one.word.replace(/^is |:.*/g, "")))),
    holder,
  ];
};

/* Rows and columns of the map as numbers. */
Site.mapShape = (view) => {
  const seen = new Set();
  const rows = Site.grid.builds.map((_, index) => index).filter((index) => {
    const one = Site.grid.builds[index];
    if (one.component !== view.component || (view.build && one.build !== view.build)) return false;
    if (one.platforms && one.platforms.length && !one.platforms.includes(view.platform)) return false;
    if (view.across === "driver" && !Site.serves(index, view.device)) return false;
    if (view.across === "amd" && one.accelerator !== "rocm") return false;
    const series = `${one.release.split(".").slice(0, 2).join(".")} ${one.build}`;
    if (view.latest && seen.has(series)) return false;
    seen.add(series);
    return true;
  });
  if (view.across === "driver") return { rows, columns: Site.isAmd(view.device) ? [{ device: view.device, driver: 0 }] : Site.grid.drivers.map((_, driver) => ({ device: view.device, driver })) };
  const used = Site.grid.devices.map((_, device) => device).filter((device) => rows.some((row) => Site.serves(row, device)) && (!view.target || Site.grid.devices[device].target === view.target));
  const chosen = used.filter((device, index) => used.findIndex((other) => Site.grid.devices[other].target === Site.grid.devices[device].target) === index);
  return { rows, columns: chosen.map((device) => ({ device, driver: view.driver })) };
};

Site.columnName = (view, column) => (view.across === "driver" ? (Site.isAmd(column.device) ? "amdgpu" : Site.grid.drivers[column.driver].split(".")[0]) : Site.grid.devices[column.device].target);

/* Above a branch the newest CUDA it knows itself, above a GPU its architecture. */
Site.columnGroup = (view, column) => {
  if (view.across !== "driver") return Site.architectures.get(Site.grid.devices[column.device].target) || "";
  const branch = Site.isAmd(column.device) ? null : Site.branches.get(Site.grid.drivers[column.driver].split(".")[0]);
  return branch ? branch.native_cuda : "";
};
Site.architectures = new Map(Site.data.gpus.filter((gpu) => gpu.architecture).map((gpu) => [gpu.compute_capability || gpu.gfx, gpu.architecture]));

/* Neighbouring columns of one group share a heading. */
Site.groupHeads = (view, columns) => {
  const heads = [];
  for (const column of columns) {
    const text = Site.columnGroup(view, column);
    const last = heads[heads.length - 1];
    if (last && last.text === text) last.width += 1;
    else heads.push({ text, width: 1 });
  }
  const label = view.across === "driver" ? "native CUDA" : "architecture";
  return Site.element("tr", {}, Site.element("th", { scope: "col", class: "sub" }, label), heads.map((head) => (head.text ? Site.element("th", { scope: "colgroup", colspan: head.width, class: "sub" }, head.text) : Site.element("td", { colspan: head.width }))));
};

Site.drawMap = (holder, view) => {
  const { rows, columns } = Site.mapShape(view);
  if (!rows.length) {
    holder.replaceChildren(Site.element("p", {}, "No build of this kind is in the matrix for that."));
    return;
  }
  const title = view.across === "driver"
    ? `${Site.title(view.component)} builds on a GPU ${Site.deviceName(view.device)}, by driver branch, ${view.platform}`
    : `${Site.title(view.component)} builds ${view.across === "amd" ? "on GPUs of AMD" : `with driver ${Site.grid.drivers[view.driver]}, by GPU`}, ${view.platform}`;
  const head = Site.element("tr", {}, Site.element("th", { scope: "col" }, "Build"), columns.map((column) => Site.element("th", { scope: "col" }, Site.columnName(view, column))));
  const body = rows.map((build, row) => {
    const one = Site.grid.builds[build];
    const isFirst = row > 0 && Site.grid.builds[rows[row - 1]].release !== one.release;
    return Site.element("tr", { class: isFirst ? "next" : false }, Site.element("th", { scope: "row" }, one.release, " ", Site.element("span", { class: "sub" }, one.build)),
      columns.map((column, index) => {
        const code = Site.serves(build, column.device) ? Site.cell(view.platform, column.device, build, column.driver) : null;
        const place = view.across === "driver" ? `driver ${Site.columnName(view, column)}` : `GPU ${Site.columnName(view, column)}`;
        const word = code ? Site.letters[code.letter].word : "not made for it";
        return Site.element("td", { class: code ? `cell ${code.letter}` : "cell", role: "gridcell", tabindex: row + index === 0 ? "0" : "-1", "aria-label": `${Site.buildName(build)}, ${place}: ${word}`, "aria-haspopup": code ? "dialog" : false, "data-build": build, "data-device": column.device, "data-driver": column.driver },
          code ? Site.letters[code.letter].mark : "");
      }));
  });
  const table = Site.element("table", { class: "map", role: "grid", "aria-label": title, "aria-readonly": "true" },
    Site.element("caption", {}, title), Site.element("thead", {}, Site.groupHeads(view, columns), head), Site.element("tbody", {}, body));
  table.addEventListener("keydown", (event) => Site.walk(event, table, view));
  table.addEventListener("click", (event) => { const cell = event.target.closest(".cell"); if (cell) { Site.stand(table, cell); Site.openCell(cell, view); } });
  holder.replaceChildren(Site.element("div", { class: "scroll tall" }, table));
  Site.announce(`${title}: ${rows.length} builds, ${columns.length} columns`);
};

Site.openCell = (cell, view) => {
  const [build, device, driver] = [cell.dataset.build, cell.dataset.device, cell.dataset.driver].map(Number);
  const code = Site.serves(build, device) ? Site.cell(view.platform, device, build, driver) : null;
  if (code) Site.showEvidence({ build, device, driver, code });
};

/* One cell is in the tab order: the one that was last stood on. */
Site.stand = (table, cell) => {
  table.querySelectorAll('.cell[tabindex="0"]').forEach((one) => { one.tabIndex = -1; });
  cell.tabIndex = 0;
  cell.focus();
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
};

Site.walk = (event, table, view) => {
  const cell = event.target.closest(".cell");
  if (!cell || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); Site.openCell(cell, view); return; }
  const lines = [...table.tBodies[0].rows].map((line) => [...line.cells].slice(1));
  const row = lines.findIndex((line) => line.includes(cell));
  const column = lines[row].indexOf(cell);
  const [bottom, right] = [lines.length - 1, lines[row].length - 1];
  const moves = {
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    Home: [event.ctrlKey ? 0 : row, 0], End: [event.ctrlKey ? bottom : row, right],
    PageUp: [row - 10, column], PageDown: [row + 10, column],
  };
  const move = moves[event.key];
  if (!move) return;
  event.preventDefault();
  const within = (value, most) => Math.min(most, Math.max(0, value));
  Site.stand(table, lines[within(move[0], bottom)][within(move[1], right)]);
};
