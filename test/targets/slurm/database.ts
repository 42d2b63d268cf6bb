import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../../src/targets/spawn.ts";
import type { SlurmCluster } from "./cluster.ts";

/** A MariaDB on a socket only and a slurmdbd on 127.0.0.1, so that `sacct` remembers what the controller has forgotten. */
export async function startDatabase(cluster: SlurmCluster): Promise<void> {
  const [data, sockets] = [join(cluster.dir, "db"), join(cluster.dir, "dbrun")];
  const [uid, gid] = (await Promise.all(["-u", "-g"].map(async (which) => Number((await run(["/usr/bin/id", which, "mysql"])).stdout)))) as [number, number];
  for (const folder of [data, sockets]) {
    mkdirSync(folder, { mode: 0o755 });
    chownSync(folder, uid, gid);
  }
  const made = await run(["/usr/bin/mariadb-install-db", "--no-defaults", "--user=mysql", `--datadir=${data}`, "--auth-root-authentication-method=socket", "--skip-test-db"], { timeout: 120_000 });
  if (made.code !== 0) throw new Error(`mariadb-install-db: ${made.stderr}`);
  const socket = join(sockets, "my.sock");
  await cluster.daemon("mariadbd", ["/usr/sbin/mariadbd", "--no-defaults", "--user=mysql", `--datadir=${data}`, `--socket=${socket}`, `--pid-file=${join(sockets, "my.pid")}`, "--skip-networking", "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--skip-log-bin"]);
  const ask = (sql: string): ReturnType<typeof run> => run(["/usr/bin/mariadb", "--no-defaults", "-S", socket, "-e", sql], { timeout: 20_000 });
  await cluster.until("the database answers", async () => (await ask("select 1")).code === 0, 120);
  const told = await ask("create database slurm_acct; create user 'slurm'@'localhost' identified via mysql_native_password using password('x'); grant all on slurm_acct.* to 'slurm'@'localhost'");
  if (told.code !== 0) throw new Error(`mariadb: ${told.stderr}`);
  const file = join(cluster.dir, "slurmdbd.conf");
  writeFileSync(file, `AuthType=auth/munge
AuthInfo=socket=${cluster.dir}/munge/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=${cluster.accountingPort}
CommunicationParameters=NoInAddrAny
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct
PidFile=${cluster.dir}/run/slurmdbd.pid
`);
  chmodSync(file, 0o600);
  await cluster.daemon("slurmdbd", ["/usr/sbin/slurmdbd", "-D"], { MYSQL_UNIX_PORT: socket });
  await cluster.until("slurmdbd answers", async () => (await cluster.client(["sacctmgr", "-n", "list", "cluster"])).code === 0, 120);
  await cluster.client(["sacctmgr", "-i", "-Q", "add", "cluster", "ci"]);
}
