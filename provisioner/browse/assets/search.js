/* The search over everything: GPUs by product, compute capability, `sm_61` or gfx target, packages, components, releases, rules, notes,
   images and sources. Answers appear while one types; the arrow keys walk through them, Enter opens one, or lists them all. */
"use strict";

/* What is written of a GPU's target in other places: 6.1 is sm_61 and compute_61, too. */
Site.targetWords = (target) => (target.startsWith("gfx") ? target : `${target} sm_${target.replace(".", "")} compute_${target.replace(".", "")} cc${target}`);

Site.entries = () => {
  const entry = (kind, title, route, names, text = "") => ({ kind, title, route, names: names.map((one) => one.toLowerCase()), text: `${kind} ${title} ${names.join(" ")} ${text}`.toLowerCase() });
  const targets = [...new Set(Site.data.gpus.map((gpu) => gpu.compute_capability || gpu.gfx).concat(Site.grid.devices.map((one) => one.target)))];
  const ofTarget = (target) => (target.startsWith("gfx") ? `rocm?gpu=${target}` : `host?gpu=${encodeURIComponent(target)}`);
  const architecture = (target) => Site.architectures.get(target) || "";
  return [
    ...targets.map((target) => entry("GPU target", target.startsWith("gfx") ? target : `Compute capability ${target} (sm_${target.replace(".", "")})`, ofTarget(target), Site.targetWords(target).split(" "), architecture(target))),
    ...Site.data.gpus.map((gpu) => entry("GPU", `${gpu.name} (${gpu.compute_capability || gpu.gfx})`, gpu.gfx ? `rocm?gpu=${gpu.gfx}` : `host?gpu=${encodeURIComponent(gpu.name)}`, [gpu.name, gpu.name.replace(/^(NVIDIA|AMD) (GeForce |Radeon |Instinct )?/, "")], `${Site.targetWords(gpu.compute_capability || gpu.gfx)} ${gpu.architecture || ""}`)),
    ...Site.data.packages.map((one) => entry("package", one.name, Site.route("packages", one.name), [one.name, one.name.replace(/-/g, "_"), one.name.replace(/-/g, "")])),
    ...Site.data.components.map((one) => entry("component", one.title, Site.route("components", one.name), [one.name, one.title])),
    ...Site.data.components.flatMap((one) => (one.releases || []).map((release) => entry("release", `${one.title} ${release.version}`, Site.route("components", one.name, release.version), [`${one.name} ${release.version}`, `${one.name}==${release.version}`, release.version], one.name))),
    ...Site.data.rules.map((rule) => entry("rule", rule.name, Site.route("rules", rule.name), [rule.name], rule.because)),
    ...Site.data.notes.map((note) => entry(note.kind, note.name, Site.route("notes", note.name), [note.name], Object.values(note).join(" "))),
    ...Site.data.images.map((image) => entry("image", image.reference, "components/image", [image.reference])),
    ...Object.entries(Site.data.citations).map(([key, one]) => entry("source", one.title, Site.route("sources", key), [], `${key} ${one.where || ""}`)),
    ...Site.macKinds().map((one, index) => entry("Mac", one.word, `macs?mac=${index}`, one.platform === "macos/arm64" ? ["M1", "M2", "M3", "M4", "M5"] : ["intel mac", "mac intel"], one.platform === "macos/arm64" ? "mac mps metal arm64" : `mac x86_64 ${one.gpu ? Site.targetWords(one.gpu) : ""}`)),
    ...Site.views.map(([route, title, text]) => entry("view", title, route, [title], text)),
  ];
};
Site.views = [["rocm", "ROCm", "amd gpus builds radeon instinct"], ["macs", "Macs", "macos apple silicon mps metal intel"], ["mine", "My files", "lock host fleet drop"], ["map", "Heat map", "cuda driver gpu"]];

/* Found entries, the nearest first: a whole name, then the start of one, then all words anywhere, in the order above. */
Site.search = (asked) => {
  const wanted = asked.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  Site.all = Site.all || Site.entries();
  const rank = (one) => (one.names.includes(wanted) ? 0 : one.names.some((name) => name.startsWith(wanted)) ? 1 : one.names.some((name) => name.includes(wanted)) ? 2 : 3);
  return Site.all.filter((one) => words.every((word) => one.text.includes(word))).map((one, index) => ({ one, index, rank: rank(one) }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index).map(({ one }) => one);
};

Site.pages.search = (_, query) => {
  const asked = query.get("q") || "";
  const found = Site.search(asked);
  const shown = found.slice(0, 200);
  Site.announce(`${found.length} found`);
  if (!found.length) return [Site.element("h1", {}, asked.trim() ? `Search: ${asked}` : "Search"),
    Site.element("p", {}, asked.trim() ? "Nothing found: no row of this matrix has all of these words." : "What are you looking for?"),
    Site.element("p", { class: "soft" }, "Search for a GPU by its product name (RTX 4090), compute capability (8.9, sm_89) or gfx target, for a release (cuda 12.6), a Python package (flash-attn), or words of a rule, a note or a source.")];
  return [Site.element("h1", {}, `Search: ${asked}`),
    Site.element("p", {}, found.length > shown.length ? `${found.length} found; the nearest ${shown.length}` : `${found.length} found`),
    Site.element("ul", { class: "found" }, shown.map((one) => Site.element("li", {}, Site.link(one.route, one.title), Site.element("span", { class: "soft" }, ` ${one.kind}`))))];
};

/* The list under the field, as the ARIA practices have a combobox with a list: the focus stays in the field. */
Site.startSearch = (form, field, list) => {
  let at = -1;
  const close = () => { list.hidden = true; field.setAttribute("aria-expanded", "false"); field.removeAttribute("aria-activedescendant"); at = -1; };
  const mark = (index) => {
    at = index;
    [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === at)));
    if (at < 0) field.removeAttribute("aria-activedescendant");
    else { field.setAttribute("aria-activedescendant", list.children[at].id); list.children[at].scrollIntoView({ block: "nearest" }); }
  };
  const go = (route) => { close(); location.hash = `#/${route}`; };
  const show = () => {
    const found = Site.search(field.value);
    list.replaceChildren(...found.slice(0, 8).map((one, index) => Site.element("li", { role: "option", id: `found-${index}`, "aria-selected": "false", "data-route": one.route }, one.title, Site.element("span", { class: "soft" }, ` ${one.kind}`))));
    at = -1;
    list.hidden = !found.length;
    field.setAttribute("aria-expanded", String(Boolean(found.length)));
    field.removeAttribute("aria-activedescendant");
    if (field.value.trim()) Site.announce(`${found.length} found`);
  };
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    const last = list.children.length - 1;
    if (event.key === "Escape") { if (!list.hidden) event.preventDefault(); close(); return; }
    if (list.hidden || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    event.preventDefault();
    mark(event.key === "ArrowDown" ? (at === last ? -1 : at + 1) : at < 0 ? last : at - 1);
  });
  field.addEventListener("blur", close);
  list.addEventListener("mousedown", (event) => { event.preventDefault(); const item = event.target.closest("[role=option]"); if (item) go(item.dataset.route); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (at >= 0) go(list.children[at].dataset.route);
    else go(`search?${new URLSearchParams({ q: field.value })}`);
  });
};
