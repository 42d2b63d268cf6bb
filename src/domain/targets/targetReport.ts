import type { TargetReport } from "../../protocol/remote.ts";
import { t } from "../../util/l10n.ts";
import { formatBytes, formatDuration, formatNumber, formatPlural } from "../format.ts";

/** One line of what is known of a target; the command line prints them as a table, the editor as a tree. */
export interface ReportPart {
  kind: "problem" | "gpu" | "gpus" | "queue" | "queues" | "python" | "package" | "disk" | "versions" | "round-trip";
  label: string;
  text: string;
  /** `problem`: no stage can be started before this is mended. */
  level: "plain" | "warning" | "problem";
  /** Only of problems: decides what can be done about it. */
  reason?: TargetReport["problems"][number]["reason"];
  parts: ReportPart[];
}

/** What a target has, in the order in which it matters: what is missing, GPUs, queue, Python, disk, versions. What could not be told is not there. */
export function reportParts(report: TargetReport): ReportPart[] {
  const { problems, gpus, queue, python, disk, versions, roundTrip } = report;
  return [
    ...problems.map(({ reason, message }) => ({ ...part("problem", message, "", "problem"), reason })),
    ...(gpus === null ? [] : [gpusPart(gpus)]),
    ...(queue === null ? [] : [queuesPart(queue)]),
    ...(python === null ? [] : [pythonPart(python)]),
    ...(disk === null ? [] : [part("disk", t("Disk"), t("{0} free of {1}", formatBytes(disk.free), formatBytes(disk.total)), disk.total > 0 && disk.free / disk.total < 0.05 ? "warning" : "plain")]),
    ...(Object.keys(versions).length === 0 ? [] : [part("versions", t("Versions"), Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", "))]),
    ...(roundTrip === null ? [] : [part("round-trip", t("Round trip"), formatDuration(roundTrip / 1000))]),
  ];
}

/** `2 GPUs, 12 of 150 GB used · Python 3.11.2 · 40 ms`; of a target that does not answer, that. */
export function reportSummary(report: TargetReport): string {
  if (!report.reachable) return t("cannot be reached");
  const { problems, gpus, python, roundTrip } = report;
  return [
    ...(problems.length === 0 ? [] : [formatPlural(problems.length, "problem")]),
    ...(gpus === null ? [] : [gpus.length === 0 ? t("no GPU") : `${formatPlural(gpus.length, "GPU")}${memoryText(gpus)}`]),
    ...(python === null ? [] : [t("Python {0}", python.version)]),
    ...(roundTrip === null ? [] : [formatDuration(roundTrip / 1000)]),
  ].join(" · ");
}

type Gpus = NonNullable<TargetReport["gpus"]>;
type Queue = NonNullable<TargetReport["queue"]>;

function gpusPart(gpus: Gpus): ReportPart {
  if (gpus.length === 0) return part("gpus", t("GPUs"), t("none seen here"));
  return {
    ...part("gpus", t("GPUs"), `${gpus.length}${memoryText(gpus)}`),
    parts: gpus.map(({ name, total, used, utilisation }, index) =>
      part("gpu", `${index}: ${name}`, [...(total === null ? [] : [used === null ? formatBytes(total) : t("{0} of {1} used", formatBytes(used), formatBytes(total))]), ...(utilisation === null ? [] : [t("{0} % busy", formatNumber(utilisation, 0))])].join(" · ")),
    ),
  };
}

/** Together, and only where every one of them tells it. */
function memoryText(gpus: Gpus): string {
  const [total, used] = [sum(gpus.map((gpu) => gpu.total)), sum(gpus.map((gpu) => gpu.used))];
  if (total === null) return "";
  return `, ${used === null ? formatBytes(total) : t("{0} of {1} used", formatBytes(used), formatBytes(total))}`;
}

function queuesPart(queue: Queue): ReportPart {
  const running = sum(queue.map((one) => one.running));
  const waiting = sum(queue.map((one) => one.waiting));
  return {
    ...part("queues", t("Queue"), jobsText(running, waiting)),
    parts: queue.map(({ name, state, nodes, gpus, ...jobs }) =>
      part(
        "queue",
        name,
        [state, ...(nodes === null ? [] : [formatPlural(nodes, "node")]), ...(gpus === null || gpus === "" ? [] : [gpus]), jobsText(jobs.running, jobs.waiting)].filter((word) => word !== "").join(" · "),
        /^(up|idle|mixed|mix|alloc|allocated|alive)\b/i.test(state) ? "plain" : "warning",
      ),
    ),
  };
}

function jobsText(running: number | null, waiting: number | null): string {
  return [...(running === null ? [] : [t("{0} running", running)]), ...(waiting === null ? [] : [t("{0} waiting", waiting)])].join(", ");
}

function pythonPart({ path, version, packages }: NonNullable<TargetReport["python"]>): ReportPart {
  const missing = Object.values(packages).filter((found) => found === null).length;
  return {
    ...part("python", t("Python {0}", version), missing === 0 ? path : `${path} · ${t("{0} missing", formatPlural(missing, "package"))}`, missing === 0 ? "plain" : "warning"),
    parts: Object.entries(packages).map(([name, found]) => part("package", name, found ?? t("missing"), found === null ? "warning" : "plain")),
  };
}

function part(kind: ReportPart["kind"], label: string, text: string, level: ReportPart["level"] = "plain"): ReportPart {
  return { kind, label, text, level, parts: [] };
}

/** null where one of them is not known. */
function sum(values: readonly (number | null)[]): number | null {
  return values.every((value) => value !== null) ? values.reduce<number>((total, value) => total + (value ?? 0), 0) : null;
}
