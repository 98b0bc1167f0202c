// The findings of `identityctl check`, each with its remedy.
import { _, draw, element, format, mark, remedy, value } from "./elements.js";

const { cockpit } = window;
const KINDS = { ok: "good", info: "info", warning: "warning", failed: "bad", skipped: "none" };

/**
 * Runs the check, with administrative access where there is one.
 *
 * @returns a promise of its document; null if the client is not installed or says something else
 */
export function examine() {
  // cockpit.spawn() returns no native promise, and a check that finds a fault ends with another status than 0.
  return new Promise((done) => {
    const read = (output) => {
      try {
        const report = JSON.parse(output);
        done(Array.isArray(report.checks) && Array.isArray(report.findings) ? report : null);
      } catch {
        done(null);
      }
    };
    const command = cockpit.spawn(["identityctl", "check", "--json"], { superuser: "try", err: "ignore" });
    command.then(read, (_error, output) => read(output ?? ""));
  });
}

/** Draws the report, or that the check runs. */
export function drawHealth(page) {
  const { report, isChecking } = page;
  draw(document.getElementById("checks"), [isChecking, report?.checks, report?.findings], () => {
    if (isChecking || report === undefined) return element("p", { class: "quiet" }, _("Checking …"));
    if (report === null) {
      const text = _("The check did not answer. To run it:");
      return [element("p", {}, text), remedy("identityctl check")];
    }
    const inOrder = report.checks.filter(({ result }) => result === "ok").map(({ name }) => name);
    const skipped = new Map();
    for (const { name, result, reason } of report.checks) {
      if (result === "skipped") skipped.set(reason ?? "", [...(skipped.get(reason ?? "") ?? []), name]);
    }
    const findings = report.findings.map(findingElement);
    return [
      element("ul", {}, ...findings),
      line("good", inOrder),
      ...[...skipped].map(([reason, names]) => line("none", names, reason)),
    ].filter((part) => part !== null);
  });
}

function line(kind, names, reason = "") {
  if (names.length === 0) return null;
  const why = reason === "" ? [] : [": ", value(reason)];
  return element("p", { class: kind }, mark(kind), " ", value(names.join(", ")), ...why);
}

function findingElement(finding) {
  const kind = KINDS[finding.result] ?? "bad";
  const mend = Array.isArray(finding.mend) ? finding.mend : [];
  const follows = finding["symptom-of"];
  const cause = element("p", {}, mark(kind), " ", value(finding.check), ": ", value(finding.cause));
  const parts = [cause, ...mend.map((command) => remedy(command))];
  if (follows) parts.push(element("p", { class: "quiet" }, format(_("A consequence of: $0"), String(follows))));
  return element("li", { class: kind }, ...parts);
}
