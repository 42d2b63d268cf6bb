import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Two hosts for tests of surfaces: at the one nobody listens, the other is this machine without a server in between. */
export const closedHost = "closed-box";
export const answeringHost = "here-box";

/**
 * Makes a folder for the front of PATH with an `ssh` in it. For `closed-box` it is the system's own ssh with a configuration
 * that leads to a closed port of 127.0.0.1; for `here-box` it gives the words that a shell there would read to a shell here, as
 * sshd does. While there is a file `cut`, it leads to the closed port as well. Every call is a line of the file `calls` there,
 * every process for `here-box` one of `pids`. Real servers are tested in test/targets.
 */
export function makeStandInSsh(dir: string): string {
  mkdirSync(join(dir, "bin"), { recursive: true });
  const config = join(dir, "ssh_config");
  writeFileSync(config, `Host ${closedHost} ${answeringHost}\n  HostName 127.0.0.1\n  Port 9\n`);
  const script = `#!/bin/sh
printf '%s\\n' "$*" >> '${join(dir, "calls")}'
last=""
for word in "$@"; do
  if [ "$word" = -G ] || [ "$word" = -O ]; then exec /usr/bin/ssh -F '${config}' "$@"; fi
  if [ "$last" = "${answeringHost}" ] && [ ! -e '${join(dir, "cut")}' ]; then
    echo $$ >> '${join(dir, "pids")}'
    exec /bin/sh -c "$word"
  fi
  last="$word"
done
exec /usr/bin/ssh -F '${config}' "$@"
`;
  writeFileSync(join(dir, "bin", "ssh"), script, { mode: 0o755 });
  return join(dir, "bin");
}
