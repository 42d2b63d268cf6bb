import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import schema from "../../../media/seesaw.schema.json" with { type: "json" };
import { t } from "../../util/l10n.ts";
import { didYouMean } from "../../util/nearest.ts";
import { pointerOf, segmentsOf } from "./yamlSource.ts";

/** One finding about a value of the file: where it is (JSON pointer) and what is wrong, as a sentence with the fix. */
export interface SchemaProblem {
  pointer: string;
  part: "key" | "value";
  code: string;
  message: string;
}

let compiled: ValidateFunction | undefined;

/** The recipes that the schema knows. */
export const knownRecipes: readonly string[] = schema.definitions.stage.properties.recipe.enum;

/** Checks the value of a seesaw.yaml against the shipped schema. */
export function schemaProblems(value: unknown): SchemaProblem[] {
  if (compiled === undefined) {
    const ajv = new Ajv({ allErrors: true, verbose: true, discriminator: true, allowUnionTypes: true, strictRequired: false });
    ajv.addKeyword("errorMessage");
    compiled = ajv.compile(schema);
  }
  if (compiled(value)) return [];
  const errors = compiled.errors ?? [];
  // Of a value that fits no branch, the union's own sentence is enough; what each branch says against it is noise.
  const unions = errors.filter((error) => error.keyword === "anyOf");
  const inUnion = (error: ErrorObject): boolean => unions.some((union) => union !== error && `${error.instancePath}/`.startsWith(`${union.instancePath}/`) && error.keyword !== "anyOf");
  const problems = errors.filter((error) => error.keyword !== "propertyNames" && error.keyword !== "if" && !inUnion(error)).map((error) => problemOf(error, value));
  return [...new Map(problems.map((problem) => [`${problem.pointer} ${problem.message}`, problem])).values()];
}

function problemOf(error: ErrorObject, root: unknown): SchemaProblem {
  const { instancePath: pointer, keyword } = error;
  const params = error.params as Record<string, unknown>;
  const parent = (error.parentSchema ?? {}) as { errorMessage?: string; properties?: Record<string, { description?: string }> };
  const at = (code: string, message: string, part: "key" | "value" = "value", place = pointer): SchemaProblem => ({ pointer: place, part, code, message });
  if (keyword === "additionalProperties") {
    const key = String(params["additionalProperty"]);
    const known = Object.keys(parent.properties ?? {});
    const hint = didYouMean(key, known) || t(" Known keys: {0}.", known.join(", "));
    return at("unknown-key", t("Unknown key \"{0}\" in {1}.{2}", key, subjectName(pointer, root), hint), "key", pointer + pointerOf(key));
  }
  if (keyword === "required") {
    const key = String(params["missingProperty"]);
    const description = parent.properties?.[key]?.description;
    return at("missing-key", t("{0} has no \"{1}\": add it.{2}", upperFirst(subjectName(pointer, root)), key, description === undefined ? "" : ` ${description}`), "key");
  }
  if (error.propertyName !== undefined) {
    return at("bad-name", t("\"{0}\" in {1} is no usable name. {2}", error.propertyName, subjectName(pointer, root), parent.errorMessage ?? ""), "key", pointer + pointerOf(error.propertyName));
  }
  if (keyword === "discriminator") return kindProblem(pointer, params, error, root);
  const name = valueName(pointer, root);
  if (keyword === "enum") {
    const allowed = (params["allowedValues"] as unknown[]).map(String);
    const known = allowed.length === 1 ? t("The only one is {0}.", allowed[0] ?? "") : t("Known: {0}.", allowed.join(", "));
    return at("unknown-value", t("{0} is {1}, which is not known.{2} {3}", name, show(error.data), didYouMean(String(error.data), allowed), known));
  }
  if (parent.errorMessage !== undefined) return at(keyword === "pattern" ? "bad-name" : "bad-value", t("{0} is {1}. {2}", name, show(error.data), parent.errorMessage));
  if (keyword === "type") return at("wrong-type", t("{0} must be {1}, but it is {2}.", name, typeName(params["type"]), show(error.data)));
  if (keyword === "minItems" || keyword === "minLength" || keyword === "minProperties") return at("empty", t("{0} is empty: fill it in, or remove it.", name));
  return at("bad-value", boundText(name, error));
}

/** A number out of its bounds; anything else that a schema can say in its own words. */
function boundText(name: string, { message, data, params }: ErrorObject): string {
  const { comparison, limit } = params as { comparison?: string; limit?: number };
  if (limit !== undefined && comparison === ">=") return t("{0} must be at least {1}, but it is {2}.", name, limit, show(data));
  if (limit !== undefined && comparison === "<=") return t("{0} must be at most {1}, but it is {2}.", name, limit, show(data));
  if (limit !== undefined && comparison === ">") return t("{0} must be more than {1}, but it is {2}.", name, limit, show(data));
  if (limit !== undefined && comparison === "<") return t("{0} must be less than {1}, but it is {2}.", name, limit, show(data));
  return t("{0} {1}, but it is {2}.", name, message ?? t("is not valid"), show(data));
}

/** `check` without a kind, or with one that does not exist. */
function kindProblem(pointer: string, params: Record<string, unknown>, error: ErrorObject, root: unknown): SchemaProblem {
  const branches = (error.parentSchema as { oneOf?: { properties: { kind: { const: string } } }[] }).oneOf ?? [];
  const kinds = branches.map((branch) => branch.properties.kind.const);
  const value = params["tagValue"];
  if (value === undefined) return { pointer, part: "key", code: "missing-key", message: t("{0} has no \"kind\". Known: {1}.", upperFirst(subjectName(pointer, root)), kinds.join(", ")) };
  return { pointer: `${pointer}/kind`, part: "value", code: pointer.startsWith("/targets/") ? "unknown-value" : "unknown-check", message: t("{0} is {1}, which is not known.{2} {3}", valueName(`${pointer}/kind`, root), show(value), didYouMean(String(value), kinds), t("Known: {0}.", kinds.join(", "))) };
}

const containers: Record<string, (id: string) => string> = {
  stages: (id) => t("stage \"{0}\"", id),
  skills: (id) => t("skill \"{0}\"", id),
  buffers: (id) => t("buffer \"{0}\"", id),
  targets: (id) => t("target \"{0}\"", id),
};

/** The owner of a value (`stage "math"`; null: the file) and the rest of its path (`launch.kind`). */
function split(pointer: string, root: unknown): { owner: string | null; rest: string } {
  const [first, second, ...rest] = segmentsOf(pointer);
  if (first === undefined) return { owner: null, rest: "" };
  const kind = containers[first];
  if (kind === undefined || second === undefined) return { owner: null, rest: [first, ...(second === undefined ? [] : [second]), ...rest].join(".") };
  if (first !== "stages") return { owner: kind(second), rest: rest.join(".") };
  const id = (root as { stages?: { id?: unknown }[] }).stages?.[Number(second)]?.id;
  return { owner: typeof id === "string" ? kind(id) : t("stage {0}", Number(second) + 1), rest: rest.join(".") };
}

function subjectName(pointer: string, root: unknown): string {
  const { owner, rest } = split(pointer, root);
  if (rest === "") return owner ?? t("the file");
  return owner === null ? `"${rest}"` : t("\"{0}\" of {1}", rest, owner);
}

function valueName(pointer: string, root: unknown): string {
  return upperFirst(subjectName(pointer, root));
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const typeNames: Record<string, string> = {
  get object() { return t("a block of keys"); },
  get array() { return t("a list"); },
  get string() { return t("a text"); },
  get integer() { return t("a whole number"); },
  get number() { return t("a number"); },
  get boolean() { return t("true or false"); },
  get null() { return t("empty"); },
};

function typeName(type: unknown): string {
  return (Array.isArray(type) ? type : [type]).map((one) => typeNames[String(one)] ?? String(one)).join(t(" or "));
}

/** A value in a sentence: short texts and numbers as such, the rest by its type. */
function show(value: unknown): string {
  if (value === null || value === undefined) return t("empty");
  if (typeof value === "string") return value === "" ? t("empty") : `"${value.length > 60 ? `${value.slice(0, 57)}…` : value}"`;
  if (typeof value === "object") return Array.isArray(value) ? (value.length === 0 ? t("an empty list") : t("a list")) : Object.keys(value).length === 0 ? t("an empty block") : t("a block of keys");
  return String(value);
}
