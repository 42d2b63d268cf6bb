#!/bin/sh
# Stands in for ssh: the command that a remote shell would read is read by one of this machine.
case " $* " in *" -G "* | *" -O "*) exit 0 ;; esac
for last; do :; done
exec sh -c "$last"
