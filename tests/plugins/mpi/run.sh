#!/bin/sh
# run.sh WHAT MPI PROGRAM LIBRARY [MORE]: runs a program on 1 to 4 ranks, as it is and with libtacc_mpi preloaded; or, for `counted`,
# `counts`, `learned`, `complaints`, `many_persistent`, `polled`, `contest`, `off`, `mixed`, `hosts`, `network`, `loaded`, `jumps`, `wrapped`, `spawned`, `drawn*`, `told_*`, `soak_comms`, `memory`, `fortran`,
# `fortran_f08` and `stranger`, what their parts below say. Skipped where the MPI is missing. By hand: TACC_TEST_SEEDS="1 2 3" for other draws.
what=$1 mpi=$2 program=$3 library=$4
case $mpi in
  mpich) launcher=mpiexec.mpich; command -v $launcher >/dev/null || launcher=mpiexec.hydra ;;
  openmpi) launcher="mpiexec.openmpi --oversubscribe --allow-run-as-root" ;;
esac
if [ "$what" = missing ] || ! command -v ${launcher%% *} >/dev/null; then
  echo "skipped: $mpi is not installed"
  exit 77
fi

fail() { echo "failed: $*"; echo "$output"; exit 1; }
# run RANKS COMMAND...: its output is in `output`; a rank that hangs ends it. Open MPI's help messages are no part of it.
run() {
  ranks=$1
  shift
  output=$(timeout -k 5 ${limit:-120} $launcher -n "$ranks" "$@" 2>&1) || fail "$* on $ranks ranks ends with $?"
}
preloaded() { ranks=$1; mode=$2; shift 2; run "$ranks" env LD_PRELOAD="$library" TACC_MPI="$mode" "$@"; }
says() { printf '%s\n' "$output" | grep -Eq -- "$1" || fail "nothing says: $1"; }
saysNot() { ! printf '%s\n' "$output" | grep -Eq -- "$1" || fail "this should not be said: $1"; }

case $what in
  corners*) export TACC_MPI_NONBLOCKING=65536 TACC_MPI_CONTEST=off ;;  # what only moves is taken over as sums are
  nonblocking*|persistent|unfinished|complaints) export TACC_MPI_NONBLOCKING=0 TACC_MPI_CONTEST=off ;;  # also those that are too small to gain
  communicators|many|messages|requests|threads|soak_comms|fortran*) export TACC_MPI_CONTEST=off ;;  # from the first call on
  sequences*|beside|in_place) export TACC_MPI_NONBLOCKING=0 TACC_MPI_CONTEST=off ;;
esac

# Open MPI 4.1 itself crashes in its MPI_Compare_and_swap of a rank with itself.
[ "$what" = beside ] && export OMPI_MCA_osc=^rdma

case $what in
  unfinished)  # requests that the program does not complete
    preloaded 2 report "$program" unfinished tacc 1
    says 'MPI_Iallreduce +1 +262144 +0  -$'
    preloaded 2 on "$program" unfinished tacc 2
    says 'tacc: MPI_Finalize on rank 0 of 2, with a request of MPI_Iallreduce that is not complete: '
    preloaded 2 on "$program" cancelled tacc
    says 'tacc: MPI_Iallreduce, rank 0 of 2: MPI_Cancel of a collective, which cannot be cancelled'
    says 'all right'
    ;;
  complaints)  # a thread is in an error handler of a communicator that another one frees, or frees it there
    preloaded 2 on "$program" complaints_threads tacc
    says 'all right|skipped'
    says 'tacc: MPI_Iallgatherv, rank [01] of 2: .*the counts of allgatherv differ|skipped'
    ;;
  polled)  # a request that is tested in vain, and an MPI that gives the core away where it can
    export OMPI_MCA_mpi_yield_when_idle=1
    preloaded 2 on "$program" polled tacc
    says 'all right'
    ;;
  memory)  # buffers that ranks share: those of MPI_Alloc_mem, and with MALLOC those of malloc too
    malloc=$5
    both() { ranks=$1; shift; run "$ranks" env LD_PRELOAD="$library:$malloc" TACC_MPI=report "$@"; }
    for seed in ${TACC_TEST_SEEDS:-1}; do
      for ranks in ${TACC_TEST_RANKS:-2 3}; do
        run $ranks "$program" $seed
        says 'all right'
        preloaded $ranks report "$program" $seed
        says 'all right'
        says '^# memory that ranks share: [1-9][0-9]* blocks, [1-9][0-9]+ bytes$'
        few=$(printf '%s\n' "$output" | sed -n 's/^# memory that ranks share: \([0-9]*\) .*/\1/p')
        both $ranks "$program" $seed
        says 'all right'
        many=$(printf '%s\n' "$output" | sed -n 's/^# memory that ranks share: \([0-9]*\) .*/\1/p')
        [ "$many" -gt $((2 * few)) ] || fail "of malloc no blocks are shared: $many in all, $few by MPI_Alloc_mem"
        both $ranks env TACC_SHM=file TACC_MPI_CONTEST=1 "$program" $seed
        says 'all right'
      done
    done
    # Where it is off, and in programs without MPI, malloc is as it was.
    run 2 env LD_PRELOAD="$library:$malloc" TACC_MPI=off "$program" 1
    says 'all right'
    saysNot 'tacc'
    output=$(LD_PRELOAD="$library:$malloc" sh -c 'seq 100000 | sort -n | tail -n 1' 2>&1)
    [ "$output" = 100000 ] || fail "a shell with the library preloaded"
    # Without the other library, it is only a malloc.
    run 2 env LD_PRELOAD="$malloc" "$program" 1
    says 'all right'
    # Where files may not be so long, blocks are ordinary memory.
    both 2 sh -c 'ulimit -f 400000; exec "$@"' sh "$program" 1
    says 'all right'
    saysNot 'memory that ranks share'
    ;;
  learned)  # how much is moved where each rank knows its own counts alone
    export TACC_MPI_NONBLOCKING=65536
    for ranks in 2 3; do
      preloaded $ranks report "$program" learned
      says 'MPI_Ialltoallv +43 .* 7  too small to gain: 2, not yet known how much others move: 5$'
      says 'all right'
    done
    export TACC_MPI_NONBLOCKING=0
    preloaded 2 report "$program" learned
    says 'MPI_Ialltoallv +50 .* 0  -$'
    ;;
  counts)  # more bytes in one call than an int counts: each of two ranks has that, and the library as much again at most
    free=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
    [ "$free" -ge 10000 ] || { echo "skipped: it takes 10,000 MiB of memory, and $free are free"; exit 77; }
    limit=280
    preloaded 2 report "$program" counts tacc 2200
    says 'all right'
    for name in Bcast Allreduce Reduce_scatter Allgatherv Gatherv Scatterv Alltoallv; do
      says "  MPI_${name}(_c)? +1 +[0-9]+ +0  -\$"
    done
    ;;
  counted)  # what the report says of calls whose numbers are known; 1000 doubles are 8000 bytes
    for ranks in 2 3; do
      preloaded $ranks report "$program" counted
      says "calls of rank 0 of $ranks\$"
      says 'MPI_Allreduce +7 +56000 +4  one rank alone: 1, type that tacc does not reduce: 2, other operation: 1$'
      says 'MPI_Bcast +2 +100 +0  -$'
      says 'MPI_Alltoall +1 +8000 +0  -$'
      says 'MPI_Barrier +3 +0 +0  -$'
      saysNot MPI_Gather
    done
    preloaded 1 report "$program" counted
    says 'MPI_Allreduce +0 +0 +11  one rank alone: 11$'
    # Communicators that do not pay for themselves.
    preloaded 4 report "$program" some_ranks
    says 'MPI_Allreduce +25 +100 +56  first calls of some of the ranks: 56$'
    says 'all right'
    preloaded 4 report env TACC_MPI_CONTEST=off "$program" some_ranks
    says 'MPI_Allreduce +81 +324 +0  -$'
    ;;
  contest)  # who serves a kind of call is measured, at its second call
    export TACC_MPI_CONTEST=1
    for part in calls communicators messages requests sequences; do
      preloaded 2 on "$program" $part mpi  # which may serve any of them
      says 'all right'
      saysNot 'tacc:'
    done
    # Blocks of functions with counts for each rank become longer, which is found when it is looked again.
    export TACC_MPI_CONTEST=3
    for ranks in 2 3; do
      preloaded $ranks report "$program" lengthened
      says 'all right'
      for name in Allgatherv Gatherv Scatterv Alltoallv Reduce_scatter; do
        says "  MPI_$name +[0-9]{1,3} +[0-9.]+ +[0-9.]+  (tacc|MPI)$"
        says "  MPI_$name +[0-9]{4,6} +[0-9.]+ +[0-9.]+  (tacc|MPI)$"
      done
    done
    # Where each rank knows the counts of all, short calls and long ones are compared by themselves.
    preloaded 2 report "$program" alternated
    says 'all right'
    says '  MPI_Allgatherv +8 +[0-9.]+ +[0-9.]+  (tacc|MPI)$'
    says '  MPI_Allgatherv +16384 +[0-9.]+ +[0-9.]+  (tacc|MPI)$'
    says '  MPI_Reduce_scatter +16 +[0-9.]+ +[0-9.]+  (tacc|MPI)$'
    says '  MPI_Reduce_scatter +32768 +[0-9.]+ +[0-9.]+  (tacc|MPI)$'
    # tacc's own messages between processes of one host take longer than MPI's, unless those wait for a core.
    export TACC_MPI_CONTEST=3 TACC_SHM=off TACC_TRANSPORT=tcp
    preloaded 2 report "$program" counted
    says '# compared +bytes +tacc us +MPI us  served by$'
    if printf '%s\n' "$output" | grep -Eq 'MPI_Allreduce +8000 +[0-9.]+ +[0-9.]+  MPI$'; then
      says 'MPI_Allreduce +3 +24000 +8  one rank alone: 1, .*, faster in MPI: 4$'
    else
      says 'MPI_Allreduce +8000 +[0-9.]+ +[0-9.]+  tacc$'
      says 'MPI_Allreduce +7 +56000 +4  one rank alone: 1, '
      saysNot 'faster in MPI'
    fi
    says 'MPI_Barrier +3 +0 +0  -$'
    preloaded 2 report env TACC_REPRODUCIBLE=on "$program" counted
    says 'MPI_Allreduce +7 +56000 +4 '
    saysNot compared
    preloaded 2 report env TACC_MPI_CONTEST=off "$program" counted
    says 'MPI_Allreduce +7 +56000 +4 '
    saysNot compared
    unset TACC_SHM TACC_TRANSPORT
    preloaded 2 report env TACC_MPI_CONTEST=0 "$program" counted
    says 'tacc: TACC_MPI_CONTEST is "0" on rank 0; it must be a number of calls, 1 or more, or off. All calls go to MPI'
    ;;
  off)
    preloaded 2 off "$program" counted
    saysNot tacc
    preloaded 2 onn "$program" counted
    says 'tacc: TACC_MPI is "onn" on rank 0; it must be on, off or report. All calls go to MPI'
    # Off on one rank is off on all.
    run 1 env LD_PRELOAD="$library" TACC_MPI=report "$program" counted : \
      -n 1 env LD_PRELOAD="$library" TACC_MPI=off "$program" counted
    says 'tacc: TACC_MPI is off on some ranks and on on others, so all calls go to MPI'
    says 'MPI_Barrier +0 +0 +3  switched off: 3$'
    # A communicator that some rank cannot make: all go on without.
    run 1 env LD_PRELOAD="$library" TACC_MPI=report "$program" counted : \
      -n 2 env LD_PRELOAD="$library" TACC_CMA=wrong "$program" counted
    says 'tacc: a communicator of 3 ranks stays with MPI, as rank 1 could not join: .*TACC_CMA'
    says 'MPI_Barrier +0 +0 +3  no tacc communicator: 3$'
    ;;
  hosts)  # the same between hosts: the launcher's store tells who has it
    tools=$5
    case $mpi in
      mpich) places="-launcher ssh -launcher-exec $tools/cluster_rsh -iface eth0 -hosts tacc1:1,tacc2:1" ;;
      openmpi) places="-H tacc1:1,tacc2:1 --mca plm_rsh_agent $tools/cluster_rsh --mca oob_tcp_if_include eth0
        --mca btl_tcp_if_include eth0 --mca pml ob1 --mca btl vader,tcp,self" ;;
    esac
    # MPICH 4.0.2 may hang in MPI_Finalize over UCX's TCP where the machine is busy, also without the library. All that is looked
    # for has been said by then.
    between() {
      output=$(timeout -k 5 30 "$tools/cluster" run --cluster 1,2,0,0 --ranks 1 -- env -u RANK -u WORLD_SIZE UCX_TLS=tcp,sm,self \
        $launcher $places "$@" 2>&1)
      status=$?
      case $output in *"no virtual cluster here"*) echo "skipped: $output"; exit 77 ;; esac
      [ $status = 0 ] || { [ $status = 124 ] && [ "$mpi" = mpich ]; } || fail "$* ends with $status"
    }
    between -n 1 env LD_PRELOAD="$library" TACC_MPI=report "$program" counted : -n 1 "$program" counted
    says 'tacc: libtacc_mpi is preloaded into some ranks only \(rank 1 has none\), so all calls go to MPI'
    says 'MPI_Barrier +0 +0 +3  switched off: 3$'
    between -n 1 "$program" counted : -n 1 env LD_PRELOAD="$library" "$program" counted
    says 'tacc: libtacc_mpi is preloaded into some ranks only \(rank 0 has none\), so all calls go to MPI'
    between -n 2 env LD_PRELOAD="$library" TACC_MPI=report "$program" counted
    saysNot 'some ranks only'
    says 'MPI_Barrier +3 +0 +0  -$'
    ;;
  wrapped)  # the program has functions of its own that end requests, and one that frees memory
    limit=20
    preloaded 2 report "$program"
    says 'all right'
    says 'tacc: MPI_Test is that of .*mpi_wrapped.* on rank 0, so collectives with requests go to MPI$'
    says "MPI_Iallreduce +0 +0 +2  ended by another's functions: 2$"
    says 'MPI_Allreduce +1 '
    preloaded 2 report "$5"
    says 'all right'
    saysNot 'is that of'
    says 'MPI_Iallreduce +2 '
    ;;
  jumps)  # what is not taken over: a jump where nothing is told, and a look where it is counted
    for mode in off onn; do  # switched off, or by a mistake
      preloaded 2 $mode "$program"
      for rank in 0 1; do says "^rank $rank: right, 6 jumped, 0 were looked at\$"; done
    done
    run 1 env LD_PRELOAD="$library" TACC_MPI=report "$program" : -n 1 env LD_PRELOAD="$library" TACC_MPI=off "$program"
    says '^rank 0: right, [0-9]+ jumped, [1-9][0-9]* were looked at$'
    says '^rank 1: right, 6 jumped, 0 were looked at$'
    says 'MPI_Alltoallv +0 +0 +1  switched off: 1$'
    preloaded 2 on "$program"
    for rank in 0 1; do says "^rank $rank: right, [0-9]+ jumped, [1-9][0-9]* were looked at\$"; done
    ;;
  soak_comms)  # communicators that come and go
    for ranks in 2 4; do
      preloaded $ranks on "$program" soak_comms tacc 300
      says 'all right'
      saysNot 'tacc:'
    done
    ;;
  mixed)  # preloaded into some ranks of this host only
    run 1 env LD_PRELOAD="$library" TACC_MPI=report "$program" counted : -n 2 "$program" counted
    says 'tacc: libtacc_mpi is preloaded into some ranks only \(rank 1, 2 has none\), so all calls go to MPI'
    says 'MPI_Barrier +0 +0 +3  switched off: 3$'
    run 2 "$program" counted : -n 1 env LD_PRELOAD="$library" "$program" counted
    says '\(rank 0, 1 has none\)'
    # Ranks that asked for different levels of thread support.
    export TACC_MPI_CONTEST=off
    limit=60
    run 1 env LD_PRELOAD="$library" "$program" communicators tacc : \
      -n 2 env LD_PRELOAD="$library" "$program" communicators_threads tacc
    says 'all right|skipped'
    saysNot 'tacc:'
    ;;
  many_persistent)  # 64 on a communicator are tacc's, and their places are used again
    export TACC_MPI_NONBLOCKING=0
    for ranks in 2 3; do
      run $ranks "$program" many_persistent mpi
      case $output in *skipped:*) echo "$output"; exit 77 ;; esac
      preloaded $ranks report "$program" many_persistent tacc
      says 'all right'
      says 'MPI_Allreduce_init +128 +512 +32  no tacc communicator: 32$'
    done
    ;;
  network)  # ranks of one host that act as if each had its own; the second carries tacc's messages in MPI's
    export TACC_SHM=off TACC_TRANSPORT
    for TACC_TRANSPORT in tcp mpi; do
      for program_part in communicators requests messages copies threads; do
        preloaded 3 on "$program" $program_part tacc
        says 'all right|skipped'
        saysNot 'tacc:'
      done
    done
    for seed in ${TACC_TEST_SEEDS:-1}; do
      preloaded 3 on env TACC_TRANSPORT=mpi "$program" sequences mpi $seed  # which serves all that has a request
      says 'all right'
      saysNot 'tacc:'
    done
    TACC_TRANSPORT=tcp
    export TACC_MPI_NONBLOCKING=0
    preloaded 3 on "$program" persistent tacc
    says 'all right'
    saysNot 'tacc:'
    ;;
  loaded)  # MPI comes with an extension that is loaded later, and only that sees it: LOADER EXTENSION
    preloaded 2 report "$5" "$6"
    says 'MPI_Allreduce +1 +4 +0  -$'
    ;;
  spawned)  # ranks that meet by other ways than MPI_Init: the library is in the first ones alone, then in all of them
    everywhere() {
      case $mpi in
        mpich) run 2 -genv LD_PRELOAD "$library" -genv TACC_MPI report "$program" $way ;;
        openmpi) run 2 -x LD_PRELOAD="$library" -x TACC_MPI=report "$program" $way ;;
      esac
    }
    apart() { printf '%s\n' "$output" | grep -c "MPI_$1 .* ranks that were started apart: $2\$"; }
    export TACC_MPI_CONTEST=off
    skipped=
    for way in spawn multiple worlds connect; do
      run 2 "$program" $way
      case $output in *skipped:*) skipped="$skipped$(printf '%s\n' "$output" | grep -o 'skipped:.*') ($way); "; continue ;; esac
      says 'all right'
      preloaded 2 report "$program" $way
      saysNot '^tacc:|failed'
      says "all right: $way of the first ranks"
      case $way in
        spawn|multiple)
          says 'MPI_Allreduce +2 +8 +201  ranks that were started apart: 201$'
          says 'MPI_Bcast +0 +0 +200  ranks that were started apart: 200$' ;;
        connect)  # who was started together is served, in whatever way they meet
          says 'MPI_Allreduce +202 +808 +1  one rank alone: 1$'
          says 'MPI_Bcast +200 +800 +0  -$' ;;
      esac
      everywhere
      saysNot '^tacc:|failed'
      says "all right: $way of the first ranks"
      # All worlds pass the same on.
      case $way in
        spawn|multiple|worlds)
          says "all right: $way of the spawned ranks"
          [ "$(apart Allreduce 201)" = 2 ] || fail "not both worlds say what they passed on" ;;
      esac
    done
    [ -z "$skipped" ] || { echo "$skipped"; exit 77; }
    ;;
  told_*)  # what MPI tells the program must be the same with the library, whatever that takes over
    part=${what#told_}
    same() { ranks=$1; mode=$2; shift 2; preloaded $ranks $mode env "$@" "$program" $part $seed
      [ "$output" = "$told" ] || { echo "$told" >"$expected"; output=$(echo "$output" | diff "$expected" -); fail "$* $mode: other lines"; }; }
    expected=$(mktemp) && trap 'rm -f "$expected"' EXIT || fail "no place for a copy"
    for seed in ${TACC_TEST_SEEDS:-1}; do
      for ranks in 2 3 4; do
        run $ranks "$program" $part $seed
        says 'rank 1 was told:'
        told=$output
        same $ranks on TACC_MPI_NONBLOCKING=0 TACC_MPI_CONTEST=off
        [ $ranks = 2 ] || continue
        same 2 off LC_ALL=C
        same 2 on TACC_MPI_NONBLOCKING=0 TACC_MPI_CONTEST=1
        same 2 on TACC_TRANSPORT=mpi TACC_SHM=off
      done
    done
    # So much is taken over of what was compared.
    preloaded 2 report "$program" $part
    says '^  MPI_Allreduce +[1-9][0-9]+ '
    ;;
  drawn*)  # programs as strangers write them receive the same with the library and without
    threads=1 seeds="1 2" sizes="2 3 5"
    [ "$what" = drawn_threads ] && threads=3 seeds=1 sizes="2 3"
    # FORM VARIABLES...: MPICH 4.0 does persistent collectives wrong itself, so `plain` has none.
    same() {
      form=$1 && shift
      preloaded $ranks on env "$@" "$program" $seed $threads $form
      saysNot 'tacc:'
      [ "$(received)" = "$told" ] || fail "seed $seed, $threads threads, $*: received other than ($told), without"
    }
    received() { printf '%s\n' "$output" | grep '^received: '; }
    for seed in ${TACC_TEST_SEEDS:-$seeds}; do
      for ranks in ${TACC_TEST_RANKS:-$sizes}; do
        run $ranks "$program" $seed $threads plain
        told=$(received)
        [ "$(printf '%s\n' "$told" | wc -l)" = $((ranks * threads)) ] || fail "not all ranks tell what they received"
        same persistent TACC_MPI_NONBLOCKING=0 TACC_MPI_CONTEST=off
        same persistent TACC_MPI_NONBLOCKING=0 TACC_MPI_CONTEST=1
        same plain LC_ALL=C
        [ $ranks = 3 ] || continue
        same persistent TACC_MPI_NONBLOCKING=0 TACC_SHM=off TACC_TRANSPORT=tcp
        same plain TACC_SHM=off TACC_TRANSPORT=mpi
      done
    done
    ;;
  stranger)  # programs that are not MPI's
    output=$(LD_PRELOAD=$library sh -c 'echo well' 2>&1) || fail "a shell with the library preloaded"
    [ "$output" = well ] || fail "a shell with the library preloaded says more than it has to"
    output=$(LD_PRELOAD=$library TACC_MPI=report sh -c 'echo well' 2>&1) || fail "a shell that is to report"
    says 'tacc: TACC_MPI=report, and sh is not linked with MPI: nothing is taken over unless it loads one'
    # Without the part for this MPI.
    alone=$(mktemp -d) && cp "$library" "$alone/libtacc_mpi.so" || fail "no place for a copy"
    library=$alone/libtacc_mpi.so
    preloaded 2 on "$program" counted
    rm -r "$alone"
    says 'tacc: libtacc_mpi cannot open its part for .*, so all calls go to that: '
    ;;
  fortran*)  # which has names of its own for everything; also without a part for this MPI
    alone=$(mktemp -d) && cp "$library" "$alone/libtacc_mpi.so" || fail "no place for a copy"
    [ "$what" = fortran_f08 ] && [ "$mpi" = mpich ] && countsFromZero=yes  # MPICH 4.0 itself, in MPI_Waitany and its like
    export TACC_MPI_NONBLOCKING=0
    for ranks in 1 2 3 4; do
      if [ -z "$countsFromZero" ]; then
        run $ranks "$program"
        says '^all right$'
      fi
      preloaded $ranks report "$program"
      says '^all right$'
      saysNot '^tacc: '
      [ $ranks -gt 1 ] || continue
      says 'MPI_Allreduce +(20|21) .*other operation: 1$'
      # MPICH's mpi_f08 takes such memory by a name that only MPI has.
      [ "$what-$mpi" = fortran_f08-mpich ] || says '^# memory that ranks share: 2 blocks, '
      says 'MPI_Bcast +3 +[0-9]+ +1  arguments for MPI to judge: 1$'
      says 'MPI_Reduce +6 +[0-9]+ +0  -$'
      for name in Allgather Allgatherv Alltoall Alltoallv Gather Gatherv Scatter Scatterv Reduce_scatter Reduce_scatter_block \
        Scan Exscan Barrier; do
        says "  MPI_$name +[36] +[0-9]+ +0  -\$"
      done
      for name in Allreduce Bcast Reduce Scan Exscan Reduce_scatter_block Reduce_scatter Allgather Alltoall Gather Scatter \
        Allgatherv Alltoallv Gatherv Scatterv Barrier; do
        says "  MPI_I$(echo $name | tr A-Z a-z) +3 +[0-9]+ +0  -\$"
      done
      for name in Allreduce Bcast Alltoallv Barrier; do says "  MPI_${name}_init +3 +[0-9]+ +0  -\$"; done
      if [ -n "$countsFromZero" ]; then
        for name in Allreduce Iallreduce Allgatherv; do says "  MPI_${name}_c +3 +[0-9]+ +0  -\$"; done
      fi
      [ -z "$countsFromZero" ] || continue
      library=$alone/libtacc_mpi.so preloaded $ranks on "$program"
      says '^all right$'
      says 'tacc: libtacc_mpi cannot open its part for .*, so all calls go to that: '
    done
    rm -r "$alone"
    ;;
  *)
    for ranks in 1 2 3 4; do
      run $ranks "$program" "$what" mpi
      says 'all right|skipped'
      for seed in ${TACC_TEST_SEEDS:-1}; do
        preloaded $ranks on "$program" "$what" tacc $seed
        says 'all right|skipped'
        saysNot 'tacc:'
      done
    done
    ;;
esac
echo "all right: $what under $launcher"
