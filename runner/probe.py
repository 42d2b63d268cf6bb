"""Says which Python this is and which packages it has: one JSON line that starts with {"seesaw_probe".

Nothing is imported but the standard library, so it answers in a moment and runs on any Python 3.
"""

import json
import sys

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors")


def versions(names):
    """{package: version, or None where it is missing}. Read from the installed metadata; nothing is imported."""
    try:
        from importlib import metadata
    except ImportError:  # Python 3.7 and older, which is too old anyway
        return dict.fromkeys(names)
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except Exception:  # damaged metadata is a missing package to us
            found[name] = None
    return found


def main():
    names = tuple(sys.argv[1:]) or PACKAGES
    answer = {
        "seesaw_probe": 1,
        "version": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "packages": versions(names),
    }
    # The line starts a line of its own, whatever sitecustomize or a wrapper script printed before.
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
