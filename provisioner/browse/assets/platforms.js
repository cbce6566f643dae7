/* One view for AMD's GPUs and one for Macs. Their verdicts were decided by the solver when this site was made, as those of the map. */
"use strict";

Site.pages.rocm = (_, query) => {
  const devices = Site.grid.devices.map((one, index) => ({ ...one, index })).filter((one) => Site.isAmd(one.index));
  const targets = [...new Set(devices.map((one) => one.target))];
  const products = (target) => Site.data.gpus.filter((gpu) => gpu.gfx === target).map((gpu) => gpu.name.replace(/^AMD /, ""));
  if (!targets.length) return [Site.element("h1", {}, "ROCm"), Site.element("p", {}, "This matrix has no GPU of AMD.")];
  const gpu = Site.select("rocm-gpu", [["", "all of AMD's GPUs"], ...targets.map((one) => [one, `${one} (${products(one).slice(0, 3).join(", ")}${products(one).length > 3 ? " …" : ""})`])], query.get("gpu") || "");
  const framework = Site.select("rocm-framework", Site.frameworks.filter((one) => Site.grid.builds.some((build) => build.component === one && build.accelerator === "rocm")).map((one) => [one, Site.title(one)]), query.get("framework") || "");
  const latest = Site.element("input", { type: "checkbox", id: "rocm-latest", checked: query.get("every") !== "1" });
  const map = Site.element("div", { id: "rocm-map" });
  const facts = Site.element("div", { id: "rocm-facts" });
  const show = (isFirst) => {
    Site.drawMap(map, { component: framework.value, across: "amd", target: gpu.value, driver: 0, platform: "linux/amd64", build: "", latest: latest.checked });
    facts.replaceChildren(...Site.rocmFacts(gpu.value).filter(Boolean));
    const words = Object.entries({ gpu: gpu.value, framework: framework.value, every: latest.checked ? "" : "1" }).filter(([, value]) => value);
    if (!isFirst) history.replaceState(null, "", `#/rocm?${new URLSearchParams(words)}`);
  };
  for (const control of [gpu, framework, latest]) control.addEventListener("change", () => show(false));
  show(true);
  const used = ["n", "o", "u", "x"];
  return [Site.element("h1", {}, "ROCm: framework × GPU of AMD"),
    Site.element("p", { class: "soft" }, "The amdgpu driver is left open, and chosen by the solver. Walk the map with the arrow keys; Enter opens the evidence of a cell."),
    Site.element("div", { class: "controls", role: "group", "aria-label": "What the map shows" }, Site.field("rocm-gpu", "GPU", gpu), Site.field("rocm-framework", "Framework", framework),
      Site.element("div", { class: "ticks" }, Site.element("label", {}, latest, "only the newest release of each series"))),
    Site.element("ul", { class: "legend", "aria-label": "Legend" }, used.map((letter) => Site.element("li", {}, Site.mark(letter), letter === "n" ? "runs" : Site.letters[letter].word.replace(/^is |:.*/g, "")))),
    map, facts];
};

/* What ROCm itself says: its releases with the driver and the GPUs that AMD supports, and the overrides that run others. */
Site.rocmFacts = (target) => {
  const rocm = Site.components.get("rocm");
  const rows = ((rocm && rocm.releases) || []).map((release) => {
    const supported = (release.builds || []).flatMap((build) => build.gfx || []);
    return { release, supported };
  }).filter((one) => !target || one.supported.includes(target));
  const overrides = Site.data.notes.filter((note) => note.kind === "override" && (!target || JSON.stringify(note).includes(`"${target}"`)));
  return [Site.element("h2", {}, target ? `Releases of ROCm that AMD supports ${target} with` : "Releases of ROCm"),
    rows.length ? Site.table("Releases of ROCm, the driver each needs, and the GPUs that AMD lists as supported", ["ROCm", "Released", "amdgpu", "Supported GPUs"], rows.map(({ release, supported }) => [Site.link(Site.route("components", "rocm", release.version), release.version), release.released || "", (release.needs || {}).amdgpu || "", supported.join(" ")]))
      : Site.element("p", {}, `AMD lists ${target} as supported with no release of ROCm. Wheels may be compiled for it nevertheless: the map above tells.`),
    ...(overrides.length ? [Site.element("h2", {}, "Overrides"), Site.element("p", { class: "soft" }, "A variable that runs a GPU as another target; AMD supports none of them."), Site.element("ul", { class: "found" }, overrides.map(Site.noteItem))] : [])];
};

Site.macWord = (one) => (one.platform === "macos/arm64" ? "Apple silicon" : one.gpu ? `Intel, with a GPU of NVIDIA of compute capability ${one.gpu}` : "Intel, on the CPU");
/* The kinds of Macs, each once, in the order in which the page lists them. */
Site.macKinds = () => [...new Map(Site.data.macs.macs.map((one) => [`${one.platform} ${one.gpu}`, { ...one, word: Site.macWord(one) }])).values()];

Site.pages.macs = (_, query) => {
  const { macs, builds, table, refusals } = Site.data.macs;
  const [kinds, word] = [Site.macKinds(), Site.macWord];
  const short = (one) => (one.platform === "macos/arm64" ? "Apple silicon" : one.gpu ? `Intel, NVIDIA ${one.gpu}` : "Intel");
  if (!macs.length) return [Site.element("h1", {}, "Macs"), Site.element("p", {}, "This matrix has no release of macOS.")];
  const kind = Site.select("mac-kind", kinds.map((one, index) => [String(index), word(one)]), query.get("mac") || "0");
  const framework = Site.select("mac-framework", [...new Set(builds.map((one) => one.component))].map((one) => [one, Site.title(one)]), query.get("framework") || "");
  const holder = Site.element("div", { id: "mac-result" });
  const show = (isFirst) => {
    const chosen = kinds[Number(kind.value)];
    const columns = macs.map((one, index) => ({ ...one, index })).filter((one) => one.platform === chosen.platform && one.gpu === chosen.gpu);
    const rows = builds.map((one, index) => ({ ...one, index })).filter((one) => one.component === framework.value && columns.some((column) => table[column.index][one.index] !== -2));
    const cell = (row, column) => {
      const verdict = table[column.index][row.index];
      if (verdict === -2) return Site.element("td", {});
      const why = verdict === -1 ? "runs" : `refused: ${refusals[verdict].join(", ")}`;
      return Site.element("td", { class: `cell ${verdict === -1 ? "n" : "x"}`, title: why }, verdict === -1 ? "✓" : "×", Site.element("span", { class: "quiet" }, ` ${why}`));
    };
    const named = (row) => `${row.build}${row.compiled ? ", from source" : ""}${row.needs.macos ? ` (macOS ${row.needs.macos})` : ""}`;
    const isNamedTwice = (row) => row.needs.python && rows.some((one) => one !== row && one.release === row.release && named(one) === named(row));
    const text = `${Site.title(framework.value)} on ${word(chosen)}, by release of macOS`;
    const running = rows.filter((row) => table[columns[0].index][row.index] === -1);
    const newest = running.find((row) => row.accelerator !== "cpu") || running[0];
    holder.replaceChildren(
      newest ? Site.element("p", { class: "verdict" }, Site.mark("n"), `${Site.title(newest.component)} ${newest.release} (${newest.build}) is the newest that runs on ${short(chosen)} with macOS ${columns[0].macos}.`)
        : Site.element("p", { class: "verdict no" }, Site.mark("x"), `No ${Site.title(framework.value)} of this matrix runs on ${short(chosen)} with macOS ${columns[0].macos}.`),
      rows.length ? Site.element("div", { class: "scroll tall", role: "region", tabindex: "0", "aria-label": text }, Site.element("table", { class: "map" }, Site.element("caption", {}, text),
        Site.element("thead", {}, Site.element("tr", {}, Site.element("th", { scope: "col" }, "Build"), columns.map((one) => Site.element("th", { scope: "col" }, one.macos.split(".").slice(0, one.macos.startsWith("10.") ? 2 : 1).join("."))))),
        Site.element("tbody", {}, rows.map((row) => Site.element("tr", {}, Site.element("th", { scope: "row" }, Site.link(Site.route("components", row.component, row.release), row.release), " ", Site.element("span", { class: "sub" }, named(row), isNamedTwice(row) ? `, Python ${row.needs.python}` : "")), columns.map((column) => cell(row, column)))))))
        : Site.element("p", {}, "No build is for it."),
      Site.element("h2", {}, "What lies below"),
      Site.element("ul", { class: "found" }, Site.data.rules.filter((rule) => /macos|apple|web-driver|xcode/.test(rule.name)).map(Site.ruleItem)));
    if (!isFirst) history.replaceState(null, "", `#/macs?${new URLSearchParams({ mac: kind.value, framework: framework.value })}`);
    Site.announce(`${text}: ${rows.length} builds`);
  };
  for (const control of [kind, framework]) control.addEventListener("change", () => show(false));
  show(true);
  return [Site.element("h1", {}, "Macs: framework × macOS"),
    Site.element("p", { class: "soft" }, "A release of macOS stands for its series, by the newest one in the matrix. On Apple silicon PyTorch uses the GPU through Metal (mps); on an Intel Mac a GPU of NVIDIA needs macOS 10.13 and a build from source."),
    Site.element("div", { class: "controls", role: "group", "aria-label": "What the table shows" }, Site.field("mac-kind", "Mac", kind), Site.field("mac-framework", "Framework", framework)), holder];
};
