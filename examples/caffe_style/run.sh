#!/bin/sh
# run.sh LIBRARY SOLVER LAUNCHER...: the solver by MPI and by tacc, which must find the same loss, and the report of what was
# taken over.
library=$1 solver=$2
shift 2
command -v "$1" >/dev/null || { echo "skipped: there is no $1 on this machine"; exit 77; }
plain=$("$@" "$solver" 300 200 10) || { echo "$plain"; echo "failed: by MPI"; exit 1; }
taken=$("$@" env LD_PRELOAD="$library" TACC_MPI=report "$solver" 300 200 10 2>&1) || { echo "$taken"; echo "failed: by tacc"; exit 1; }
echo "$plain"
echo "$taken"
echo "$taken" | grep -Eq 'MPI_Allreduce +12 ' || { echo "failed: not all 12 calls were taken over"; exit 1; }
[ -n "${plain%%;*}" ] && echo "$taken" | grep -qF "${plain%%;*}" || { echo "failed: another loss"; exit 1; }
