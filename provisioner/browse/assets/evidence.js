/* The dialog behind a cell: the verdict, and every row and rule it rests on, with its sources. */
"use strict";

/* What a group of the solver means for one build, as { title, text, sources, route }. */
Site.reason = (group, build) => {
  if (group.startsWith("rule ")) {
    const rule = Site.rules.get(group.slice(5));
    if (rule) return { title: `Rule ${rule.name}`, text: Site.ruleText(rule), sources: rule.sources, route: Site.route("rules", rule.name) };
    return { title: group, text: [group], sources: [] };
  }
  const [subject, needed] = group.split(" needs ");
  const row = Site.rowOf(subject, build);
  if (!row || !needed) return { title: group, text: [group], sources: [] };
  return { title: `${row.name} needs ${Site.title(needed.split(" ")[0])}`, text: Site.needText(row, needed), sources: row.sources, route: row.route };
};

Site.ruleText = (rule) => [Site.needs(rule.when), ...(rule.on ? [" on ", Site.needs(rule.on)] : []), " needs ", Site.needs(rule.require), `: ${rule.because}.`];

/* The row behind a component for one build: the build itself, or the release that is chosen beside it. */
Site.rowOf = (component, index) => {
  const chosen = Site.grid.builds[index];
  const version = component === chosen.component ? chosen.release : chosen.beside[component];
  const release = version && Site.release(component, version.split("+")[0]);
  if (!release) return null;
  const platform = chosen.platforms && chosen.platforms[0];
  const named = (release.builds || []).filter((one) => component !== chosen.component || one.name === chosen.build);
  const build = named.find((one) => !platform || !one.platforms || one.platforms.includes(platform)) || named[0];
  return {
    name: `${Site.title(component)} ${version}${component === chosen.component && build ? ` ${build.name}` : ""}`,
    release, build,
    needs: { ...release.needs, ...(build && build.needs) },
    sources: [...(release.sources || []), ...((build && build.sources) || [])],
    route: Site.route("components", component, release.version),
  };
};

Site.targets = (build) => (build && (build.sass || build.gfx) ? [...(build.sass || []), ...(build.ptx || []), ...(build.gfx || [])].join(" ") : "");

Site.needText = (row, needed) => {
  if (needed.startsWith("gpu")) return [Site.targets(row.build) ? `It is compiled for ${Site.targets(row.build)}.` : "Nobody measured which GPUs it is compiled for."];
  if (needed.startsWith("driver for PTX")) return ["It reaches this GPU only through PTX, so the driver must know its CUDA itself."];
  if (needed === "driver" && row.release.driver) return [Site.minimums(row.release.driver)];
  return row.needs[needed] ? [Site.needs({ [needed]: row.needs[needed] })] : [`${needed} as stated there`];
};

Site.minimums = (driver) => [
  driver.minor_version && `driver ≥${driver.minor_version} by minor-version compatibility`,
  driver.toolkit && `its toolkit lists ${driver.toolkit}`,
  driver.forward_compat && `branches ${driver.forward_compat.join(", ")} by forward compatibility on data-centre GPUs`,
].filter(Boolean).join("; ");

Site.fact = (one, isAgainst) => Site.element("section", { class: isAgainst ? "fact against" : "fact" },
  Site.element("h3", {}, one.route ? Site.link(one.route, one.title) : one.title),
  Site.element("p", {}, one.text), Site.sources(one.sources));

/* What a verdict that is no refusal rests on: the build, its CUDA, and the driver's branch. */
Site.grounds = (build, device, driver) => {
  const grounds = [];
  const own = Site.rowOf(Site.grid.builds[build].component, build);
  if (own) grounds.push({ title: own.name, text: [Site.targets(own.build) ? `compiled for ${Site.targets(own.build)}` : "compiled targets not measured", "; needs ", Site.needs(own.needs)], sources: own.sources, route: own.route });
  const toolkit = Site.rowOf("cuda", build) || Site.rowOf("rocm", build);
  if (toolkit) grounds.push({ title: toolkit.name, text: [toolkit.release.driver ? Site.minimums(toolkit.release.driver) : Site.needs(toolkit.needs)], sources: toolkit.sources, route: toolkit.route });
  if (!Site.isAmd(device) && driver !== null) {
    const version = Site.grid.drivers[driver];
    const branch = Site.branches.get(version.split(".")[0]);
    const life = branch && branch.end_of_life ? `; end of life ${branch.end_of_life}` : "";
    const text = branch ? `natively runs CUDA up to ${branch.native_cuda}${branch.designation ? `; ${branch.designation}` : ""}${life}` : "nothing is stated about its branch";
    const release = Site.release("driver", version);
    grounds.push({ title: `NVIDIA driver ${version}`, text: [text], sources: [...((branch && branch.sources) || []), ...((release && release.sources) || [])], route: Site.route("components", "driver", version) });
  }
  return grounds;
};

Site.showEvidence = ({ build, device, driver, code }) => {
  const letter = Site.letters[code.letter];
  const isRefused = code.letter === "x";
  const product = Site.grid.devices[device].product;
  const where = `${Site.deviceName(device)}${product ? `, such as ${product}` : ""}${Site.isAmd(device) || driver === null ? "" : `; driver ${Site.grid.drivers[driver]}`}`;
  const against = (code.groups || []).map((group) => Site.fact(Site.reason(group, build), true));
  const dialog = document.getElementById("evidence");
  document.getElementById("evidence-body").replaceChildren(
    Site.element("h2", { id: "evidence-title" }, Site.buildName(build)),
    Site.element("p", { class: "soft" }, `on ${where}`),
    Site.element("p", { class: isRefused ? "verdict no" : "verdict" }, Site.mark(code.letter), `${letter.word}. ${letter.say}`, code.basis ? ` Its CUDA would run by this driver: ${code.basis}.` : ""),
    ...(against.length ? [Site.element("h3", {}, "Refused because"), ...against] : []),
    Site.element("h3", {}, isRefused ? "The rows compared" : "Because"),
    ...Site.grounds(build, device, driver).map((one) => Site.fact(one, false)));
  dialog.showModal();
  dialog.scrollTop = 0;
};
