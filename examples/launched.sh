#!/bin/sh
# launched.sh LAUNCHER [ARGUMENTS] PROGRAM...: runs an example on 4 ranks and looks for the line that each must print, the sum
# or what EXPECTED says. Without the launcher the test is skipped.
expected=${EXPECTED:-of 4: the sum of all ranks is 6$}
command -v "$1" >/dev/null || { echo "skipped: there is no $1 on this machine"; exit 77; }
output=$("$@") || { echo "$output"; echo "failed: $*"; exit 1; }
echo "$output"
[ "$(echo "$output" | grep -c "$expected")" -ge 4 ] || { echo "failed: not 4 ranks with \"$expected\""; exit 1; }
