import { statfsSync } from "node:fs";

/** File system types (statfs) that other machines or another kernel share, where SQLite's shared memory is not safe. */
const networkTypes: ReadonlySet<number> = new Set([
  0x6969, // NFS
  0x517b, 0xff534d42, 0xfe534d42, // SMB, CIFS
  0x01021997, // 9p: Windows disks in WSL, virtual machine shares
  0x65735546, // FUSE: sshfs and others
  0x5346414f, 0x00c36400, 0x0bd00bd0, 0x47504653, // AFS, Ceph, Lustre, GPFS
  0x61756673, // not a network, but shared memory on aufs is not safe either
]);

/** Best effort: true where the folder is known to lie on a network disk. Unknown counts as local. */
export function isNetworkDisk(folder: string): boolean {
  if (process.platform === "win32") return folder.startsWith("\\\\");
  try {
    return networkTypes.has(statfsSync(folder).type >>> 0);
  } catch {
    return false;
  }
}
