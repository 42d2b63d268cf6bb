import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import schema from "../../../media/seesaw.schema.json" with { type: "json" };
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
    const hint = didYouMean(key, known) || ` Known keys: ${known.join(", ")}.`;
    return at("unknown-key", `Unknown key "${key}" ${placeName(pointer, root)}.${hint}`, "key", pointer + pointerOf(key));
  }
  if (keyword === "required") {
    const key = String(params["missingProperty"]);
    const description = parent.properties?.[key]?.description;
    return at("missing-key", `${upperFirst(subjectName(pointer, root))} has no "${key}": add it.${description === undefined ? "" : ` ${description}`}`, "key");
  }
  if (error.propertyName !== undefined) {
    return at("bad-name", `"${error.propertyName}" ${placeName(pointer, root)} is no usable name. ${parent.errorMessage ?? ""}`, "key", pointer + pointerOf(error.propertyName));
  }
  if (keyword === "discriminator") return kindProblem(pointer, params, error, root);
  const name = valueName(pointer, root);
  if (keyword === "enum") {
    const allowed = (params["allowedValues"] as unknown[]).map(String);
    const known = allowed.length === 1 ? `The only one is ${allowed[0]}.` : `Known: ${allowed.join(", ")}.`;
    return at("unknown-value", `${name} is ${show(error.data)}, which is not known.${didYouMean(String(error.data), allowed)} ${known}`);
  }
  if (parent.errorMessage !== undefined) return at(keyword === "pattern" ? "bad-name" : "bad-value", `${name} is ${show(error.data)}. ${parent.errorMessage}`);
  if (keyword === "type") return at("wrong-type", `${name} must be ${typeName(params["type"])}, but it is ${show(error.data)}.`);
  if (keyword === "minItems" || keyword === "minLength" || keyword === "minProperties") return at("empty", `${name} is empty: fill it in, or remove it.`);
  return at("bad-value", `${name} ${error.message ?? "is not valid"}, but it is ${show(error.data)}.`.replace("must be >= ", "must be at least ").replace("must be <= ", "must be at most ").replace("must be > ", "must be more than ").replace("must be < ", "must be less than "));
}

/** `check` without a kind, or with one that does not exist. */
function kindProblem(pointer: string, params: Record<string, unknown>, error: ErrorObject, root: unknown): SchemaProblem {
  const branches = (error.parentSchema as { oneOf?: { properties: { kind: { const: string } } }[] }).oneOf ?? [];
  const kinds = branches.map((branch) => branch.properties.kind.const);
  const value = params["tagValue"];
  if (value === undefined) return { pointer, part: "key", code: "missing-key", message: `${upperFirst(subjectName(pointer, root))} has no "kind". Known: ${kinds.join(", ")}.` };
  return { pointer: `${pointer}/kind`, part: "value", code: "unknown-check", message: `${valueName(`${pointer}/kind`, root)} is ${show(value)}, which is not known.${didYouMean(String(value), kinds)} Known: ${kinds.join(", ")}.` };
}

const containers: Record<string, string> = { stages: "stage", skills: "skill", buffers: "buffer", targets: "target" };

/** The owner of a value (`stage "math"`) and the rest of its path (`launch.kind`). */
function split(pointer: string, root: unknown): { owner: string; rest: string } {
  const [first, second, ...rest] = segmentsOf(pointer);
  if (first === undefined) return { owner: "the file", rest: "" };
  const kind = containers[first];
  if (kind === undefined || second === undefined) return { owner: "the file", rest: [first, ...(second === undefined ? [] : [second]), ...rest].join(".") };
  if (first !== "stages") return { owner: `${kind} "${second}"`, rest: rest.join(".") };
  const id = (root as { stages?: { id?: unknown }[] }).stages?.[Number(second)]?.id;
  return { owner: typeof id === "string" ? `stage "${id}"` : `stage ${Number(second) + 1}`, rest: rest.join(".") };
}

function subjectName(pointer: string, root: unknown): string {
  const { owner, rest } = split(pointer, root);
  return rest === "" ? owner : owner === "the file" ? `"${rest}"` : `"${rest}" of ${owner}`;
}

function valueName(pointer: string, root: unknown): string {
  return upperFirst(subjectName(pointer, root));
}

function placeName(pointer: string, root: unknown): string {
  return `in ${subjectName(pointer, root)}`;
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const typeNames: Record<string, string> = { object: "a block of keys", array: "a list", string: "a text", integer: "a whole number", number: "a number", boolean: "true or false", null: "empty" };

function typeName(type: unknown): string {
  return (Array.isArray(type) ? type : [type]).map((one) => typeNames[String(one)] ?? String(one)).join(" or ");
}

/** A value in a sentence: short texts and numbers as such, the rest by its type. */
function show(value: unknown): string {
  if (value === null || value === undefined) return "empty";
  if (typeof value === "string") return value === "" ? "empty" : `"${value.length > 60 ? `${value.slice(0, 57)}…` : value}"`;
  if (typeof value === "object") return Array.isArray(value) ? (value.length === 0 ? "an empty list" : "a list") : Object.keys(value).length === 0 ? "an empty block" : "a block of keys";
  return String(value);
}
