/* Pages that list what there is: components, rules, sources, products, images, notes; and the search over all of them. */
"use strict";

Site.share = (one) => (one.rows ? `${Math.floor((100 * one.measured) / one.rows)} %` : "");

Site.pages.components = ([name, version]) => {
  const one = Site.components.get(name);
  if (one) return Site.componentPage(one, version);
  const rows = Site.data.components.map((row) => [Site.link(Site.route("components", row.name), row.title), row.name, String((row.releases || []).length), row.newest || "", Site.share(row), row.end_of_life || ""]);
  return [Site.element("h1", {}, "Components"),
    Site.element("p", { class: "soft" }, "In the order in which rules point: a component binds only those below it."),
    Site.table("Components of the matrix", ["Component", "Name", "Releases", "Newest", "Measured", "End of life"], rows)];
};

Site.componentPage = (one, version) => {
  const rules = Site.data.rules.filter((rule) => rule.when[one.name] !== undefined || (rule.require || {})[one.name] !== undefined);
  const branches = one.name === "driver" ? Site.data.branches : [];
  const images = one.name === "image" ? Site.data.images : [];
  return [
    Site.element("p", {}, Site.link("components", "Components")),
    Site.element("h1", {}, one.title),
    Site.pairs([["name", one.name], ["newest", one.newest], ["measured", Site.share(one)], ["provided by", one.virtual ? "the host" : ""], ["latest end of life", one.end_of_life]]),
    ...(branches.length ? [Site.element("h2", {}, "Branches"), Site.table("Driver branches", ["Branch", "Native CUDA", "Designation", "End of life"], branches.map((row) => [row.branch, row.native_cuda, row.designation || "", row.end_of_life || ""]))] : []),
    ...(rules.length ? [Site.element("h2", {}, "Rules"), Site.element("ul", { class: "found" }, rules.map(Site.ruleItem))] : []),
    ...(one.releases ? [Site.element("h2", {}, `Releases (${one.releases.length})`), Site.element("div", { class: "scroll" }, one.releases.map((release) => Site.releaseItem(one, release, version)))] : []),
    ...(images.length ? [Site.element("h2", {}, `Images (${images.length})`), Site.table("Base images", ["Image", "glibc", "CUDA", "cuDNN", "Demands of the host"], images.map((row) => [row.reference, row.glibc || "", row.cuda || "", row.cudnn || "", row.require_cuda || ""]))] : []),
  ];
};

Site.releaseItem = (component, release, opened) => Site.element("details", { open: release.version === opened, id: `release-${release.version}` },
  Site.element("summary", {}, Site.element("span", { class: "version" }, release.version),
    Site.element("span", { class: "soft" }, [release.released, [...new Set((release.builds || []).map((build) => build.name))].join(", ")].filter(Boolean).join(" · "))),
  Site.pairs([["released", release.released], ["end of life", release.end_of_life], ["PTX ISA", release.ptx_isa], ["platforms", (release.platforms || []).join(", ")],
    ["drivers", release.driver && Site.minimums(release.driver)], ["needs", release.needs && Site.needs(release.needs)], ["stands in", release.place]]),
  Site.sources(release.sources),
  (release.patched || []).map((patch) => [Site.element("p", {}, `kernel ${patch.kernel} with the patches of ${patch.by}`), Site.sources(patch.sources)]),
  (release.builds || []).map((build) => Site.element("section", { class: "fact" },
    Site.element("h3", {}, `${release.version} ${build.name}`),
    Site.pairs([["platforms", (build.platforms || []).join(", ")], ["needs", build.needs && Site.needs(build.needs)], ["compiled for", Site.targets(build)], ["index", build.index], ["installed as", build.install],
      ["artefact", build.artefact], ["SHA-256", build.sha256], ["binary", build.compiled ? "nobody publishes one: it is compiled from source" : ""]]),
    Site.sources(build.sources))));

Site.ruleItem = (rule) => Site.element("li", {}, Site.link(Site.route("rules", rule.name), rule.name), ": ", rule.because);

Site.pages.rules = ([name]) => {
  const rule = Site.rules.get(name);
  if (rule) return [Site.element("p", {}, Site.link("rules", "Rules")), Site.element("h1", {}, `Rule ${rule.name}`), Site.element("p", {}, Site.ruleText(rule)),
    Site.pairs([["stands in", rule.place]]), Site.element("h2", {}, "Sources"), Site.sources(rule.sources)];
  return [Site.element("h1", {}, `Rules (${Site.data.rules.length})`), ...Site.filtered(Site.data.rules, (one) => `${one.name} ${one.because}`, Site.ruleItem)];
};

Site.sourceItem = ([key, one]) => Site.element("li", {}, Site.element("span", { class: one.measured ? "badge measured" : "badge" }, one.measured ? "measured" : "read"),
  Site.link(Site.route("sources", key), one.title), one.where ? `, ${one.where}` : "");

Site.pages.sources = ([key]) => {
  const one = Site.data.citations[key];
  if (one) return [Site.element("p", {}, Site.link("sources", "Sources")), Site.element("h1", {}, one.title),
    Site.pairs([["key", key], ["where", one.where], ["address", one.url && Site.isAddress(one.url) ? Site.element("a", { href: one.url, rel: "noreferrer" }, one.url) : one.url], ["read", one.read], ["measured", one.measured ? "yes, from the artefact itself" : "no"]]),
    Site.element("h2", {}, `What it speaks for (${one.rows.length})`), Site.element("ul", { class: "found" }, one.rows.map((row) => Site.element("li", {}, Site.rowLink(row))))];
  const entries = Object.entries(Site.data.citations);
  const measured = entries.filter(([, source]) => source.measured).length;
  return [Site.element("h1", {}, `Sources (${entries.length}, ${measured} of them measured)`), ...Site.filtered(entries, ([name, source]) => `${name} ${source.title} ${source.where || ""}`, Site.sourceItem)];
};

/* A row as the matrix names it, as a link to where it is shown. */
Site.rowLink = (row) => {
  const [component, version] = row.split("==");
  if (version && Site.components.has(component)) return Site.link(Site.route("components", component, version.split("+")[0]), row);
  if (Site.rules.has(row)) return Site.link(Site.route("rules", row), row);
  if (Site.gpus.has(row)) return Site.link(`host?gpu=${encodeURIComponent(row)}`, row);
  if (Site.notes.has(row)) return Site.link(Site.route("notes", row), row);
  return row.startsWith("driver branch") ? Site.link("components/driver", row) : row;
};

Site.noteItem = (note) => Site.element("li", {}, Site.link(Site.route("notes", note.name), note.name), Site.element("span", { class: "soft" }, ` ${note.kind}`), ": ", note.cause || note.because || note.note || [note.os, note.branches && `branches ${note.branches.join(", ")}`].filter(Boolean).join(", "));

Site.pages.notes = ([name]) => {
  const named = Site.notes.get(name);
  const value = (one) => (Array.isArray(one) ? Site.element("ul", {}, one.map((text) => Site.element("li", {}, Site.element("code", {}, String(text))))) : typeof one === "object" ? Site.needs(one) : String(one));
  const one = (note) => Site.element("section", { class: "fact" },
    Site.pairs(Object.entries(note).filter(([key]) => key !== "name" && key !== "sources").map(([key, of]) => [key, value(of)])), Site.sources(note.sources));
  if (named) return [Site.element("p", {}, Site.link("notes", "Notes")), Site.element("h1", {}, name), named.map(one)];
  return [Site.element("h1", {}, `Notes (${Site.data.notes.length})`), Site.element("p", { class: "soft" }, "Known failures, environment variables, overrides, driver packages, and limits on Python packages."),
    ...Site.filtered(Site.data.notes, (one) => Object.values(one).join(" "), Site.noteItem)];
};

Site.filtered = (rows, text, item) => {
  const list = Site.element("ul", { class: "found" });
  const input = Site.element("input", { id: "filter", type: "search", autocomplete: "off" });
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => words.every((word) => text(row).toLowerCase().includes(word)));
    list.replaceChildren(...(found.length ? found.map(item) : [Site.element("li", { class: "soft" }, "Nothing here has all of these words.")]));
    if (words.length) Site.announce(`${found.length} found`);
  };
  input.addEventListener("input", show);
  show();
  return [Site.element("div", { class: "field filter" }, Site.element("label", { for: "filter" }, "Filter"), input), list];
};

Site.packageItem = (one) => Site.element("li", {}, Site.link(Site.route("packages", one.name), one.name));

Site.pages.packages = ([name]) => {
  const one = Site.packages.get(name);
  if (!one) return [Site.element("h1", {}, `Packages (${Site.data.packages.length})`), Site.element("p", { class: "soft" }, "Python distributions of which the matrix knows what their metadata does not say."), ...Site.filtered(Site.data.packages, (row) => row.name, Site.packageItem)];
  return [Site.element("p", {}, Site.link("packages", "Packages")), Site.element("h1", {}, name),
    one.component ? Site.element("p", {}, "It is the component ", Site.link(Site.route("components", one.component), Site.title(one.component)), ".") : "",
    ...(one.rows || []).map((row) => Site.element("section", { class: "fact" }, Site.element("h2", {}, row.title),
      Site.pairs(Object.entries(row).filter(([key]) => key !== "title" && key !== "sources").map(([key, value]) => [key, Site.plain(value)])), Site.sources(row.sources)))];
};
Site.plain = (value) => (Array.isArray(value) ? value.map(Site.plain).join(", ") : value !== null && typeof value === "object" ? Object.entries(value).map(([key, one]) => `${key} ${Site.plain(one)}`).join("; ") : String(value));
