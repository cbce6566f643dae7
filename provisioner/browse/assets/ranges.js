/* Versions and ranges as the matrix spells them; the same rules as provisioner/versions.py, which a test compares.
   A question that cannot be answered is "maybe", never a yes or a no. */
"use strict";

Site.number = (text) => {
  const found = /^v?(\d+(?:\.\d+)*)(.*)$/s.exec(String(text).trim().split("+")[0]);
  if (!found) return null;
  const release = found[1].split(".").map(Number);
  const post = /^[.-]?post(\d+)$/.exec(found[2]);
  return { release, post: post ? Number(post[1]) : 0, local: String(text).trim().split("+")[1] || "" };
};

Site.compare = (one, other) => {
  for (let index = 0; index < Math.max(one.release.length, other.release.length); index += 1) {
    const step = (one.release[index] || 0) - (other.release[index] || 0);
    if (step) return step;
  }
  return one.post - other.post;
};

/* Whether a version is in one clause of a range, such as `>=525.60.13` or `==12.*`; null for a clause that is none. */
Site.meets = (version, clause) => {
  const found = /^\s*(===|==|!=|<=|>=|~=|<|>)?\s*([^\s,<>=!~]+)\s*$/.exec(clause);
  const operator = (found && found[1]) || "==";
  const wanted = found && Site.number(found[2].replace(/\.\*$/, ""));
  if (!wanted || operator === "===") return null;
  const same = () => (!wanted.local || wanted.local === version.local) && wanted.release.every((part, index) => part === (version.release[index] || 0));
  const order = Site.compare(version, wanted);
  if (operator === "==") return same();
  if (operator === "!=") return !same();
  if (operator === "~=") return order >= 0 && wanted.release.slice(0, -1).every((part, index) => part === (version.release[index] || 0));
  return { ">=": order >= 0, "<": order < 0, "<=": order <= 0, ">": order > 0 }[operator];
};

/* Whether a value meets a need as the page's data spells it: `>=12,<13`, `8.0 or 9.0`, `open or proprietary`, `any version`. */
Site.allows = (need, value) => {
  if (need === "any version" || need === "*") return "yes";
  const answers = need.split(" or ").map((part) => {
    if (part.trim() === value) return true;
    const version = Site.number(value);
    if (!/\d/.test(part[0]) && !/^[<>=!~]/.test(part)) return /^[a-z]/i.test(part) ? false : null;
    if (!version) return null;
    const clauses = part.split(",").map((clause) => Site.meets(version, clause));
    if (clauses.includes(null)) return null;
    // A bare version in a list is that version alone; only a range compares by its numbers.
    return need.includes(" or ") && !/^[<>=!~]/.test(part) ? Site.compare(version, Site.number(part)) === 0 : clauses.every(Boolean);
  });
  if (answers.includes(true)) return "yes";
  return answers.includes(null) ? "maybe" : "no";
};
