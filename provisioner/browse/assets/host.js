/* The first page: state a host, read which stacks run on it. */
"use strict";
Site.pages = {};

Site.field = (id, label, control) => Site.element("div", { class: "field" }, Site.element("label", { for: id }, label), control);
Site.select = (id, options, value) => {
  const made = Site.element("select", { id }, options.map(([key, text]) => Site.element("option", { value: key }, text)));
  made.value = options.some(([key]) => key === value) ? value : options[0][0];
  return made;
};

/* A product by name, part of a name, `sm_86`, `8.6` or `gfx942`; null where that is none or several kinds. A Jetson has no device
   in the grid (-1): its driver is a part of Jetson Linux. */
Site.readGpu = (text) => {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const target = /^(?:sm|compute)_(\d+)(\d)[af]?$/.exec(wanted);
  const plain = target ? `${target[1]}.${target[2]}` : wanted;
  const byTarget = Site.grid.devices.findIndex((one) => one.target === plain);
  if (byTarget >= 0) return { device: byTarget, name: `GPU ${plain}` };
  const board = Site.data.gpus.find((gpu) => gpu.compute_capability === plain);
  if (board) return { device: Site.deviceOf(board), name: `GPU ${plain}` };
  const names = [wanted, `nvidia ${wanted}`, `nvidia geforce ${wanted}`, `amd ${wanted}`];
  const exact = names.map((name) => Site.data.gpus.find((gpu) => gpu.name.toLowerCase() === name)).find(Boolean);
  const asWords = (name) => name.toLowerCase().replace(/[^a-z0-9]+/g, " ");
  const partial = Site.data.gpus.filter((gpu) => ` ${asWords(gpu.name)} `.includes(` ${asWords(wanted).replace(/^nvidia /, "")} `)); // T4 is no T400, and a Tesla
  const kinds = new Set(partial.map((gpu) => Site.deviceOf(gpu)));
  const found = exact || (kinds.size === 1 ? partial[0] : null);
  return found ? { device: Site.deviceOf(found), name: found.name } : null;
};

Site.driverOptions = () => Site.grid.drivers.map((version, index) => [String(index), `${version.split(".")[0]} (${version})`]);

Site.pages.host = (_, query) => {
  const gpu = Site.element("input", { id: "host-gpu", list: "host-gpus", autocomplete: "off", spellcheck: "false", "aria-describedby": "host-gpu-hint", value: query.get("gpu") || "NVIDIA A100" });
  const list = Site.element("datalist", { id: "host-gpus" }, Site.data.gpus.map((one) => Site.element("option", { value: one.name }, one.compute_capability || one.gfx)));
  const profile = Site.select("host-profile", [["", "choose…"], ...Site.data.profiles.map((one) => [one.name, `${one.name}: ${one.gpu}`])], "");
  const stated = Site.grid.drivers.findIndex((version) => version.split(".")[0] === query.get("driver"));
  const driver = Site.select("host-driver", [["", "not installed yet"], ...Site.driverOptions()], stated < 0 ? "" : String(stated));
  const kernel = Site.select("host-kernel", [["", "not stated"], ...Site.grid.kernels.map((one) => [one, one])], query.get("kernel") || "");
  const platform = Site.select("host-platform", Object.keys(Site.grid.table).map((one) => [one, one]), query.get("platform") || "");
  const forward = Site.element("input", { type: "checkbox", id: "host-forward", checked: query.get("forward") === "1" });
  const ptx = Site.element("input", { type: "checkbox", id: "host-ptx", checked: query.get("ptx") === "1" });
  const result = Site.element("div", { id: "host-result" });
  const show = (isFirst) => {
    const read = Site.readGpu(gpu.value);
    gpu.setAttribute("aria-invalid", String(read === null || read.device < 0));
    if (read !== null && read.device < 0) {
      result.replaceChildren(Site.element("p", { class: "problem" }, `${read.name} is of a Jetson, whose driver is a part of Jetson Linux and of no branch on this page; \`provision init --profile jetson-orin\` writes a spec for one, to solve.`));
      return;
    }
    if (read === null) {
      result.replaceChildren(Site.element("p", { class: "problem" }, `“${gpu.value}” is no GPU this matrix knows, or several kinds of them; give its whole name, or its compute capability such as 8.6.`));
      return;
    }
    const host = { device: read.device, name: read.name, driver: driver.value === "" ? null : Number(driver.value), kernel: kernel.value, platform: platform.value, forward: forward.checked, ptx: ptx.checked };
    Site.tellHost(result, host);
    if (!isFirst) Site.remember(host, gpu.value);
  };
  profile.addEventListener("change", () => {
    const one = Site.data.profiles.find((candidate) => candidate.name === profile.value);
    if (one) { gpu.value = one.gpu; platform.value = one.platform; show(false); }
  });
  for (const control of [gpu, driver, kernel, platform, forward, ptx]) control.addEventListener("change", () => show(false));
  gpu.addEventListener("input", () => { if (Site.readGpu(gpu.value) && Site.gpus.has(gpu.value)) show(false); });
  show(true);
  return [
    Site.element("h1", {}, "What runs on this machine?"),
    Site.element("p", { class: "soft" }, "State what is known of a host. Each answer is a stack that the solver found, or the rule that refuses it."),
    Site.element("div", { class: "controls", role: "group", "aria-label": "The host" },
      Site.field("host-gpu", "GPU", [gpu, list, Site.element("span", { id: "host-gpu-hint", class: "quiet" }, "A product name, a compute capability such as 8.6, or a gfx target")]),
      Site.field("host-driver", "NVIDIA driver branch", driver), Site.field("host-kernel", "Linux kernel", kernel),
      Site.field("host-platform", "Platform", platform), Site.field("host-profile", "Or a known machine", profile),
      Site.element("div", { class: "ticks", role: "group", "aria-label": "What a spec may allow beyond the default" },
        Site.element("label", {}, forward, "allow forward compatibility (cuda-compat in the image)"),
        Site.element("label", {}, ptx, "allow PTX compiled at first start"))),
    result,
  ];
};

Site.remember = (host, gpu) => {
  const query = new URLSearchParams({ gpu });
  if (host.driver !== null) query.set("driver", Site.grid.drivers[host.driver].split(".")[0]);
  if (host.kernel) query.set("kernel", host.kernel);
  query.set("platform", host.platform);
  if (host.forward) query.set("forward", "1");
  if (host.ptx) query.set("ptx", "1");
  history.replaceState(null, "", `#/host?${query}`);
};

Site.tellHost = (result, host) => {
  const stacks = Site.stacks(host);
  const driverNote = (one) => (host.driver === null && !Site.isAmd(host.device) ? `, with driver ${Site.grid.drivers[one.driver]}` : "");
  const sentences = Site.frameworks.map((component) => {
    const of = stacks.filter((one) => one.component === component);
    const first = of.find((one) => one.runs);
    if (!of.length) return null;
    const text = first
      ? `${Site.buildName(first.build)} is the newest ${Site.title(component)} that ${first.code.letter === "u" ? "may run" : "runs"} on ${host.name}; it ${Site.letters[first.code.letter].word}${driverNote(first)}.`
      : `No ${Site.title(component)} of this matrix is known to run on ${host.name} like this.`;
    return { mark: first ? first.code.letter : "x", text };
  }).filter(Boolean);
  const notes = [];
  const version = host.driver === null ? null : Site.grid.drivers[host.driver];
  if (version && !Site.isAmd(host.device)) {
    notes.push(`Branch ${version.split(".")[0]} stands for its newest release in the matrix, ${version}; older ones may do less.`);
    if (host.kernel && !(Site.grid.documented[version] || []).includes(host.kernel)) notes.push(`Unverified: nobody documents driver ${version} on kernel ${host.kernel}. If both run there already, the verdicts hold.`);
  }
  if (Site.isAmd(host.device)) notes.push("AMD: the amdgpu driver is left open, and chosen by the solver.");
  if (!stacks.length) sentences.push({ mark: "x", text: `No framework build of this matrix is made for ${host.name} on ${host.platform}.` });
  const button = (one) => Site.element("button", { class: "row-button", type: "button", onclick: () => Site.showEvidence({ build: one.build, device: host.device, driver: one.driver, code: one.code }) },
    "why", Site.element("span", { class: "quiet" }, ` ${Site.buildName(one.build)}`));
  const runs = stacks.filter((one) => one.runs).map((one) => [
    `${Site.title(one.component)} ${one.release}`, Site.grid.builds[one.build].build,
    Site.toolkit(one.build),
    [Site.mark(one.code.letter), Site.letters[one.code.letter].word], button(one)]);
  const not = Site.folded(stacks.filter((one) => !one.runs)).map((group) => [
    `${Site.title(group[0].component)} ${group.length > 1 ? `${group[group.length - 1].release} … ${group[0].release}` : group[0].release}`,
    [Site.mark(group[0].code.letter), Site.letters[group[0].code.letter].word],
    (group[0].code.groups || []).map((one) => one.replace(/^rule /, "")).join(", "), button(group[0])]);
  result.replaceChildren(
    ...sentences.map((one) => Site.element("p", { class: one.mark === "x" ? "verdict no" : "verdict" }, Site.mark(one.mark), one.text)),
    notes.length ? Site.element("ul", { class: "notes" }, notes.map((note) => Site.element("li", {}, note))) : "",
    ...(runs.length ? [Site.element("h2", {}, stacks.some((one) => one.runs && one.code.letter === "u") ? "Runs, or may run where marked ?" : "Runs"), Site.table(`Stacks that run on ${host.name}`, ["Framework", "Build", "CUDA or ROCm", "How", "Evidence"], runs)] : []),
    ...(not.length ? [Site.element("h2", {}, "Does not run, or is not known to"), Site.table(`Releases that do not run on ${host.name}`, ["Framework", "Verdict of its newest build", "By", "Evidence"], not)] : []));
  Site.announce(sentences.map((one) => one.text).join(" "));
};

/* The CUDA or ROCm a build takes: one series, or its whole range. */
Site.toolkit = (build) => {
  const row = Site.rowOf(Site.grid.builds[build].component, build);
  const text = (row && (row.needs.cuda || row.needs.rocm)) || "";
  return text.replace(/^==/, "").replace(/\.\*$/, "");
};

/* Neighbours refused for the same reasons are one line. */
Site.folded = (stacks) => {
  const groups = [];
  for (const one of stacks) {
    const last = groups[groups.length - 1];
    if (last && last[0].component === one.component && last[0].code === one.code) last.push(one);
    else groups.push([one]);
  }
  return groups;
};
