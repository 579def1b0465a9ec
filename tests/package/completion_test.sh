#!/usr/bin/env bash
# completion_test.sh FILE FOLDERS_OF_PROGRAMS...: what bash offers after the beginning of a command.
set -u
source "$1"
shift
for folder; do PATH=$folder:$PATH; done
failed=0

# expect "COMMAND WITH A LAST WORD TO COMPLETE" WORDS...: in any order. An empty last word: "COMMAND ".
expect() {
  local line=$1 wanted
  shift
  read -ra COMP_WORDS <<<"$line"
  [[ $line != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _tacc "${COMP_WORDS[0]}"
  wanted=$(printf '%s\n' "$@" | sort)
  [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" = "$wanted" ] && return
  printf 'after "%s" bash offers: %s\ninstead of: %s\n' "$line" "${COMPREPLY[*]}" "$*"
  failed=1
}

expect 'tacc_bench all' allreduce allgather alltoall allgatherv alltoallv
expect 'tacc_bench c' conv
expect 'tacc_bench allreduce c' ''
expect 'tacc_bench allreduce --me' --memory
expect 'tacc_bench allreduce --memory ' private small-pages library
expect 'tacc_bench allreduce --json ' ''
expect 'tacc_bench conv --wi' --winograd
expect 'tacc_bench allreduce --wi' ''
expect 'tacc_tune --bud' --budget
expect 'tacc_tune allreduce reduces' reducescatter
expect 'tacc_plan s' show
expect 'tacc_plan show --alg' --algorithm
expect 'tacc_topo --so' --source --sources
expect 'tacc_info --js' --json
for program in tacc_bench tacc_tune tacc_plan tacc_topo tacc_info tacc_sim; do
  complete -p "$program" >/dev/null || failed=1
done
exit $failed
