import { hash } from "node:crypto";

/** Lower-case hex SHA-256 of a text's UTF-8 form or of bytes. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

/** SHA-256 as 32 latin1 characters, cheaper than a buffer. */
export function sha256Latin1(data: string | Uint8Array): string {
  return hash("sha256", data, "binary");
}
