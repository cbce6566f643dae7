/* Files that are dropped on the page: locks, host profiles, rosters and Kubernetes nodes, read here and sent nowhere. Every value is
   kept as the text that was written, so that no version becomes a number. */
"use strict";

Site.fileLimit = 32 * 1024 * 1024;

/* One file as { locks, hosts }; raises an Error whose message says what is wrong. */
Site.readFile = (name, text) => {
  const lower = name.toLowerCase();
  if (lower.endsWith(".toml")) return { locks: [Site.readLock(name, TOML.parse(text))], hosts: [] };
  if (lower.endsWith(".csv")) return { locks: [], hosts: Site.readTable(text) };
  const data = lower.endsWith(".json") ? JSON.parse(text, Site.asWritten) : jsyaml.load(text, { schema: jsyaml.FAILSAFE_SCHEMA });
  Site.measure(data);
  return { locks: [], hosts: Site.readHosts(name, data) };
};

/* A number of a JSON document as it was written, where the browser tells that: 9.0 is a target, and 9 is none. */
Site.asWritten = (key, value, written) => (typeof value === "number" && written ? written.source : value);

/* Refuses a document that refers to itself, or whose aliases make it large or deep: YAML can say both in a few lines. */
Site.measure = (data) => {
  let left = 4e6;
  const walk = (value, depth) => {
    left -= 1;
    if (left < 0 || depth > 60) throw new Error("it refers to itself, or is too large");
    if (value !== null && typeof value === "object") for (const one of Object.values(value)) walk(one, depth + 1);
  };
  walk(data, 0);
};

Site.isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
Site.asText = (value) => (value === undefined || value === null || typeof value === "object" ? "" : String(value));
Site.asTable = (value) => (Site.isTable(value) ? value : {});
/* Entries as a table in which a key such as `constructor` is a key like any other. */
Site.tableOf = (entries) => Object.assign(Object.create(null), Object.fromEntries(entries));
Site.asList = (value) => (Array.isArray(value) ? value : []);

Site.readLock = (name, data) => {
  const own = Site.asTable(Site.asTable(data.tool).provision);
  const platforms = Site.asList(own.platforms).filter(Site.isTable);
  if (!platforms.length) throw new Error("it has no table tool.provision: it is no lock that `provision solve` wrote");
  const texts = (table) => Site.tableOf(Object.entries(Site.asTable(table)).map(([key, value]) => [key, Site.asText(value)]));
  return {
    name, digest: Site.asText(own["matrix-digest"]),
    packages: new Map(Site.asList(data.packages).filter(Site.isTable).map((one) => [Site.asText(one.name), Site.asText(one.version)])),
    platforms: platforms.map((one) => ({
      platform: Site.asText(one.platform), accelerator: Site.asText(one.accelerator), runs: Site.asText(one.runs), basis: Site.asText(one.basis),
      unverified: Site.asList(one.unverified).map(Site.asText), archList: Site.asList(one["arch-list"]).map(Site.asText),
      stack: texts(one.stack), needs: texts(one["host-requirements"]), environment: texts(one.environment),
      reasons: Site.tableOf(Site.asList(one["host-reasons"]).filter(Site.isTable).map((row) => [Site.asText(row.fact), Site.asList(row.reasons).filter(Site.isTable)])),
    })),
  };
};

/* Hosts as { name, count, facts }: a profile, a list of profiles, or the answer of `kubectl get nodes -o json`. */
Site.readHosts = (name, data) => {
  if (Site.isTable(data) && data.kind && (data.apiVersion || data.items)) return Site.readNodes(Site.asList(data.items || [data]).filter(Site.isTable));
  const items = Array.isArray(data) ? data : [data];
  return items.map((item, index) => {
    if (!Site.isTable(item)) throw new Error("it is neither a host profile nor a list of them");
    const facts = Site.tableOf(Object.entries(Site.isTable(item.host) ? item.host : item).filter(([key]) => Site.isTable(item.host) || !["name", "count"].includes(key)));
    const known = ["platform", "gpus", "driver", "os", "kernel"];
    if (!known.some((key) => key in facts)) throw new Error(`it states none of ${known.join(", ")}: it is no host profile`);
    return { name: Site.asText(item.name) || (items.length > 1 ? `${name} ${index + 1}` : name), count: Site.count(item.count), facts };
  });
};
Site.count = (value) => { const number = Math.floor(Number(Site.asText(value) || 1)); return number > 0 && number < 1e6 ? number : 1; };

/* A node by the labels of NVIDIA's and the kernel's feature discovery; what no label says is left unknown. */
Site.readNodes = (nodes) => {
  const isGpu = (labels, status) => Object.keys(labels).some((key) => /^(nvidia|amd)\.com\//.test(key)) || /"(nvidia|amd)\.com\//.test(JSON.stringify(status.capacity || {}));
  const read = nodes.map((node) => {
    const meta = Site.asTable(node.metadata);
    const labels = Object.fromEntries(Object.entries(Site.asTable(meta.labels)).map(([key, value]) => [key, Site.asText(value)]));
    return { name: Site.asText(meta.name), labels, status: Site.asTable(node.status) };
  });
  const anyGpu = read.some((one) => isGpu(one.labels, one.status));
  return read.map(({ name, labels, status }) => {
    const info = Site.asTable(status.nodeInfo);
    const facts = {};
    const architecture = labels["kubernetes.io/arch"] || Site.asText(info.architecture);
    if (architecture) facts.platform = `${labels["kubernetes.io/os"] || "linux"}/${architecture}`;
    if (info.kernelVersion) facts.kernel = Site.asText(info.kernelVersion);
    const version = labels["nvidia.com/cuda.driver-version.full"] || ["driver", "driver-version"].flatMap((stem) => {
      const parts = [labels[`nvidia.com/cuda.${stem}.major`], labels[`nvidia.com/cuda.${stem}.minor`], labels[`nvidia.com/cuda.${stem}.${stem === "driver" ? "rev" : "revision"}`]].filter(Boolean);
      return parts.length ? [parts.join(".")] : [];
    })[0];
    if (/^\d+\./.test(version || "")) facts.driver = { version };
    const product = labels["nvidia.com/gpu.product"];
    const target = labels["nvidia.com/gpu.compute.major"] ? `${labels["nvidia.com/gpu.compute.major"]}.${labels["nvidia.com/gpu.compute.minor"] || "0"}` : "";
    if (product || target) facts.gpus = [{ ...(product ? { name: product.replace(/-/g, " ") } : {}), ...(target ? { compute_capability: target } : {}), count: labels["nvidia.com/gpu.count"] || "1" }];
    const [amount, labelled] = [Number(Site.asText(Site.asTable(status.capacity)["nvidia.com/gpu"])), Number(labels["nvidia.com/gpu.count"])];
    const isShared = !["", "none", undefined].includes(labels["nvidia.com/gpu.sharing-strategy"]) || !["", "single", undefined].includes(labels["nvidia.com/mig.strategy"]);
    if (facts.gpus && amount > labelled && !isShared) facts.gpus.push({ name: "a GPU that no label describes", count: String(amount - labelled) });
    else if (!facts.gpus && anyGpu && !isGpu(labels, status)) facts.gpus = [];
    return { name, count: 1, facts };
  });
};

/* A roster as `provision fleet` reads it (provisioner/host/inventory_csv.py): one line a machine or `count` of them; a column is a key
   of a profile. What a column says that is not read here is kept as a fact, so that it is told as not compared. */
Site.readTable = (text) => {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).map((line, index) => ({ number: index + 1, cells: Site.cellsOf(line) }));
  const [{ cells: head }, ...rest] = lines;
  const body = rest.filter(({ cells }) => cells.some(Boolean));
  if (!head.some(Boolean) || !body.length) throw new Error("it has no lines under its heading");
  return body.map(({ number, cells }) => {
    if (cells.length !== head.length) throw new Error(`line ${number} has ${cells.length} cells, but there are ${head.length} columns`);
    const row = Site.tableOf(head.map((key, column) => [key, cells[column]]));
    const { name, count, driver, gpu, gpus, ...others } = row;
    const facts = Site.tableOf([]);
    for (const [key, value] of Object.entries(others)) if (value && !key.startsWith("driver.")) facts[key.split(".")[0]] = value;
    const version = driver || row["driver.version"];
    if (version) facts.driver = { version, ...(row["driver.module"] ? { module: row["driver.module"] } : {}), ...(row["driver.kind"] ? { kind: row["driver.kind"] } : {}) };
    const wanted = gpus || gpu || "";
    if (/^(none|0)$/i.test(wanted)) facts.gpus = [];
    else if (wanted) facts.gpus = wanted.split(";").map((one) => Site.gpuOfCell(one.trim()));
    return { name: name || `row ${number}`, count: Site.count(count), facts };
  });
};
Site.cellsOf = (line) => [...`,${line}`.matchAll(/,\s*(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((cell) => (cell[1] !== undefined ? cell[1].replace(/""/g, '"') : cell[2]).trim());
Site.gpuOfCell = (text) => {
  const [, count, name, target] = /^(?:(\d+) ?x ?)?(.*?)(?: \((\d+\.\d+|gfx[0-9a-f]+)\))?$/.exec(text);
  return { name, count: count || "1", ...(target ? { [target.startsWith("gfx") ? "gfx" : "compute_capability"]: target } : {}) };
};
